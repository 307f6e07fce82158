// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/tree"
)

// said returns the identities of the points, in order.
func said(md pmetric.Metrics) (all []string) {
	note := func(name string, m pcommon.Map) { all = append(all, fmt.Sprint(name, m.AsRaw())) }
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				switch m.Type() {
				case pmetric.MetricTypeSum:
					for _, dp := range m.Sum().DataPoints().All() {
						note(m.Name(), dp.Attributes())
					}
				case pmetric.MetricTypeHistogram:
					for _, dp := range m.Histogram().DataPoints().All() {
						note(m.Name(), dp.Attributes())
					}
				case pmetric.MetricTypeSummary:
					for _, dp := range m.Summary().DataPoints().All() {
						note(m.Name(), dp.Attributes())
					}
				case pmetric.MetricTypeExponentialHistogram:
					for _, dp := range m.ExponentialHistogram().DataPoints().All() {
						note(m.Name(), dp.Attributes())
					}
				default:
					for _, dp := range m.Gauge().DataPoints().All() {
						note(m.Name(), dp.Attributes())
					}
				}
			}
		}
	}
	return all
}

// Targets with values of their own reuse each other's trees, and these values are deferred until the consumer asks. If it asks, it
// gets the same metrics as new ones; and what it has noted about a wording stays right, whatever changes in between,
// and whether or not others ask.
func TestValuesOfTheirOwnAreDeferred(t *testing.T) {
	testDeferred(t, func(page string, seed uint64, n, target int) string {
		return ofItsOwn(page, 1, fmt.Sprint("app-", target+n/7*int(seed%2)), rand.New(rand.NewPCG(seed, uint64(n/8*100))))
	})
}

// So are all attributes where targets have the same metrics about different things, such as ports of switches: as many as
// others have, or not.
func TestPointsOfTheirOwnAreDeferred(t *testing.T) {
	testDeferred(t, func(page string, seed uint64, n, target int) string {
		about := 100 * seed
		if target%4 == 3 {
			about += uint64(target)
		}
		return aboutOthers(ofItsOwn(page, 1, "", rand.New(rand.NewPCG(about, uint64(n/8)))), target+n/9*int(seed%3))
	})
}

// aboutOthers returns a page about other things, some of which have more to be said about them.
func aboutOthers(page string, target int) string {
	var b strings.Builder
	for line := range strings.Lines(page) {
		before, rest, ok := strings.Cut(line, `id="`)
		if !ok || line[0] == '#' {
			b.WriteString(line)
			continue
		}
		h := fnv.New32a()
		fmt.Fprint(h, target, rest[:strings.IndexByte(rest, '"')])
		if h.Sum32()%5 == 0 {
			before += fmt.Sprintf(`alias="of %d",`, target)
		}
		fmt.Fprintf(&b, `%sid="target %d's %s`, before, target, rest)
	}
	return b.String()
}

// testDeferred has targets show pages made of generated ones.
func testDeferred(t *testing.T, pageOf func(page string, seed uint64, n, target int) string) {
	racetest.Sequential(t)
	deferred, known := 0, 0
	always := handback.Poisons()
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Cleanup(handback.Poison(seed%3 == 0 || always))
			r := rand.New(rand.NewPCG(seed, 9))
			g := newGenerator(seed, seed%2 == 1, false)
			m := media(g.openMetrics)
			cfg := Config{Scrape: testScrapeConfig()}
			reusing := cfg
			reusing.Reuse, reusing.Unread = true, true
			trees, fresh := newTestJob(t, reusing), newTestJob(t, cfg)
			var targets, oracles []*Target
			for i := range tree.FewPlans + 3 {
				targets = append(targets, testTarget(trees, i, "zone", fmt.Sprint("z", i)))
				oracles = append(oracles, testTarget(fresh, i, "zone", fmt.Sprint("z", i)))
			}
			exporter := new(int)
			for n := range 24 {
				at := start.Add(time.Duration(n) * time.Second)
				page := g.page()
				for i := range targets {
					own := pageOf(page, seed, n, i)
					want, got := show(oracles[i], at, m, own, 1<<20), show(targets[i], at, m, own, 1+r.IntN(200))
					require.NoError(t, want.Err)
					var loan *handback.Loan
					if got.Loan() != nil {
						loan = handback.LoanOf(handback.Lend(t.Context(), got.Loan(), got.Metrics), got.Metrics)
					}
					points, defers := 0, false
					if r.IntN(12) > 0 { // otherwise nobody has asked
						points, defers = loan.Defers()
					}
					if defers {
						deferred++
						require.NotNil(t, loan.Wording())
						require.Equal(t, got.Metrics.DataPointCount(), points)
					}
					if defers && r.IntN(3) == 0 { // the consumer believes that it knows the points already
						got.Release()
						continue
					}
					if loan != nil {
						loan.Settle()
					}
					require.Equal(t, canon(want.Metrics), canon(got.Metrics), "seed %d page %d target %d\n%s", seed, n, i, own)
					if defers {
						if noted, ok := loan.Wording().Note(exporter).([]string); ok {
							known++
							require.Equal(t, noted, said(got.Metrics), "seed %d page %d target %d", seed, n, i)
						}
						loan.Wording().Leave(exporter, said(got.Metrics))
					}
					if r.IntN(8) > 0 {
						got.Release()
					}
				}
				if n%6 == 5 {
					g.change()
				}
			}
			require.False(t, trees.tree.Changed.Load(), "nobody changed what was handed out")
		})
	}
	require.Positive(t, deferred)
	require.Greater(t, known, deferred/4)
}

