// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package slab

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback/handbacktest"
)

// hiding hides some elements of a slice, either like this package or with pdata's API.
func hiding[S hidable[S, E], E interface {
	movable[E]
	comparable
}](t *testing.T, random *rand.Rand, from, removed S, empty func() S, byMoving bool,
) func() {
	t.Helper()
	hidden := make([]bool, from.Len())
	var was []E
	for i := range hidden {
		hidden[i] = random.IntN(3) == 0
		was = append(was, from.At(i))
	}
	i := -1
	removed.RemoveIf(func(E) bool {
		i++
		return hidden[i]
	})
	var show func()
	if byMoving {
		show = hideByMoving[S, E](from, empty, func(i int) bool { return hidden[i] })
	} else {
		show = Hide[S, E](from, empty, func(i int) bool { return hidden[i] })
	}
	return func() {
		show()
		require.Equal(t, len(was), from.Len())
		for i, e := range was {
			if e != from.At(i) {
				t.Errorf("element %d is another one, whether equal or not", i)
			}
		}
	}
}

// Hidden elements are as good as removed, and all are back afterwards.
func TestHiddenElementsComeBack(t *testing.T) {
	encode := func(md pmetric.Metrics) []byte {
		b, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
		require.NoError(t, err)
		return b
	}
	for seed := range uint64(40) {
		for _, byMoving := range []bool{false, true} {
			t.Run(fmt.Sprintf("seed=%d/moving=%v", seed, byMoving), func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 2))
				md, removed := handbacktest.Metrics(int(seed)), handbacktest.Metrics(int(seed))
				before := encode(md)
				var shows []func()
				for i := range md.ResourceMetrics().Len() {
					of, ofRemoved := md.ResourceMetrics().At(i).ScopeMetrics(), removed.ResourceMetrics().At(i).ScopeMetrics()
					from, fromRemoved := of.At(0).Metrics(), ofRemoved.At(0).Metrics()
					for j := range from.Len() {
						shows = append(shows, hidingPoints(t, random, from.At(j), fromRemoved.At(j), byMoving))
					}
					shows = append(shows, hiding[pmetric.MetricSlice, pmetric.Metric](t, random, from, fromRemoved, pmetric.NewMetricSlice, byMoving))
					shows = append(shows, hiding[pmetric.ScopeMetricsSlice, pmetric.ScopeMetrics](t, random, of, ofRemoved, pmetric.NewScopeMetricsSlice, byMoving))
				}
				shows = append(shows, hiding[pmetric.ResourceMetricsSlice, pmetric.ResourceMetrics](
					t, random, md.ResourceMetrics(), removed.ResourceMetrics(), pmetric.NewResourceMetricsSlice, byMoving))
				runtime.GC()
				require.Equal(t, encode(removed), encode(md))
				for _, show := range slices.Backward(shows) {
					show()
				}
				runtime.GC()
				require.Equal(t, before, encode(md))
			})
		}
	}
}

func hidingPoints(t *testing.T, random *rand.Rand, m, removed pmetric.Metric, byMoving bool) func() {
	t.Helper()
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return hiding[pmetric.NumberDataPointSlice, pmetric.NumberDataPoint](
			t, random, m.Gauge().DataPoints(), removed.Gauge().DataPoints(), pmetric.NewNumberDataPointSlice, byMoving)
	case pmetric.MetricTypeSum:
		return hiding[pmetric.NumberDataPointSlice, pmetric.NumberDataPoint](
			t, random, m.Sum().DataPoints(), removed.Sum().DataPoints(), pmetric.NewNumberDataPointSlice, byMoving)
	case pmetric.MetricTypeHistogram:
		return hiding[pmetric.HistogramDataPointSlice, pmetric.HistogramDataPoint](
			t, random, m.Histogram().DataPoints(), removed.Histogram().DataPoints(), pmetric.NewHistogramDataPointSlice, byMoving)
	case pmetric.MetricTypeExponentialHistogram:
		return hiding[pmetric.ExponentialHistogramDataPointSlice, pmetric.ExponentialHistogramDataPoint](t, random,
			m.ExponentialHistogram().DataPoints(), removed.ExponentialHistogram().DataPoints(), pmetric.NewExponentialHistogramDataPointSlice, byMoving)
	default:
		return hiding[pmetric.SummaryDataPointSlice, pmetric.SummaryDataPoint](
			t, random, m.Summary().DataPoints(), removed.Summary().DataPoints(), pmetric.NewSummaryDataPointSlice, byMoving)
	}
}
