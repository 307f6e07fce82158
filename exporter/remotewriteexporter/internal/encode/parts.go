// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Places in point.parts.
const (
	partSum   = 0
	partCount = 1
	partBound = 2
)

// makeSeries makes the series of a new point. The table is locked.
func (e *Encoder) makeSeries(t *tenant, p *point, m pcommon.Map) {
	f := p.family
	list, err := e.pointLabels(f, m)
	if err != nil {
		p.reason = ReasonLabel
		return
	}
	one := func(name string, more ...label) *series {
		return e.series(t, f.schema, with(list, append(more, label{nameLabel, name})...), f.meta)
	}
	switch f.kind {
	case pmetric.MetricTypeHistogram:
		if e.cfg.CustomBuckets {
			p.one = one(f.prom)
			if !e.cfg.KeepClassic {
				return
			}
		}
		p.parts = append(p.parts, one(f.prom+"_sum"), one(f.prom+"_count"))
		for _, bound := range p.bounds {
			p.parts = append(p.parts, one(f.prom+"_bucket", label{"le", formatBound(bound)}))
		}
		p.parts = append(p.parts, one(f.prom+"_bucket", label{"le", "+Inf"}))
	case pmetric.MetricTypeSummary:
		p.parts = append(p.parts, one(f.prom+"_sum"), one(f.prom+"_count"))
		for _, quantile := range p.bounds {
			p.parts = append(p.parts, one(f.prom, label{"quantile", formatBound(quantile)}))
		}
	default:
		p.one = one(f.prom)
	}
}

func formatBound(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
