// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// A sweep while another target reads a page keeps the lines that are new on that page, and those of a plan that only
// this target still has: they are known when they come again.
func TestSweepsSpareWhatIsBeingRead(t *testing.T) {
	const (
		head      = "# HELP m Help of m.\n# TYPE m counter\nm{x=\"1\"} 1\n"
		histogram = "# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_count 2\nh_sum 2\n"
	)
	j, quiet := newTestJob(t, Config{Scrape: testScrapeConfig()}), newTestJob(t, Config{Scrape: testScrapeConfig()})
	leaving, reader, other, alone := testTarget(j, 0), testTarget(j, 1), testTarget(j, 2), testTarget(quiet, 1)
	show(leaving, start, typeText, head, 1<<20)
	for i, page := range []string{head + histogram, "new 1\n" + histogram + "between 1\n" + head, histogram + head} {
		s, err := reader.Begin(start, typeText)
		require.NoError(t, err)
		require.NoError(t, s.Feed([]byte(page)))
		leaving.Retire(start)
		for n := range 3000 {
			require.NoError(t, show(other, start, typeText, fmt.Sprintf("passing_%d_%d 1\n", i, n), 1<<20).Err)
		}
		require.Less(t, reader.cohort.Counts().Lines, 2000, "it was swept")
		want := show(alone, start, typeText, page, 1<<20)
		require.Equal(t, canon(want.Metrics), canon(s.End(Report{}).Metrics), "page %d", i)
	}
}

// The sweep of a target that begins with the plan of others does not forget its additional lines either.
func TestSweepsSpareWhatIsBeside(t *testing.T) {
	const page = "# TYPE m counter\nm{x=\"1\"} 1\nm{x=\"2\"} 1\n# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_count 2\nh_sum 2\n"
	const buckets = "h_bucket{x=\"own\",le=\"1\"} 1\nh_bucket{x=\"own\",le=\"+Inf\"} 2\n"
	const count, sum = "h_count{x=\"own\"} 2\n", "h_sum{x=\"own\"} 2\n"
	j := newTestJob(t, Config{Scrape: testScrapeConfig()})
	first, reader, joining := testTarget(j, 0), testTarget(j, 1), testTarget(j, 2)
	for range 2 {
		show(first, start, typeText, page, 1<<20)
	}
	s, err := reader.Begin(start, typeText)
	require.NoError(t, err)
	for n := range 3000 {
		require.NoError(t, s.Feed(fmt.Appendf(nil, "passing_%d 1\n", n)))
	}
	swept := joining.cohort.Counts().Swept
	require.Equal(t, 4+5, show(joining, start, typeText, page+buckets+count+sum, 1<<20).Metrics.DataPointCount())
	require.Greater(t, joining.cohort.Counts().Swept, swept, "it was swept")
	require.False(t, joining.Diff.IsEmpty())
	again := show(joining, start, typeText, page+buckets+sum+count, 1<<20)
	require.Zero(t, again.Added, "they were all there")
	require.Equal(t, 4+5, again.Metrics.DataPointCount())
	s.End(Report{})
}
