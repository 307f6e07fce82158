// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A histogram may have more bounds than there are numbers for bounds. They are removed with their lines.
func TestManyBounds(t *testing.T) {
	target := testTarget(newTestJob(t, Config{Scrape: testScrapeConfig()}), 1)
	const (
		common  = 255 // bounds that have a number
		buckets = 2 * common
	)
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
	require.Equal(t, buckets+1-common, target.cohort.Counts().RareBounds)
	for n := range 3000 {
		show(target, start, typeText, fmt.Sprintf("passing_%d 1\n", n), 1<<20)
	}
	require.Zero(t, target.cohort.Counts().RareBounds)
}
