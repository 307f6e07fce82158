// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

func TestRecycledPoints(t *testing.T) {
	part := func(sizes ...int) []given {
		var all []given
		metrics := pmetric.NewMetricSlice()
		for i, n := range sizes {
			points := pmetric.NewNumberDataPointSlice()
			for range n {
				points.AppendEmpty()
			}
			m := metrics.AppendEmpty()
			if i%2 == 0 {
				points.MoveAndAppendTo(m.SetEmptyGauge().DataPoints())
			} else {
				points.MoveAndAppendTo(m.SetEmptySum().DataPoints())
			}
			all = append(all, given{Metric: m, number: int32(i)})
		}
		summary := metrics.AppendEmpty()
		summary.SetEmptySummary().DataPoints().AppendEmpty()
		return append(all, given{Metric: summary, number: int32(len(sizes))})
	}
	sizes := func(r *recycled) (all []int) {
		kept := 0
		for e := r.used.Front(); e != nil; e = e.Next() {
			all = append(all, e.Value.(*used).points.Len())
			kept += all[len(all)-1]
		}
		require.Equal(t, kept, r.kept)
		return all
	}
	take := func(metric int32, n int) (int, []int) {
		r := recycled{metric: metric}
		r.put(part(10, 8, 4), 22, 100)
		got := r.take(n, pmetric.NewNumberDataPointSlice())
		return got, sizes(&r)
	}
	for n, want := range map[int][]int{
		0:   {10, 8, 4},
		1:   {10, 8, 3},
		4:   {10, 8},
		5:   {10, 7},
		8:   {10, 4},
		9:   {1, 8, 4},
		12:  {8, 2},
		22:  nil,
		100: nil,
	} {
		got, left := take(9, n)
		require.Equal(t, min(n, 22), got)
		require.Equal(t, want, left, "of 10, 8 and 4 points, %d", n)
	}
	for metric, want := range [][]int{{4, 8, 4}, {10, 2, 4}, {10, 6}} {
		got, left := take(int32(metric), 6)
		require.Equal(t, 6, got)
		require.Equal(t, want, left, "the same metric's come first")
	}
	got, left := take(0, 11)
	require.Equal(t, 10, got, "a few are made anew")
	require.Equal(t, []int{8, 4}, left)

	var r recycled
	r.put(part(5, 5), 12, 12)
	r.put(part(6), 12, 12)
	require.Equal(t, []int{5, 6}, sizes(&r), "the first is too much")
	require.True(t, r.full)

	r = recycled{metric: 9}
	r.put(part(10, 8), 19, 100)
	require.Zero(t, r.take(5, pmetric.NewNumberDataPointSlice()), "others may want them before long")
	r.metric = 1
	require.Equal(t, 5, r.take(5, pmetric.NewNumberDataPointSlice()))
}

func TestPointsGiveTheirAttributesOnce(t *testing.T) {
	var r recycled
	put := func(metric int32, about ...int32) {
		m := pmetric.NewMetric()
		points := m.SetEmptyGauge().DataPoints()
		for _, a := range about {
			points.AppendEmpty().Attributes().PutStr("pod", fmt.Sprintf("%d of %d", a, metric))
		}
		r.put([]given{{Metric: m, number: metric, about: about}}, 100, 100)
	}
	put(1, 3, 5, 5, 9)
	put(2, 3, 5, 7)
	give := func(about int32) (pod string) {
		if from := r.giver(about); from != (pcommon.Map{}) {
			v, _ := from.Get("pod")
			pod = v.Str()
		}
		return pod
	}
	for i, about := range []int32{plan.AboutNothing, 3, 3, 3, 4, 5, 5, 5, 5, 9, 9} {
		want := []string{"", "3 of 2", "3 of 1", "", "", "5 of 2", "5 of 1", "5 of 1", "", "9 of 1", ""}[i]
		require.Equal(t, want, give(about), "%d", about)
	}
	r.metric = 3
	require.Zero(t, r.take(0, pmetric.NewNumberDataPointSlice()))
	require.Equal(t, "7 of 2", give(7), "the next to ask begin anew")
	require.Empty(t, give(3))
}

// Points that are gone have nothing to give, and neither have those of long ago.
func TestGiversAreFew(t *testing.T) {
	const perMetric, most = 5, 1000
	var r recycled
	for metric := range int32(1000) {
		m := pmetric.NewMetric()
		points, about := m.SetEmptyGauge().DataPoints(), []int32{}
		for i := range int32(perMetric) {
			points.AppendEmpty().Attributes().PutInt("of", int64(metric))
			about = append(about, i)
		}
		r.put([]given{{Metric: m, number: metric, about: about}}, most, most)
		require.Equal(t, min(perMetric*int(metric+1), most), r.kept)
		require.Len(t, r.of, r.used.Len())
		require.Len(t, r.givers, r.used.Len())
	}
	r.metric = 998
	require.Equal(t, perMetric, r.take(perMetric, pmetric.NewNumberDataPointSlice()))
	for want := int64(999); want > 999-fewGivers; want-- {
		if want == int64(r.metric) {
			continue
		}
		v, ok := r.giver(2).Get("of")
		require.True(t, ok)
		require.Equal(t, want, v.Int())
	}
	require.Equal(t, pcommon.Map{}, r.giver(perMetric), "nothing is about it")
}

func TestValuesAreGivenToWhomTheySuit(t *testing.T) {
	from, to := pcommon.NewMap(), pcommon.NewMap()
	from.PutStr("pod", "a")
	to.PutStr("pod", "old")
	had, _ := to.Get("pod")
	require.False(t, give(pcommon.Map{}, "pod", "a", had))
	require.False(t, give(from, "pod", "b", had))
	require.False(t, give(from, "uid", "a", had))
	require.Equal(t, "old", had.Str())
	require.True(t, give(from, "pod", "a", had))
	require.Equal(t, "a", had.Str())
	require.False(t, give(from, "pod", "a", had), "it has it no more")
}
