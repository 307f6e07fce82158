// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/growthtest"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

// least returns the shortest time of several attempts, each with new preparations.
func least(prepare func() func()) time.Duration {
	least := time.Hour
	for range 5 {
		do := prepare()
		began := time.Now()
		do()
		least = min(least, time.Since(began))
	}
	return least
}

// A page whose lines have another order, group by group, makes a scrape search ahead in vain repeatedly. That takes no
// longer than reading the page.
func TestSearchesAreBounded(t *testing.T) {
	racetest.Sequential(t)
	const lines = 16_000
	for _, group := range []int{2, 12, 30, 100, 1000, lines} {
		r := rand.New(rand.NewPCG(1, uint64(group)))
		page := func() string {
			var b strings.Builder
			for first := 0; first < lines; first += group {
				for _, i := range r.Perm(min(group, lines-first)) {
					fmt.Fprintf(&b, "m{pod=\"p%d\"} 1\n", first+i)
				}
			}
			return b.String()
		}
		target := testTarget(newTestJob(t, Config{Scrape: testScrapeConfig()}), 1)
		require.NoError(t, show(target, start, typeText, page(), 1<<20).Err)
		s, err := target.Begin(start, typeText)
		require.NoError(t, err)
		require.NoError(t, s.Feed([]byte(page())))
		require.LessOrEqual(t, s.search.Wasted, plan.MostWasted(lines, lines), "groups of %d", group)
		res := s.End(Report{})
		require.Equal(t, lines, res.Samples)
		require.Zero(t, res.Added)
	}
}

// A line far ahead is still found.
func TestSearchesReachFar(t *testing.T) {
	const lines = 20_000
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "m{pod=\"p%d\"} 1\n", i)
	}
	page := b.String()
	target := testTarget(newTestJob(t, Config{Scrape: testScrapeConfig()}), 1)
	require.NoError(t, show(target, start, typeText, page, 1<<20).Err)
	s, err := target.Begin(start, typeText)
	require.NoError(t, err)
	_, rest, found := strings.Cut(page, "m{pod=\"p14999\"} 1\n")
	require.True(t, found)
	require.NoError(t, s.Feed([]byte(rest)))
	require.Equal(t, lines, s.next)
	require.Less(t, s.search.Tried, 20)
	require.Equal(t, 5000, s.End(Report{}).Samples)
}

// A large page may have as many metrics as samples. Its parts take no longer than those of a page with few metrics.
func TestPartsOfManyMetrics(t *testing.T) {
	racetest.Sequential(t)
	const points = 40_000
	took := func(metrics int) time.Duration {
		var b strings.Builder
		for i := range points {
			fmt.Fprintf(&b, "m%d{pod=\"p%d\"} 1\n", i*metrics/points, i)
		}
		target := testTarget(newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: true}), 1)
		require.NoError(t, show(target, start, typeText, b.String(), 1<<20).Err)
		return least(func() func() {
			r := show(target, start, typeText, b.String(), 1<<20)
			return func() {
				for r.Pending() > 0 {
					r = r.Next()
				}
			}
		})
	}
	few, many := took(40), took(points)
	require.Less(t, many, 40*few, "%v for a few metrics", few)
}

// The parts of a large page are assembled in rounds, however many metrics there are.
func TestRoundsOfManyMetrics(t *testing.T) {
	racetest.Sequential(t)
	growthtest.RequireLinear(t, 1000, func(n int) func() {
		j := newTestJob(t, Config{Scrape: testScrapeConfig()})
		setParts(j, 4, 4)
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "m%d{pod=\"p%d\"} 1\n", i, i)
		}
		s, err := testTarget(j, 1).Begin(start, typeText)
		require.NoError(t, err)
		require.NoError(t, s.Feed([]byte(b.String())))
		return func() { require.NoError(t, s.End(Report{}).Err) }
	})
}
