// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Samples whose timestamp differs from that of their point are not part of it, both on the first page and on pages that
// follow the plan.
func TestPartsOfAPointHaveItsTime(t *testing.T) {
	t.Parallel()
	for late, want := range map[string]string{
		"none":  "2 true 3 [1] [1 1]",
		"sum":   "2 false 0 [1] [1 1]",
		"count": "2 false 0 [] [2]",
	} {
		target := testTarget(newTestJob(t, Config{Scrape: testScrapeConfig()}), 0)
		for n := range int64(3) {
			at := func(part string) int64 {
				if part == late {
					return start.UnixMilli() + 1000*n - 50
				}
				return start.UnixMilli() + 1000*n
			}
			page := fmt.Sprintf("# TYPE h histogram\nh_bucket{le=\"1\"} 1 %d\nh_bucket{le=\"+Inf\"} 2 %d\nh_sum 3 %d\nh_count 2 %d\n",
				at("bucket"), at("bucket"), at("sum"), at("count"))
			got := canon(show(target, start.Add(time.Duration(n)*time.Second), typeText, page, 1<<20).Metrics)
			require.Contains(t, strings.Join(got, "\n"), ": Cumulative "+want, "late is %s, page %d", late, n)
		}
	}
}

// A series that appeared in addition to a plan and disappears gets a stale marker, unless it had timestamps of its own.
func TestWhatCameWithATimeEndsWithoutAMarker(t *testing.T) {
	t.Parallel()
	for _, timed := range []bool{false, true} {
		target := testTarget(newTestJob(t, Config{Scrape: testScrapeConfig()}), 0)
		for n, more := range []bool{false, false, true, true, false, false} {
			var b strings.Builder
			ms := start.UnixMilli() + 1000*int64(n)
			for i := range 200 {
				fmt.Fprintf(&b, "m{i=\"%d\"} 1 %d\n", i, ms)
			}
			if more {
				b.WriteString("m{i=\"new\"} 1")
				if timed {
					fmt.Fprintf(&b, " %d", ms)
				}
				b.WriteByte('\n')
			}
			got := show(target, start.Add(time.Duration(n)*time.Second), typeText, b.String(), 1<<20)
			require.NoError(t, got.Err)
			require.Equal(t, more, !target.Diff.IsEmpty(), "page %d: it is told from what it has beside a plan", n)
			require.Equal(t, n == 4 && !timed, hasEnded(got.Metrics), "page %d, timed %v", n, timed)
		}
	}
}

func hasEnded(md pmetric.Metrics) bool {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Type() != pmetric.MetricTypeGauge {
					continue
				}
				for _, p := range m.Gauge().DataPoints().All() {
					if p.Flags().NoRecordedValue() {
						return true
					}
				}
			}
		}
	}
	return false
}
