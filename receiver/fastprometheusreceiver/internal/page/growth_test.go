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
)

// least returns the least time that something takes in some attempts, each prepared anew.
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

// requireLinear wants what is done to sixteen times as much to take about as long as to do it sixteen times: both are as
// long, so a busy machine lengthens both, if not by as much each time: what one of many attempts shows needs no other.
func requireLinear(t *testing.T, n int, prepare func(n int) func()) {
	t.Helper()
	took := func(all ...func()) time.Duration {
		began := time.Now()
		for _, do := range all {
			do()
		}
		return time.Since(began)
	}
	few, many := time.Hour, time.Hour
	for range 15 {
		var all []func()
		for range 16 {
			all = append(all, prepare(n))
		}
		few, many = min(few, took(all...)), min(many, took(prepare(16*n)))
		if many < 6*few {
			return
		}
	}
	require.Less(t, many, 6*few, "%v for a few at a time", few)
}

// A page whose lines are in another order, group by group, makes a scrape look ahead in vain again and again. That is no
// more work than to read the page.
func TestSearchesAreBounded(t *testing.T) {
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
		require.LessOrEqual(t, s.search.vain, (vainPages+vainLines)*lines, "groups of %d", group)
		res := s.End(Report{})
		require.Equal(t, lines, res.Samples)
		require.Zero(t, res.Added)
	}
}

// What is far ahead is found all the same.
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
	require.Less(t, s.search.tried, 20)
	require.Equal(t, 5000, s.End(Report{}).Samples)
}

// A large page may say as many things as it has samples. Its points are recycled no less than those of one that says a few
// things about many.
func TestPartsOfManyMetrics(t *testing.T) {
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

func TestRoundsOfManyMetrics(t *testing.T) {
	j := newTestJob(t, Config{Scrape: testScrapeConfig()})
	j.part, j.round = 4, 4
	c := testTarget(j, 1).cohort
	requireLinear(t, 1000, func(n int) func() {
		l := &layout{}
		for i := range int32(n) {
			b := &base{name: fmt.Sprint("m", i)}
			body := piece(fmt.Sprintf("m%d{pod=\"p%d\"}", i, i))
			l.points = append(l.points, &point{line: &line{text: text{body: &body}}})
			l.metrics = append(l.metrics, placedMetric{family: &family{base: b}, first: i, points: 1})
		}
		return func() {
			c.order(l)
			require.Len(t, l.runs, n)
		}
	})
}

// Metrics that change are found in whatever order they come.
func TestChangesOfManyMetrics(t *testing.T) {
	requireLinear(t, 1000, func(n int) func() {
		l, x := &layout{}, &variation{extra: &layout{}}
		for range n {
			l.metrics = append(l.metrics, placedMetric{family: &family{}, points: 1})
		}
		for i := range n {
			x.extra.metrics = append(x.extra.metrics, placedMetric{family: l.metrics[n-1-i].family, first: int32(i), points: 1})
		}
		return func() {
			require.True(t, x.find(l))
			require.Len(t, x.changes, n)
			require.Equal(t, change{metric: int32(n - 1), count: 1}, x.changes[n-1])
			require.Equal(t, change{metric: 0, first: int32(n - 1), count: 1}, x.changes[0])
		}
	})
}
