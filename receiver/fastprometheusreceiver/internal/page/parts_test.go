// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/tree"
)

// merged returns the metrics of all parts of a result.
func merged(t *testing.T, r Result) pmetric.Metrics {
	md, _ := merge(t, r)
	return md
}

// merge returns the metrics of all parts, and the result with the last part.
func merge(t *testing.T, r Result) (pmetric.Metrics, Result) {
	if r.parts == nil {
		return r.Metrics, r
	}
	all := pmetric.NewMetrics()
	most := r.parts.Owner.Tree.Part
	for {
		require.LessOrEqual(t, r.Metrics.DataPointCount(), most)
		part := pmetric.NewMetrics() // a copy, because the points are reused
		r.Metrics.CopyTo(part)
		part.ResourceMetrics().MoveAndAppendTo(all.ResourceMetrics())
		if r.Pending() == 0 {
			return all, r
		}
		r = r.Next()
	}
}

func TestLargePagesComeInParts(t *testing.T) {
	racetest.Sequential(t)
	for _, reuse := range []bool{false, true} {
		target := testTarget(newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: reuse}), 1)
		page := bigText(5 * tree.RoundPoints)
		shorter := strings.Replace(page, fmt.Sprintf("pod=\"pod-%d-", 3*tree.RoundPoints), "pod=\"new-", 1)
		for i, p := range []string{page, page, shorter, "other 1\n"} {
			r := show(target, start, typeText, p, 1<<20)
			require.NoError(t, r.Err)
			require.True(t, has(r.Metrics, "m"))
			require.False(t, has(r.Metrics, "up"))
			var names []string
			target.Families(r, func(f Family) { names = append(names, f.Name) })
			require.Equal(t, [][]string{{"m"}, {"m"}, {"m"}, {"other", "m"}}[i], names)
			parts, points := 1, r.Metrics.DataPointCount()
			require.Equal(t, tree.PartPoints, points)
			for ; r.Pending() > 0; parts++ {
				r = r.Next()
				points += r.Metrics.DataPointCount()
			}
			require.Equal(t, 5*tree.RoundPoints/tree.PartPoints+1, parts)
			require.True(t, has(r.Metrics, "up"), "the report comes last")
			require.Equal(t, []int{5*tree.RoundPoints + 5, 5*tree.RoundPoints + 5, 5*tree.RoundPoints + 6, 5*tree.RoundPoints + 6}[i], points)
			r.Release()
		}
		_, waiting := target.cohort.pools.Waiting()
		require.Zero(t, waiting)
	}
}

func TestARetiringLargePageComesInParts(t *testing.T) {
	target := testTarget(newTestJob(t, Config{Scrape: testScrapeConfig()}), 1)
	show(target, start, typeText, bigText(3*tree.RoundPoints), 1<<20)
	r := target.Retire(start)
	require.Equal(t, 3*tree.RoundPoints-tree.PartPoints+5, r.Pending())
	all := canon(merged(t, r))
	require.Len(t, all, 3*tree.RoundPoints+5)
	require.False(t, slices.ContainsFunc(all, func(s string) bool { return !strings.Contains(s, "flags 1") }))
}

// A page of many long lines, like that of kube-state-metrics.
func kubeText(n int) string {
	var b strings.Builder
	for i := range n {
		if i%10_000 == 0 {
			fmt.Fprintf(&b, "# HELP kube_pod_%d Help.\n# TYPE kube_pod_%d gauge\n", i/10_000, i/10_000)
		}
		fmt.Fprintf(&b, "kube_pod_%d{namespace=\"namespace-%d\",pod=\"deployment-%d-abcdef\",uid=\"%08x-0000-4000-8000-%012x\",container=\"container-%d\",node=\"node-%d\"} %d\n",
			i/10_000, i%50, i, i, i*7, i%4, i%100, i%7)
	}
	return b.String()
}

