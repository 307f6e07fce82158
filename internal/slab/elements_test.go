// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package slab

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback/handbacktest"
)

// keepAll keeps the elements of metrics at all levels.
func keepAll(md pmetric.Metrics) *Elements {
	l := new(Elements)
	KeepElements(l, md.ResourceMetrics())
	for _, rm := range md.ResourceMetrics().All() {
		KeepElements(l, rm.ScopeMetrics())
		for _, sm := range rm.ScopeMetrics().All() {
			KeepElements(l, sm.Metrics())
			for _, m := range sm.Metrics().All() {
				switch m.Type() {
				case pmetric.MetricTypeGauge:
					KeepElements(l, m.Gauge().DataPoints())
				case pmetric.MetricTypeSum:
					KeepElements(l, m.Sum().DataPoints())
				case pmetric.MetricTypeHistogram:
					KeepElements(l, m.Histogram().DataPoints())
				case pmetric.MetricTypeExponentialHistogram:
					KeepElements(l, m.ExponentialHistogram().DataPoints())
				case pmetric.MetricTypeSummary:
					KeepElements(l, m.Summary().DataPoints())
				default:
				}
			}
		}
	}
	return l
}

// removeSome removes elements at all levels, and what is empty then.
func removeSome(r *rand.Rand, md pmetric.Metrics) {
	some := func() bool { return r.IntN(4) == 0 }
	md.ResourceMetrics().RemoveIf(func(rm pmetric.ResourceMetrics) bool {
		rm.ScopeMetrics().RemoveIf(func(sm pmetric.ScopeMetrics) bool {
			sm.Metrics().RemoveIf(func(m pmetric.Metric) bool {
				left := 0
				switch m.Type() {
				case pmetric.MetricTypeGauge:
					m.Gauge().DataPoints().RemoveIf(func(pmetric.NumberDataPoint) bool { return some() })
					left = m.Gauge().DataPoints().Len()
				case pmetric.MetricTypeSum:
					m.Sum().DataPoints().RemoveIf(func(pmetric.NumberDataPoint) bool { return some() })
					left = m.Sum().DataPoints().Len()
				case pmetric.MetricTypeHistogram:
					m.Histogram().DataPoints().RemoveIf(func(pmetric.HistogramDataPoint) bool { return some() })
					left = m.Histogram().DataPoints().Len()
				case pmetric.MetricTypeExponentialHistogram:
					m.ExponentialHistogram().DataPoints().RemoveIf(func(pmetric.ExponentialHistogramDataPoint) bool { return some() })
					left = m.ExponentialHistogram().DataPoints().Len()
				case pmetric.MetricTypeSummary:
					m.Summary().DataPoints().RemoveIf(func(pmetric.SummaryDataPoint) bool { return some() })
					left = m.Summary().DataPoints().Len()
				default:
				}
				return left == 0 || some()
			})
			return sm.Metrics().Len() == 0 || some()
		})
		return rm.ScopeMetrics().Len() == 0 || some()
	})
}

// Whatever is removed comes back, as often as it is removed, and nothing else changes.
func TestRemovedElementsArePutBack(t *testing.T) {
	if !PutsBack() {
		t.Skip("metrics look otherwise in this build")
	}
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 6))
		md := handbacktest.Metrics(int(seed))
		was := encoded(t, md)
		kept := keepAll(md)
		for round := range 8 {
			removeSome(r, md)
			isAsBefore := bytes.Equal(was, encoded(t, md))
			if round == 0 {
				runtime.GC()
			}
			removed, whole := kept.PutBack()
			require.True(t, whole)
			require.Equal(t, isAsBefore, removed == 0)
			require.Equal(t, was, encoded(t, md))
		}
		kept.Forget()
		md.ResourceMetrics().RemoveIf(func(pmetric.ResourceMetrics) bool { return true })
		removed, whole := kept.PutBack()
		require.True(t, whole)
		require.Zero(t, removed, "what is forgotten stays removed")
	}
}

// Anything but a removal is detected, and what was moved elsewhere is left alone.
func TestElementsThatWereNotRemoved(t *testing.T) {
	if !PutsBack() {
		t.Skip("metrics look otherwise in this build")
	}
	first := func(md pmetric.Metrics) pmetric.MetricSlice {
		return md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
	}
	elsewhere := pmetric.NewMetrics()
	for name, change := range map[string]func(md pmetric.Metrics){
		"adds":     func(md pmetric.Metrics) { first(md).AppendEmpty() },
		"replaces": func(md pmetric.Metrics) { removeFirst(first(md)); first(md).AppendEmpty() },
		"sorts": func(md pmetric.Metrics) {
			order := map[pmetric.Metric]int{}
			for i, m := range first(md).All() {
				order[m] = i
			}
			first(md).Sort(func(a, b pmetric.Metric) bool { return order[a] > order[b] })
		},
		"moves all":       func(md pmetric.Metrics) { md.MoveTo(elsewhere) },
		"moves resources": func(md pmetric.Metrics) { md.ResourceMetrics().MoveAndAppendTo(elsewhere.ResourceMetrics()) },
		"moves metrics": func(md pmetric.Metrics) {
			first(md).MoveAndAppendTo(elsewhere.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics())
		},
	} {
		md := handbacktest.Metrics(3)
		require.Greater(t, first(md).Len(), 1, "nothing can be out of order")
		kept := keepAll(md)
		elsewhere = pmetric.NewMetrics()
		change(md)
		was, moved := encoded(t, md), encoded(t, elsewhere)
		_, whole := kept.PutBack()
		require.False(t, whole, name)
		require.Equal(t, moved, encoded(t, elsewhere), name)
		if name != "replaces" {
			require.Equal(t, was, encoded(t, md), fmt.Sprint(name, " is left as it is"))
		}
	}
}

func removeFirst(of pmetric.MetricSlice) {
	n := 0
	of.RemoveIf(func(pmetric.Metric) bool { n++; return n == 1 })
}
