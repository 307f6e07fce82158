// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Tables that were put aside know the lines and points of a page that is being read, even if the last plan with them has
// gone meanwhile: a new bucket is part of the histogram that is there.
func TestTablesPutAsideKnowWhatIsBeingRead(t *testing.T) {
	const (
		begin = "# TYPE h histogram\nh_bucket{le=\"1\"} 1\n"
		end   = "h_bucket{le=\"+Inf\"} 2\nh_count 2\nh_sum 2\n"
		other = "steady 1\n"
	)
	j, quiet := newTestJob(t, Config{Scrape: testScrapeConfig()}), newTestJob(t, Config{Scrape: testScrapeConfig()})
	going, steady, reader, alone := testTarget(j, 0), testTarget(j, 1), testTarget(j, 2), testTarget(quiet, 2)
	show(going, start, typeText, begin+end, 1<<20)
	for range 2 {
		show(steady, start, typeText, other, 1<<20)
	}
	at := start.Add(calm)
	require.NoError(t, show(steady, at, typeText, other, 1<<20).Err)
	require.Zero(t, reader.cohort.looked.Load(), "they were put aside")
	s, err := reader.Begin(at, typeText)
	require.NoError(t, err)
	page := begin + "h_bucket{le=\"2\"} 1\n" + end
	require.NoError(t, s.Feed([]byte(page)))
	going.Leave()
	got, want := s.End(Report{BodyBytes: int64(len(page))}), show(alone, at, typeText, page, 1<<20)
	require.Equal(t, canon(want.Metrics), canon(got.Metrics))
	page = "h_count 2\nnew 1\n" + begin + end
	got, want = show(reader, at, typeText, page, 1<<20), show(alone, at, typeText, page, 1<<20)
	require.Equal(t, canon(want.Metrics), canon(got.Metrics))
	require.Equal(t, want.Added, got.Added)
}

// Tables stay while a page is read whose lines are looked for in them, however long that takes: it would need them again
// for the next line, and forget those that it has read.
func TestTablesStayWhileTheyAreUsed(t *testing.T) {
	j := newTestJob(t, Config{Scrape: testScrapeConfig()})
	steady, slow := testTarget(j, 1), testTarget(j, 2)
	s, err := slow.Begin(start, typeText)
	require.NoError(t, err)
	for range 2 {
		show(steady, start, typeText, "steady 1\n", 1<<20)
	}
	require.NoError(t, s.Feed([]byte("a 1\n")))
	for _, after := range []time.Duration{calm, 2 * calm} {
		require.NoError(t, show(steady, start.Add(after), typeText, "steady 1\n", 1<<20).Err)
		require.NotZero(t, slow.cohort.looked.Load())
	}
	s.End(Report{})
	require.NoError(t, show(steady, start.Add(2*calm), typeText, "steady 1\n", 1<<20).Err)
	require.Zero(t, slow.cohort.looked.Load())
}

// They know the points of the report, even if no target has a plan: a page may have the same series.
func TestTablesPutAsideKnowTheReport(t *testing.T) {
	down := Report{Err: errors.New("connection refused")}
	j, quiet := newTestJob(t, Config{Scrape: testScrapeConfig()}), newTestJob(t, Config{Scrape: testScrapeConfig()})
	target, alone := testTarget(j, 0), testTarget(quiet, 0)
	for _, one := range []*Target{target, alone} {
		require.Error(t, show(one, start, typeText, "a 1\n}\n", 1<<20).Err)
	}
	target.Fail(start.Add(calm), down)
	require.Zero(t, target.cohort.looked.Load(), "they were put aside")
	got, want := show(target, start.Add(2*calm), typeText, "up 5\n", 1<<20), show(alone, start.Add(2*calm), typeText, "up 5\n", 1<<20)
	require.NoError(t, want.Err)
	require.Equal(t, canon(want.Metrics), canon(got.Metrics))
	require.Equal(t, want.Metrics.DataPointCount(), got.Metrics.DataPointCount())
}
