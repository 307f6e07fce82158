// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
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
			all = append(all, given{m, int32(i)})
		}
		summary := metrics.AppendEmpty()
		summary.SetEmptySummary().DataPoints().AppendEmpty()
		return append(all, given{summary, int32(len(sizes))})
	}
	take := func(metric int32, n int) (got int, left []int) {
		r := recycled{metric: metric}
		r.put(part(10, 8, 4), 100)
		got = r.take(n, pmetric.NewNumberDataPointSlice())
		for _, u := range r.used {
			left = append(left, u.points.Len())
		}
		return got, left
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
	r.put(part(5, 5), 12)
	r.put(part(6), 12)
	require.Len(t, r.used, 2, "the first is too much")
	require.Equal(t, 5, r.used[0].points.Len())
	require.Equal(t, 6, r.used[1].points.Len())
}
