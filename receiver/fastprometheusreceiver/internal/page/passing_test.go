// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/tree"
)

// kindPage returns the page of a kind of program that has little in common with others.
func kindPage(kind, series int) []byte {
	var b strings.Builder
	for i := 0; i < series; i += 18 {
		fmt.Fprintf(&b, "# TYPE k%d_c%d_total counter\n", kind, i)
		for n := range 5 {
			fmt.Fprintf(&b, "k%d_c%d_total{handler=\"/%d\",code=\"200\"} %d\n", kind, i, n, n)
		}
		fmt.Fprintf(&b, "# TYPE k%d_s%d summary\n", kind, i)
		fmt.Fprintf(&b, "k%d_s%d{quantile=\"0.5\"} 1\nk%d_s%d{quantile=\"0.9\"} 1\nk%d_s%d_sum 1\nk%d_s%d_count 1\n", kind, i, kind, i, kind, i, kind, i)
		fmt.Fprintf(&b, "# TYPE k%d_h%d histogram\n", kind, i)
		for _, le := range []string{"0.1", "0.2", "0.4", "0.8", "1.6", "3.2", "+Inf"} {
			fmt.Fprintf(&b, "k%d_h%d_bucket{le=%q} 1\n", kind, i, le)
		}
		fmt.Fprintf(&b, "k%d_h%d_sum 1\nk%d_h%d_count 1\n", kind, i, kind, i)
	}
	return []byte(b.String())
}

// For pages that are seldom scraped, only the meaning of their lines is kept, whatever they share. Metrics are made
// anew, in memory that all use in turn.
func TestMemoryOfUnlikePages(t *testing.T) {
	racetest.Sequential(t)
	t.Cleanup(handback.Poison(false)) // it loses what is kept
	const kinds, series = 40, 1800
	kept := func(idle int64) (perSeries, garbage float64) {
		j := newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: true})
		j.tree.Idle = idle
		targets, pages := make([]*Target, kinds), make([][]byte, kinds)
		for i := range targets {
			targets[i], pages[i] = testTarget(j, i), kindPage(i, series)
		}
		at := start
		scrape := func() {
			at = at.Add(20 * time.Second)
			for i := range targets {
				r := showBytes(targets[i], at, typeText, pages[i])
				require.NoError(t, r.Err)
				for r.Pending() > 0 {
					r = r.Next()
				}
				r.Release()
			}
		}
		before := heap()
		for range 3 {
			scrape()
		}
		perSeries = float64(heap()-before) / (kinds * series)
		var was, is runtime.MemStats
		runtime.ReadMemStats(&was)
		scrape()
		runtime.ReadMemStats(&is)
		for _, target := range targets {
			target.Retire(at)
		}
		return perSeries, float64(is.TotalAlloc-was.TotalAlloc) / (kinds * series)
	}
	none, garbage := kept(noTrees)
	all, _ := kept(1 << 20)
	few, _ := kept(tree.IdlePoints)
	t.Logf("kept %.0f B a series without trees, %.0f B where there is room for few, %.0f B where for all; garbage of a scrape without %.0f B", none, few, all, garbage)
	require.LessOrEqual(t, none, 345.0)
	require.LessOrEqual(t, few, none+10, "there is no room for all")
	if !racetest.Enabled { // with the race detector, pools drop their content
		require.LessOrEqual(t, garbage, 30.0)
	}
}
