// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/tree"
)

// ofItsOwn returns a page with values of its own, and without some of its lines. Many of the lines have the application
// as a label.
func ofItsOwn(page string, target int, app string, r *rand.Rand) string {
	var b strings.Builder
	skip := ""
	for line := range strings.Lines(page) {
		if skip != "" && strings.Contains(line, skip) {
			continue
		}
		if _, id, ok := strings.Cut(line, `id="`); ok && r.IntN(40) == 0 {
			skip = `id="` + id[:strings.IndexByte(id, '"')+1] // all lines of a point
			continue
		}
		if name, rest, ok := strings.Cut(line, "{"); ok && line[0] != '#' && strings.Contains(rest, "id=") && app != "" {
			line = name + `{app="` + app + `",` + rest
		}
		if target%2 == 0 { // half of the targets share no lines with others
			line = strings.ReplaceAll(line, `id="`, fmt.Sprintf(`id="target %d's `, target))
		}
		b.WriteString(line)
	}
	return b.String()
}

// Targets with the same metrics about different things reuse each other's trees.
func TestTargetsOfTheirOwnShareTrees(t *testing.T) {
	racetest.Sequential(t)
	waiting := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		g := newGenerator(seed, seed%2 == 1, false)
		m := media(g.openMetrics)
		cfg := Config{Scrape: testScrapeConfig()}
		reusing := cfg
		reusing.Reuse = true
		trees, fresh := newTestJob(t, reusing), newTestJob(t, cfg)
		var targets, oracles []*Target
		for i := range tree.FewPlans + 3 {
			targets = append(targets, testTarget(trees, i, "zone", fmt.Sprint("z", i)))
			oracles = append(oracles, testTarget(fresh, i, "zone", fmt.Sprint("z", i)))
		}
		filled := 0
		for n := range 12 {
			at := start.Add(time.Duration(n) * time.Second)
			page := g.page()
			for i := range targets {
				app := []string{"", fmt.Sprint("app-", i), fmt.Sprint("app-", i), fmt.Sprint("app-", i+n/5)}[seed%4]
				own := ofItsOwn(page, i, app, rand.New(rand.NewPCG(seed, uint64(n/3*100+i))))
				want, got := show(oracles[i], at, m, own, 1<<20), show(targets[i], at, m, own, 1+r.IntN(200))
				require.NoError(t, want.Err)
				require.Equal(t, canon(want.Metrics), canon(got.Metrics), "seed %d page %d target %d\n%s", seed, n, i, own)
				if got.tree != nil {
					filled++
				}
				if r.IntN(8) > 0 {
					got.Release()
				}
			}
			if n%3 == 2 {
				g.change()
			}
		}
		require.Positive(t, filled)
		require.False(t, trees.tree.Changed.Load(), "nobody changed what was handed out")
		for _, c := range trees.cohorts {
			pools, some := c.pools.Waiting()
			waiting += some
			require.LessOrEqual(t, some, pools*(runtime.GOMAXPROCS(0)+tree.FewPlans-1))
		}
		for _, target := range targets {
			target.Retire(start)
		}
		for _, c := range trees.cohorts {
			pools, _ := c.pools.Waiting()
			require.Zero(t, pools)
		}
	}
	require.Positive(t, waiting)
}

func TestTargetsOfTheirOwnAtTheSameTime(t *testing.T) {
	cfg := Config{Scrape: testScrapeConfig()}
	cfg.Scrape.MetricRelabelConfigs = []*relabel.Config{{
		SourceLabels: model.LabelNames{"instance"}, Regex: relabel.MustNewRegexp("(.*):.*"), TargetLabel: "node", Replacement: "$1",
		Action: relabel.Replace, Separator: ";", NameValidationScheme: cfg.Scrape.MetricNameValidationScheme,
	}}
	reusing := cfg
	reusing.Reuse = true
	shared := newTestJob(t, reusing)
	var done sync.WaitGroup
	for i := range 2 * tree.FewPlans {
		done.Go(func() {
			g := newGenerator(uint64(i/4), false, false)
			target, oracle := testTarget(shared, i), testTarget(newTestJob(t, cfg), i)
			for n := range 30 {
				at := start.Add(time.Duration(n) * time.Second)
				page := ofItsOwn(g.page(), i, fmt.Sprint("app-", i+n/20), rand.New(rand.NewPCG(1, uint64(n/5))))
				want, got := show(oracle, at, typeText, page, 1<<20), show(target, at, typeText, page, 100)
				assert.Equal(t, canon(want.Metrics), canon(got.Metrics))
				got.Release()
				if n%4 == 0 {
					g.change()
				}
			}
			target.Retire(start)
		})
	}
	done.Wait()
	require.False(t, shared.tree.Changed.Load())
	require.Equal(t, Stats{}, shared.Stats())
}

