// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package slab

import (
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Metrics that are assembled from existing elements equal those that are made anew.
func TestElementsArePlacedAgain(t *testing.T) {
	require.True(t, Places(), "pdata has changed: see layout.go")
	lists := make([]pcommon.Map, 7)
	for i := range lists {
		lists[i] = pcommon.NewMap()
		for j := range i {
			lists[i].PutStr("key"+strconv.Itoa(j), strconv.Itoa(i))
		}
	}
	md := pmetric.NewMetrics()
	resource, scope := pmetric.NewResourceMetrics(), pmetric.NewScopeMetrics()
	metrics := []pmetric.Metric{pmetric.NewMetric(), pmetric.NewMetric()}
	metrics[0].SetEmptyGauge()
	metrics[1].SetEmptySum()
	var points []pmetric.NumberDataPoint
	for range 100 {
		points = append(points, pmetric.NewNumberDataPoint())
	}
	for round := range 5 {
		want := pmetric.NewMetrics()
		wantMetrics := want.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
		gauge, sum := wantMetrics.AppendEmpty().SetEmptyGauge(), wantMetrics.AppendEmpty().SetEmptySum()

		Empty(md.ResourceMetrics())
		Place(md.ResourceMetrics(), resource)
		Empty(resource.ScopeMetrics())
		Place(resource.ScopeMetrics(), scope)
		Empty(scope.Metrics())
		Empty(metrics[0].Gauge().DataPoints())
		Empty(metrics[1].Sum().DataPoints())
		for i := range 20 * (round + 1) {
			p, slice, wantSlice := points[i], metrics[i%2].Gauge().DataPoints, gauge.DataPoints
			if i%2 == 1 {
				slice, wantSlice = metrics[1].Sum().DataPoints, sum.DataPoints
			}
			Place(slice(), p)
			Share(p.Attributes(), lists[i%7])
			ChangeDouble(p, float64(i*round))
			w := wantSlice().AppendEmpty()
			lists[i%7].CopyTo(w.Attributes())
			w.SetDoubleValue(float64(i * round))
		}
		Place(scope.Metrics(), metrics[0])
		Place(scope.Metrics(), metrics[1])
		runtime.GC()
		require.Equal(t, encoded(t, want), encoded(t, md), "round %d", round)
		points[3].Attributes().PutStr("added", "by somebody")
		require.Equal(t, 3, lists[3].Len(), "what is added goes elsewhere")
	}
}
