// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBounds(t *testing.T) {
	var (
		b     bounds
		lines [1000]line
	)
	value := func(i int) float64 {
		switch i % 500 {
		case 0:
			return math.NaN()
		case 1:
			return math.Inf(1)
		case 2:
			return math.Copysign(0, -1)
		default:
			return float64(i%500) - 3
		}
	}
	for i := range lines {
		b.set(&lines[i], value(i))
	}
	for i := range lines {
		require.Equal(t, math.Float64bits(value(i)), math.Float64bits(b.of(&lines[i])))
	}
	require.Len(t, b.common, rareBound)
	require.Len(t, b.rare, 2*(500-rareBound))
	b.set(&lines[999], 7)
	require.Equal(t, 7, int(b.of(&lines[999])), "it may become another")
}

// A histogram may have more bounds than there are numbers for. They are forgotten with their lines.
func TestManyBounds(t *testing.T) {
	target := testTarget(newTestJob(t, Config{Scrape: testScrapeConfig()}), 1)
	const buckets = 2 * rareBound
	var page strings.Builder
	page.WriteString("# TYPE h histogram\n")
	for i := range buckets {
		fmt.Fprintf(&page, "h_bucket{le=\"%d\"} %d\n", i, i)
	}
	fmt.Fprintf(&page, "h_bucket{le=\"+Inf\"} %d\nh_count %d\nh_sum 1\n", buckets, buckets)
	for range 2 {
		r := show(target, start, typeText, page.String(), 1<<20)
		require.NoError(t, r.Err)
		dp := r.Metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Histogram().DataPoints().At(0)
		require.Equal(t, buckets, dp.ExplicitBounds().Len())
		for i, bound := range dp.ExplicitBounds().All() {
			require.Equal(t, i, int(bound))
		}
	}
	require.Len(t, target.cohort.bounds.rare, buckets+1-rareBound)
	for n := range 3000 {
		show(target, start, typeText, fmt.Sprintf("passing_%d 1\n", n), 1<<20)
	}
	require.Empty(t, target.cohort.bounds.rare)
}
