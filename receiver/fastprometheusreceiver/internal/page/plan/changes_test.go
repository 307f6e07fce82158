// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/growthtest"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
)

// Changed metrics are found in any order.
func TestChangesOfManyMetrics(t *testing.T) {
	growthtest.RequireLinear(t, 1000, func(n int) func() {
		l, x := &Layout{}, &Variation{Extra: &Layout{}}
		for range n {
			l.Metrics = append(l.Metrics, PlacedMetric{Family: &catalog.Family{}, Points: 1})
		}
		for i := range n {
			x.Extra.Metrics = append(x.Extra.Metrics, PlacedMetric{Family: l.Metrics[n-1-i].Family, First: int32(i), Points: 1})
		}
		return func() {
			require.True(t, x.find(l))
			require.Len(t, x.Changes, n)
			require.Equal(t, Change{Metric: int32(n - 1), Count: 1}, x.Changes[n-1])
			require.Equal(t, Change{Metric: 0, First: int32(n - 1), Count: 1}, x.Changes[0])
		}
	})
}