// A large page keeps its text and the meaning of its lines; a scrape adds the values, and the points of one part at a
// time.
func TestMemoryOfALargePage(t *testing.T) {
	racetest.Sequential(t)
	t.Cleanup(handback.Poison(false)) // it takes memory, and loses what is kept
	const series = 100_000
	page := []byte(kubeText(series))
	text := float64(len(page)) / series
	j := newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: true})
	target := testTarget(j, 1)
	before := heap()
	var peak int64
	scrape := func(look bool) {
		r := showBytes(target, start, typeText, page)
		for r.Pending() > 0 {
			if r = r.Next(); look {
				peak = max(peak, heap()-before)
			}
		}
		r.Release()
	}
	scrape(false)
	scrape(false)
	scrape(true)
	kept := heap() - before
	var was, is runtime.MemStats
	runtime.ReadMemStats(&was)
	scrape(false)
	runtime.ReadMemStats(&is)
	t.Logf("kept %.0f B a series besides %.0f B of text, %.0f B more while handed on; garbage of a scrape %.0f B",
		float64(kept)/series-text, text, float64(peak-kept)/series, float64(is.TotalAlloc-was.TotalAlloc)/series)
	require.LessOrEqual(t, float64(kept)/series-text, 120.0)
	require.LessOrEqual(t, float64(peak-kept)/series, 80.0, "a part, and the values")
	require.LessOrEqual(t, float64(is.TotalAlloc-was.TotalAlloc)/series, 60.0)
	runtime.KeepAlive(target)
}

// If the labels of many series repeat for every metric, little is kept besides their text.
func TestMemoryOfLabelsThatComeAgain(t *testing.T) {
	racetest.Sequential(t)
	t.Cleanup(handback.Poison(false)) // it takes memory, and loses what is kept
	const pods, metrics = 2000, 30
	var b strings.Builder
	for m := range metrics {
		fmt.Fprintf(&b, "# TYPE kube_pod_status_%d gauge\n", m)
		for i := range pods {
			fmt.Fprintf(&b, "kube_pod_status_%d{namespace=\"namespace-%d\",pod=\"deployment-%d-abcdef\",uid=\"%08x-0000-4000-8000-%012x\",phase=\"%d\"} 1\n",
				m, i%50, i, i, i*7, m)
		}
	}
	page := []byte(b.String())
	target := testTarget(newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: true}), 1)
	before := heap()
	scrape := func() {
		r := showBytes(target, start, typeText, page)
		for r.Pending() > 0 {
			r = r.Next()
		}
		r.Release()
	}
	for range 3 {
		scrape()
	}
	kept := float64(heap()-before) / (pods * metrics)
	text := float64(len(page)) / (pods * metrics)
	var was, is runtime.MemStats
	runtime.ReadMemStats(&was)
	scrape()
	runtime.ReadMemStats(&is)
	garbage := float64(is.TotalAlloc-was.TotalAlloc) / (pods * metrics)
	t.Logf("kept %.0f B a series, the text is %.0f B; garbage of a scrape %.0f B", kept, text, garbage)
	require.LessOrEqual(t, kept, text+30)
	require.LessOrEqual(t, garbage, 100.0, "what says the same of a pod goes from point to point")
	runtime.KeepAlive(target)
}

// Points that are reused for other series equal new ones: whatever their texts share, wherever values are in them, and
// whether they belong to the same metric or to another.
func TestPointsFilledAgainAreAsNew(t *testing.T) {
	racetest.Sequential(t)
	podPage := func(r *rand.Rand, pods int) string {
		var b strings.Builder
		for _, more := range []string{
			"created", "started", `phase:phase="Running":phase="Pending":phase="\"odd\""`, `info:node="%d",image="%x"`,
			`ready:container="c%d"`, `running:container="c%d"`, `state:phase="Running":phase="Failed"`, `owner:kind="Set",name="n%x"`,
		} {
			name, rest, _ := strings.Cut(more, ":")
			for i := range pods {
				for tail := range strings.SplitSeq(rest, ":") {
					if strings.Contains(tail, "%") {
						tail = fmt.Sprintf(tail, slices.Repeat([]any{i / 3}, strings.Count(tail, "%"))...)
					}
					if tail != "" {
						tail = "," + tail
					}
					fmt.Fprintf(&b, "%s{namespace=\"%s\",pod=\"p%d\",uid=\"%x\"%s} %d\n", name, strings.Repeat("n", 1+i%5), i*i, i, tail, r.IntN(2))
				}
			}
		}
		return b.String()
	}
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 1))
		part, round, whole := 1+r.IntN(40), 10+r.IntN(80), r.IntN(100)
		var targets []*Target
		for _, reuse := range []bool{false, true} {
			j := newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: reuse})
			setParts(j, part, round)
			j.rules.MostWhole = whole
			targets = append(targets, testTarget(j, 1))
		}
		for range 4 {
			page := podPage(r, 60+r.IntN(2))
			want, is := show(targets[0], start, typeText, page, 1<<20), show(targets[1], start, typeText, page, 1<<20)
			require.NotNil(t, is.parts)
			require.Equal(t, canon(merged(t, want)), canon(merged(t, is)), "parts of %d, rounds of %d", part, round)
		}
	}
}
