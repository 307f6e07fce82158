// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"strconv"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/names"
)

// Places in the series of a classic histogram or a summary.
const (
	partSum   = 0
	partCount = 1
	partBound = 2
)

// makeLayouts makes the layouts of a form's series from the labels that they share. The table is locked.
func (e *Encoder) makeLayouts(t *tenant, s *form, list []seriesLabel) {
	f := s.family
	one := func(name string, more ...names.Label) {
		s.layouts = append(s.layouts, e.layout(t, f.schema, s.keys, with(list, append(append(more, f.typed...), names.Label{Name: names.NameLabel, Value: name})...), f.meta))
	}
	switch f.kind {
	case pmetric.MetricTypeHistogram:
		if e.cfg.CustomBuckets {
			s.single = true
			one(f.prom)
			if !e.cfg.KeepClassic {
				return
			}
		}
		one(f.prom + "_sum")
		one(f.prom + "_count")
		for _, bound := range s.bounds {
			one(f.prom+"_bucket", names.Label{Name: "le", Value: formatBound(bound)})
		}
		one(f.prom+"_bucket", names.Label{Name: "le", Value: "+Inf"})
	case pmetric.MetricTypeSummary:
		one(f.prom + "_sum")
		one(f.prom + "_count")
		for _, quantile := range s.bounds {
			one(f.prom, names.Label{Name: "quantile", Value: formatBound(quantile)})
		}
	default:
		s.single = true
		one(f.prom)
	}
}

func formatBound(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
