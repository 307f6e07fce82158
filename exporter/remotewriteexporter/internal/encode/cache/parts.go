// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"slices"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/names"
)

// Indexes of the series of a classic histogram or a summary.
const (
	PartSum   = 0
	PartCount = 1
	PartBound = 2
)

// makeLayouts makes the layouts of a form's series from the labels that they share. The table must be locked.
func (c *Cache) makeLayouts(t *Tenant, s *Form, list []seriesLabel) {
	f := s.Family
	one := func(name string, more ...names.Label) {
		l := c.layout(f.Schema, s.Keys, with(list, append(append(more, f.typed...), names.Label{Name: names.NameLabel, Value: name})...), f.meta)
		s.layouts = append(s.layouts, c.addLayout(t, l, s.shared))
	}
	defer func() { s.layouts = slices.Clip(s.layouts) }()
	switch f.Kind {
	case pmetric.MetricTypeHistogram:
		if c.cfg.CustomBuckets {
			s.single = true
			one(f.prom)
			if !c.cfg.KeepClassic {
				return
			}
		}
		one(f.prom + "_sum")
		one(f.prom + "_count")
		for _, bound := range s.Bounds {
			one(f.prom+"_bucket", names.Label{Name: "le", Value: formatBound(bound)})
		}
		one(f.prom+"_bucket", names.Label{Name: "le", Value: "+Inf"})
	case pmetric.MetricTypeSummary:
		one(f.prom + "_sum")
		one(f.prom + "_count")
		for _, quantile := range s.Bounds {
			one(f.prom, names.Label{Name: "quantile", Value: formatBound(quantile)})
		}
	default:
		s.single = true
		one(f.prom)
	}
}

func formatBound(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
