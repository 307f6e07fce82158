// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A part has all metrics of a few pods, in the order of the page, and no pod is in two parts.
func TestPartsAreAboutTheSame(t *testing.T) {
	const pods, perPod = 100, 5
	var b strings.Builder
	for _, more := range []string{"created", "phase:a:b", "info", "labels:x"} {
		name, rest, _ := strings.Cut(more, ":")
		for i := range pods {
			for phase := range strings.SplitSeq(rest, ":") {
				if phase != "" {
					phase = fmt.Sprintf(`,phase="%s"`, phase)
				}
				fmt.Fprintf(&b, "%s{namespace=\"n%d\",pod=\"p%d\",uid=\"u%d\"%s} %d\n", name, i%3, i, i*7, phase, i)
			}
		}
	}
	j := newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: true})
	setParts(j, 10*perPod, 10*perPod)
	j.rules.MostWhole = 30
	target := testTarget(j, 1)
	for range 2 {
		r := show(target, start, typeText, b.String(), 1<<20)
		require.Equal(t, pods*perPod+5, r.Metrics.DataPointCount()+r.Pending())
		for part := range pods / 10 {
			require.Equal(t, j.tree.Part, r.Metrics.DataPointCount())
			metrics := r.Metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
			require.Equal(t, 4, metrics.Len())
			for _, m := range metrics.All() {
				points := m.Gauge().DataPoints()
				for i, dp := range points.All() {
					want := 10*part + i*10/points.Len()
					pod, _ := dp.Attributes().Get("pod")
					require.Equal(t, fmt.Sprintf("p%d", want), pod.Str())
					require.Equal(t, want, int(dp.DoubleValue()))
				}
			}
			r = r.Next()
		}
		require.True(t, has(r.Metrics, "up"))
		require.Zero(t, r.Pending())
		r.Release()
	}
}

// If all series are about the same thing, the order of the page is kept.
func TestPartsAboutOneThing(t *testing.T) {
	var names []string
	for i := range 30 {
		names = append(names, fmt.Sprintf("m%02d", i))
	}
	j := newTestJob(t, Config{Scrape: testScrapeConfig()})
	setParts(j, 4, 4)
	r := show(testTarget(j, 1), start, typeText, strings.Join(names, "{a=\"b\"} 1\n")+"{a=\"b\"} 1\n", 1<<20)
	var got []string
	for more := true; more; more = r.Pending() > 0 {
		if len(got) > 0 {
			r = r.Next()
		}
		for _, m := range r.Metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			got = append(got, m.Name())
		}
	}
	require.Equal(t, names, slices.Clip(got[:30]))
	require.Len(t, got, 35)
}
