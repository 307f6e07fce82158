// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

func TestRecycledPoints(t *testing.T) {
	part := func(sizes ...int) pmetric.Metrics {
		md := pmetric.NewMetrics()
		metrics := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
		for i, n := range sizes {
			points := pmetric.NewNumberDataPointSlice()
			for range n {
				points.AppendEmpty()
			}
			if i%2 == 0 {
				points.MoveAndAppendTo(metrics.AppendEmpty().SetEmptyGauge().DataPoints())
			} else {
				points.MoveAndAppendTo(metrics.AppendEmpty().SetEmptySum().DataPoints())
			}
		}
		metrics.AppendEmpty().SetEmptySummary().DataPoints().AppendEmpty()
		return md
	}
	take := func(n int) (got, left int) {
		var r recycled
		r.put(part(10, 8, 4), 100)
		got = r.take(n, pmetric.NewNumberDataPointSlice())
		for _, points := range r {
			left += points.Len()
		}
		return got, left
	}
	for n, want := range map[int][2]int{
		0:   {0, 22},
		1:   {0, 22}, // as many would be lost
		2:   {0, 22},
		3:   {3, 18},
		4:   {4, 18},
		8:   {8, 14},
		10:  {10, 12},
		100: {10, 12},
	} {
		got, left := take(n)
		require.Equal(t, want, [2]int{got, left}, "of 10, 8 and 4 points, %d", n)
	}

	var r recycled
	r.put(part(5, 5), 12)
	r.put(part(6), 12)
	require.Len(t, r, 2, "the first is too much")
	require.Equal(t, 5, r[0].Len())
	require.Equal(t, 6, r[1].Len())
}
