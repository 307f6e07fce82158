// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
)

// With batches, an exporter hands back the metrics of many scrapes at once, and they are reused. A batch has the same
// content as new metrics, whatever was reused in between.
func TestMetricsComeBackOutOfBatches(t *testing.T) {
	for _, removes := range []bool{false, true} {
		for _, poison := range []bool{false, true} {
			t.Run(fmt.Sprintf("removes=%v/poison=%v", removes, poison), func(t *testing.T) {
				t.Cleanup(handback.Poison(poison))
				testBatches(t, removes)
			})
		}
	}
}

func testBatches(t *testing.T, removes bool) {
	t.Helper()
	later, anew := newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: true, Later: true, Changes: handback.Changes{Removes: removes}}), newTestJob(t, Config{Scrape: testScrapeConfig()})
	const targets = 12
	var all [targets][2]*Target
	for i := range all {
		all[i] = [2]*Target{testTarget(later, i), testTarget(anew, i)}
	}
	random := rand.New(rand.NewPCG(8, 19))
	batch, want, again, sent := pmetric.NewMetrics(), pmetric.NewMetrics(), 0, 0
	known := map[pmetric.Metrics]bool{}
	for n := range 40 * targets {
		at := start.Add(time.Duration(n) * time.Second)
		page := mixedPage(random.IntN(3), n%7 == 0)
		r, plain := show(all[n%targets][0], at, typeText, page, 1<<20), show(all[n%targets][1], at, typeText, page, 1<<20)
		if known[r.Metrics] {
			again++
		}
		known[r.Metrics] = true
		if r = r.Send(); r.sent != nil {
			sent++
		}
		if random.IntN(20) == 0 {
			r.Recall()
			continue
		}
		if removes {
			removeSame(r.Metrics, n)
			removeSame(plain.Metrics, n)
		}
		r.Metrics.ResourceMetrics().MoveAndAppendTo(batch.ResourceMetrics())
		r.Release()
		plain.Metrics.ResourceMetrics().MoveAndAppendTo(want.ResourceMetrics())
		if random.IntN(5) == 0 {
			arrived := handback.Arrive(batch)
			require.Equal(t, canon(want), canon(batch), "scrape %d", n)
			handback.Return(arrived)
			batch, want = pmetric.NewMetrics(), pmetric.NewMetrics()
		}
	}
	require.Greater(t, sent, 30*targets)
	require.Greater(t, again, sent/2)
	handback.Abandon(batch)
	require.False(t, later.tree.Changed.Load())
}

// removeSame removes metrics and points, others each time, and the same from equal metrics. Some are always left.
func removeSame(md pmetric.Metrics, n int) {
	gone := func(text string) bool { return crc32.ChecksumIEEE(fmt.Append(nil, n, text))%5 == 0 }
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			sm.Metrics().RemoveIf(func(m pmetric.Metric) bool {
				if m.Type() == pmetric.MetricTypeGauge {
					m.Gauge().DataPoints().RemoveIf(func(dp pmetric.NumberDataPoint) bool { return gone(fmt.Sprint(dp.Attributes().AsRaw())) })
				}
				return m.Name() != "up" && gone(m.Name())
			})
		}
	}
}

// Parts of large pages, and pages for which no tree is kept, are not handed back, but made anew.
func TestOnlyTreesAreSent(t *testing.T) {
	for _, kind := range []string{"passing", "large"} {
		j := newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: true, Later: true})
		if kind == "large" {
			setParts(j, 4, 8)
		} else {
			j.tree.Idle = noTrees
		}
		target := testTarget(j, 1)
		var kept []pmetric.Metrics
		var want []string
		for n := range 6 {
			for r := show(target, start.Add(time.Duration(n)*time.Second), typeText, mixedPage(n, false), 1<<20); ; r = r.Next() {
				r = r.Send()
				require.Nil(t, r.sent)
				require.Nil(t, r.Loan())
				kept, want = append(kept, r.Metrics), append(want, canon(r.Metrics)...)
				if r.Pending() == 0 {
					r.Release()
					break
				}
			}
		}
		var got []string
		for _, md := range kept {
			got = append(got, canon(md)...)
		}
		require.Equal(t, want, got)
	}
}