// Targets with values of their own reuse each other's trees where attributes of points come back changed: each gets its
// own values, and no change stays.
func TestValuesOfTheirOwnArePutBack(t *testing.T) {
	racetest.Sequential(t)
	again, always := 0, handback.Poisons()
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Cleanup(handback.Poison(seed%3 == 0 || always))
			r := rand.New(rand.NewPCG(seed, 19))
			g := newGenerator(seed, seed%2 == 1, false)
			m := media(g.openMetrics)
			cfg := Config{Scrape: testScrapeConfig()}
			changed := cfg
			changed.Reuse, changed.Changes = true, handback.Changes{Points: true}
			trees, fresh := newTestJob(t, changed), newTestJob(t, cfg)
			var targets, oracles []*Target
			for i := range tree.FewPlans + 3 {
				targets = append(targets, testTarget(trees, i, "zone", fmt.Sprint("z", i)))
				oracles = append(oracles, testTarget(fresh, i, "zone", fmt.Sprint("z", i)))
			}
			seen := map[pmetric.Metrics]bool{}
			for n := range 16 {
				at := start.Add(time.Duration(n) * time.Second)
				page := g.page()
				for i := range targets {
					own := ofItsOwn(page, 1, fmt.Sprint("app-", i+n/7*int(seed%2)), rand.New(rand.NewPCG(seed, uint64(n/8*100))))
					want, got := show(oracles[i], at, m, own, 1<<20), show(targets[i], at, m, own, 1+r.IntN(200))
					require.NoError(t, want.Err)
					require.Equal(t, canon(want.Metrics), canon(got.Metrics), "seed %d page %d target %d\n%s", seed, n, i, own)
					changeAttributes(r, changed.Changes, got.Metrics)
					if seen[got.Metrics] {
						again++
					}
					if r.IntN(8) > 0 {
						seen[got.Metrics] = true
						got.Release()
					}
				}
				if n%6 == 5 {
					g.change()
				}
			}
			require.False(t, trees.tree.Changed.Load(), "nothing but attributes of points was changed")
		})
	}
	require.Positive(t, again)
}

// Metrics for which no tree is kept are made anew each time, whole or in parts. What a consumer has noted about their
// wording stays right, whatever changes in between; and pages that stay the same are recognized.
func TestPointsOfMetricsMadeAnewAreKnown(t *testing.T) {
	racetest.Sequential(t)
	pages, known := 0, 0
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 10))
			g := newGenerator(seed, seed%2 == 1, false)
			j := newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: true, Unread: true})
			j.tree.Idle = noTrees
			if seed%3 > 0 {
				j.tree.Part = 3
			}
			var targets []*Target
			for i := range 5 {
				targets = append(targets, testTarget(j, i, "zone", fmt.Sprint("z", i)))
			}
			consumer := new(int)
			for n := range 24 {
				page := g.page()
				for i, target := range targets {
					own := ofItsOwn(page, 1, fmt.Sprint("app-", i+n/7*int(seed%2)), rand.New(rand.NewPCG(seed, uint64(n/8*100))))
					res := show(target, start.Add(time.Duration(n)*time.Second), media(g.openMetrics), own, 1<<20)
					require.NoError(t, res.Err)
					for {
						pages++
						is := said(res.Metrics)
						loan := handback.LoanOf(handback.Lend(t.Context(), res.Loan(), res.Metrics), res.Metrics)
						if w := loan.Wording(); w != nil {
							if noted, ok := w.Note(consumer).([]string); ok {
								known++
								require.Equal(t, noted, is, "seed %d page %d target %d\n%s", seed, n, i, own)
							}
							w.Leave(consumer, is)
						}
						if r.IntN(4) == 0 {
							loan.Unword() // as a consumer that takes points out
						}
						_, defers := loan.Defers()
						require.False(t, defers, "all attributes are there")
						if res.Pending() == 0 || r.IntN(40) == 0 {
							break
						}
						res = res.Next()
					}
					if r.IntN(8) > 0 {
						res.Release()
					}
				}
				if n%6 == 5 {
					g.change()
				}
			}
		})
	}
	require.Greater(t, known, pages/4)
}