// A target keeps only short values besides its lines, whatever its page contains.
func TestLongValuesAreNoTargetsOwn(t *testing.T) {
	for length, isOwn := range map[int]bool{catalog.LongestOwn: true, catalog.LongestOwn + 1: false} {
		j := newTestJob(t, Config{Scrape: testScrapeConfig()})
		var targets []*Target
		for i := range 4 {
			targets = append(targets, testTarget(j, i))
		}
		for i, target := range targets {
			app := strings.Repeat(fmt.Sprint(i), length)
			if i == 3 { // nor is a long one learned from others' plans
				app, isOwn = strings.Repeat("3", catalog.LongestOwn+1), false
			}
			var page strings.Builder
			for n := range 2 * catalog.FewFresh {
				fmt.Fprintf(&page, "m{n=\"%d\",app=%q} 1\n", n, app)
			}
			require.NoError(t, show(target, start, typeText, page.String(), 1<<20).Err)
			require.Equal(t, isOwn && i > 0, len(target.Own) > 0, "of the first nobody can tell yet")
		}
	}
}

// A series limit counts the series that the target has, however much of their lines is in slots.
func TestSeriesLimitCountsLinesWithSlots(t *testing.T) {
	j := newTestJob(t, Config{Scrape: testScrapeConfig(), SeriesLimit: 20})
	var targets []*Target
	for i := range 3 {
		targets = append(targets, testTarget(j, i))
	}
	for n := range 4 {
		for i, target := range targets {
			var page strings.Builder
			for k := range 2 * catalog.FewFresh {
				fmt.Fprintf(&page, "m{n=\"%d\",app=\"app-%d\"} %d\n", (k+n*i)%(2*catalog.FewFresh), i, n)
			}
			r := show(target, start.Add(time.Duration(n)*time.Second), typeText, page.String(), 1<<20)
			require.NoError(t, r.Err)
			require.Equal(t, 2*catalog.FewFresh-20, r.Limited)
			require.Equal(t, 20, find(t, r.Metrics, "m").Gauge().DataPoints().Len())
		}
	}
}

// Reading a page with values of its own allocates one value for each label that differs from other targets.
func TestScrapesOfTheirOwnAllocateLittle(t *testing.T) {
	t.Cleanup(handback.Poison(false)) // it takes memory
	const points = 500
	j := newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: true})
	var targets []*Target
	var pages []string
	for i := range 4 * tree.FewPlans {
		var b strings.Builder
		for n := range points {
			fmt.Fprintf(&b, "m%d{device=\"d%d\",pod=\"app-%d\"} %d\n", n%50, n, i, n)
		}
		targets, pages = append(targets, testTarget(j, i)), append(pages, b.String())
	}
	n := 0
	scrape := func() {
		i := n % len(targets)
		r := show(targets[i], start.Add(time.Duration(n)*time.Second), typeText, pages[i], 1<<20)
		require.NoError(t, r.Err)
		r.Release()
		n++
	}
	for range 3 * len(targets) {
		scrape()
	}
	require.Less(t, testing.AllocsPerRun(4*len(targets), scrape), 1.2*points)
}

// Pages with the same metrics and any sizes, such as those of one program, use a few trees in turn. What a larger page
// needs is still there from the last time.
func TestPagesOfAllSizesShareTrees(t *testing.T) {
	j := newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: true})
	var targets []*Target
	var pages []string
	for i := range 4 * tree.FewPlans {
		var b strings.Builder
		b.WriteString("# TYPE m gauge\n")
		for n := range 20 * (i + 1) {
			fmt.Fprintf(&b, "m{device=\"d%d\"} %d # {trace_id=\"0123456789abcdef0123456789abcdef\"} 1\n", n, n)
		}
		b.WriteString("# TYPE h histogram\n")
		for n := range 5 * (i + 1) {
			fmt.Fprintf(&b, "h_bucket{device=\"d%d\",le=\"1\"} 1 # {trace_id=\"0123456789abcdef0123456789abcdef\"} 1\n", n)
			fmt.Fprintf(&b, "h_bucket{device=\"d%d\",le=\"+Inf\"} 2\nh_sum{device=\"d%d\"} 3\nh_count{device=\"d%d\"} 2\n", n, n, n)
		}
		b.WriteString("# EOF\n")
		targets, pages = append(targets, testTarget(j, i)), append(pages, b.String())
	}
	n := 0
	scrape := func() {
		i := n * 7 % len(targets)
		r := show(targets[i], start.Add(time.Duration(n)*time.Second), media(true), pages[i], 1<<20)
		require.NoError(t, r.Err)
		r.Release()
		n++
	}
	for range 4 * len(targets) {
		scrape()
	}
	const points = (20 + 5) * (4*tree.FewPlans + 1) / 2
	require.Less(t, testing.AllocsPerRun(4*len(targets), scrape), 0.2*points)
}
