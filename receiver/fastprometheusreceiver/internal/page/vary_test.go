// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

// A fleet has targets with pages of one shape. Points come and go, lines move, some have exemplars, and now and then a
// page lacks a line that its point needs.
type fleet struct {
	*rand.Rand

	openMetrics bool
	stamped     bool    // samples have timestamps
	ids         [][]int // by family
	made        int
	shown       int64 // pages
}

func newFleet(seed uint64) *fleet {
	f := &fleet{Rand: rand.New(rand.NewPCG(seed, 4)), openMetrics: seed%2 == 1, ids: make([][]int, 6)}
	for i := range f.ids {
		for range 3 + f.IntN(8) {
			f.made++
			f.ids[i] = append(f.ids[i], f.made)
		}
	}
	return f
}

func (f *fleet) clone(seed uint64) *fleet {
	g := &fleet{Rand: rand.New(rand.NewPCG(seed, 5)), openMetrics: f.openMetrics, stamped: f.stamped, made: f.made}
	for _, ids := range f.ids {
		g.ids = append(g.ids, slices.Clone(ids))
	}
	return g
}

func (f *fleet) change() {
	i := f.IntN(len(f.ids))
	ids := f.ids[i]
	switch f.IntN(8) {
	case 0, 1, 2: // a new one replaces another
		f.made++
		ids[f.IntN(len(ids))] = f.made
	case 3:
		f.made++
		f.ids[i] = slices.Insert(ids, f.IntN(len(ids)+1), f.made)
	case 4:
		if len(ids) > 1 {
			at := f.IntN(len(ids))
			f.ids[i] = slices.Delete(ids, at, at+1)
		}
	case 5: // one that was there before, perhaps
		if id := 1 + f.IntN(f.made); !slices.Contains(slices.Concat(f.ids...), id) {
			f.ids[i] = slices.Insert(ids, f.IntN(len(ids)+1), id)
		}
	case 6:
		f.Shuffle(len(ids), func(a, b int) { ids[a], ids[b] = ids[b], ids[a] })
	default:
	}
}

// when returns the timestamp of a sample, as text to follow its value. Some samples have none, or none now and then,
// and a few have one that differs from that of their point.
func (f *fleet) when(id int) string {
	if !f.stamped || id%4 == 0 || id%5 == 1 && f.shown%6 == 0 {
		return ""
	}
	at := start.UnixMilli() + f.shown*1000 - int64(id%7)*100
	switch f.IntN(600) {
	case 0:
		at -= 50
	case 1:
		return ""
	case 2:
		at *= 3 // too far in the future
	default:
	}
	if f.openMetrics {
		return fmt.Sprintf(" %d.%03d", at/1000, at%1000)
	}
	return fmt.Sprint(" ", at)
}

func (f *fleet) page() string {
	f.shown++
	var b strings.Builder
	total := ""
	if f.openMetrics {
		total = "_total"
	}
	for i, ids := range f.ids {
		name := fmt.Sprint("m", i)
		fmt.Fprintf(&b, "# HELP %s Help.\n# TYPE %s %s\n", name, name, []string{"gauge", "counter", "histogram", "summary", "gauge", "counter"}[i])
		for _, id := range ids {
			ls := fmt.Sprintf(`id="%d"`, id)
			if id%5 == 0 {
				ls += fmt.Sprintf(`,zone="%d"`, id%3)
			}
			row := func(suffix, more string, v any) {
				if f.IntN(400) == 0 {
					return
				}
				fmt.Fprintf(&b, "%s%s{%s%s} %v%s", name, suffix, ls, more, v, f.when(id))
				if f.openMetrics && f.IntN(9) == 0 && (suffix == "_total" || suffix == "_bucket") {
					fmt.Fprintf(&b, ` # {a="%d"} 1`, f.IntN(100))
				}
				b.WriteByte('\n')
			}
			switch i {
			case 2:
				row("_bucket", `,le="1"`, f.IntN(3))
				row("_bucket", `,le="2"`, 3+f.IntN(3))
				row("_bucket", `,le="+Inf"`, 9)
				row("_sum", "", f.IntN(100))
				row("_count", "", 9)
			case 3:
				row("", `,quantile="0.5"`, f.IntN(100))
				row("_sum", "", f.IntN(100))
				row("_count", "", 9)
			case 1, 5:
				row(total, "", f.IntN(100))
				if f.openMetrics {
					row("_created", "", 1520872607.123)
				}
			default:
				row("", "", f.IntN(100))
			}
		}
	}
	if f.openMetrics {
		b.WriteString("# EOF\n")
	}
	return b.String()
}

// A page that is derived from a shared plan by its missing and additional lines has the same result as one that is
// parsed alone.
func TestVariationsChangeNothing(t *testing.T) {
	racetest.Sequential(t)
	varied, scrapes := 0, 0
	for seed := range uint64(14) {
		v, s := checkFleet(t, seed, 40, false)
		varied, scrapes = varied+v, scrapes+s
	}
	t.Logf("%d of %d pages varied", varied, scrapes)
	require.Greater(t, 3*varied, scrapes)
}

// The same holds for pages whose samples have timestamps, whether they end with a stale marker or, by default, without.
func TestVariationsOfTimedSamplesChangeNothing(t *testing.T) {
	racetest.Sequential(t)
	varied, scrapes := 0, 0
	for seed := range uint64(14) {
		v, s := checkFleet(t, seed, 40, true)
		varied, scrapes = varied+v, scrapes+s
	}
	t.Logf("%d of %d pages varied", varied, scrapes)
	require.Greater(t, 4*varied, scrapes)
}

// However many lines a page with timestamps has, it is recognized as equal to the previous one.
func TestPagesOfTimedSamplesAreKnown(t *testing.T) {
	for lines := 1; lines <= 130; lines++ {
		target := testTarget(newTestJob(t, Config{Scrape: testScrapeConfig()}), 0)
		page := func(scrape int64) []byte {
			var b []byte
			for i := range lines {
				b = fmt.Appendf(b, "m{i=\"%d\"} 1 %d\n", i, start.UnixMilli()+scrape)
			}
			return b
		}
		require.NoError(t, showBytes(target, start, typeText, page(1)).Err)
		s, err := target.Begin(start, typeText)
		require.NoError(t, err)
		require.NoError(t, s.Feed(page(2)))
		require.True(t, (&ending{Scrape: s}).exact(), "%d lines", lines)
		s.End(Report{})
	}
}

func checkFleet(t *testing.T, seed uint64, pages int, stamped bool) (varied, scrapes int) {
	r := rand.New(rand.NewPCG(seed, 6))
	first := newFleet(seed)
	first.stamped = stamped
	m := media(first.openMetrics)
	plain := Config{Scrape: testScrapeConfig(), NoStaleMarkers: seed%7 == 6}
	plain.Scrape.TrackTimestampsStaleness = seed%3 == 2
	reusing := plain
	reusing.Reuse = true
	zone := func(i int) []string { return []string{"zone", fmt.Sprint("z", i)} }
	type shown struct {
		fleet          *fleet
		last           string
		target, reused *Target
		parted         *Target
	}
	kept, trees, cut := newTestJob(t, plain), newTestJob(t, reusing), newTestJob(t, reusing)
	setParts(cut, 1+int(seed%7), 1+int(seed%17))
	cut.rules.MostWhole = int(seed % 13)
	var all []*shown
	for i := range 3 {
		all = append(all, &shown{
			fleet: first.clone(seed + uint64(i)), target: testTarget(kept, i, zone(i)...), reused: testTarget(trees, i, zone(i)...),
			parted: testTarget(cut, i, zone(i)...),
		})
	}
	at := start
	for n := range pages {
		at = at.Add(time.Second)
		for i, s := range all {
			fresh := testTarget(newTestJob(t, plain), i, zone(i)...)
			if s.last != "" {
				show(fresh, at, m, s.last, 1<<20)
				fresh.Settled = false // so that it parses the page, and derives nothing
			}
			page := s.fleet.page()
			if r.IntN(25) == 0 {
				page += "broken{\n"
			}
			want := show(fresh, at, m, page, 1<<20)
			for _, target := range []*Target{s.target, s.reused, s.parted} {
				got := show(target, at, m, page, 1+r.IntN(300))
				require.Equal(t, want.Err == nil, got.Err == nil)
				require.Equal(t, canon(want.Metrics), canon(merged(t, got)), "seed %d page %d target %d\n%s\n---\n%s", seed, n, i, s.last, page)
				require.Equal(t, want.Samples, got.Samples)
				require.Equal(t, want.PostRelabel, got.PostRelabel)
				require.Equal(t, want.Added, got.Added)
				if r.IntN(5) > 0 {
					got.Release()
				}
				scrapes++
				if !target.Diff.IsEmpty() {
					varied++
				}
			}
			if s.last = page; want.Err != nil {
				s.last = "" // what it ended is not for the next page to end
				for _, target := range []*Target{s.target, s.reused, s.parted} {
					target.Retire(at)
				}
			}
			if r.IntN(3) > 0 {
				s.fleet.change()
			}
		}
	}
	for i, s := range all {
		fresh := testTarget(newTestJob(t, plain), i, zone(i)...)
		if s.last == "" {
			continue
		}
		show(fresh, at, m, s.last, 1<<20)
		want := fresh.Retire(at)
		for _, target := range []*Target{s.target, s.reused, s.parted} {
			got := target.Retire(at)
			if want.Metrics == (pmetric.Metrics{}) {
				require.Zero(t, got.Metrics)
				continue
			}
			require.Equal(t, canon(want.Metrics), canon(merged(t, got)))
		}
	}
	return varied, scrapes
}

// Targets whose pages differ in a few lines share one plan, and lines that are gone are forgotten.
func TestChurnKeepsPlansShared(t *testing.T) {
	j := newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: true})
	c := newCrowd(20, exporterLines(200, 10), 0.02, atEnd)
	var targets []*Target
	for i := range c.pages {
		targets = append(targets, testTarget(j, i))
	}
	for range 50 {
		for i, target := range targets {
			r := showBytes(target, start, typeText, c.next(i, nil))
			require.NoError(t, r.Err)
			r.Release()
		}
	}
	s := j.Stats()
	require.Equal(t, 1, s.Plans)
	require.Less(t, s.Lines, 3000)
	require.Less(t, s.Points, 3000)
	for _, target := range targets {
		target.Retire(start)
	}
	require.Equal(t, Stats{}, j.Stats())
}

// Targets do not get plans of their own either if half of their lines differ each time. Those lines are forgotten with
// their page.
func TestSeriesSeenOnceAreForgottenAtOnce(t *testing.T) {
	const targets, samples = 20, 200
	j := newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: true})
	c := newCrowd(targets, exporterLines(samples, 10), 0.4, atEnd)
	var all []*Target
	for i := range targets {
		all = append(all, testTarget(j, i))
	}
	after := func(scrapes int) Stats {
		for range scrapes {
			for i, target := range all {
				r := showBytes(target, start, typeText, c.next(i, nil))
				require.NoError(t, r.Err)
				r.Release()
			}
		}
		return j.Stats()
	}
	was, is := after(10), after(40)
	seen := int(c.share * float64(len(c.pages[0])))
	require.Less(t, is.Plans, 6, "of the first targets: what lines tell of them might have been their own")
	require.Less(t, is.Lines, was.Lines+seen)
	require.Less(t, is.Points, was.Points+seen)
	for _, target := range all {
		target.Retire(start)
	}
	require.Equal(t, Stats{}, j.Stats())
}

// passersby returns a page on which half of the series appear for one or a few scrapes, at one target or at all of
// them, in any order, twice, or with their labels in reverse order.
func passersby(r *rand.Rand, target, scrape int) string {
	var b strings.Builder
	for i := range 60 {
		fmt.Fprintf(&b, "# TYPE node_%d gauge\nnode_%d{device=\"sda\"} %d\n", i, i, scrape)
	}
	b.WriteString("# TYPE pod gauge\n")
	var lines []string
	line := func(name, ns string) {
		labels := []string{fmt.Sprintf("ns=%q", ns), fmt.Sprintf("pod=%q", name)}
		if r.IntN(9) == 0 {
			slices.Reverse(labels)
		}
		lines = append(lines, fmt.Sprintf("pod{%s} %d\n", strings.Join(labels, ","), r.IntN(9)))
	}
	for i := range 60 {
		switch r.IntN(20) {
		case 0, 1:
			line(fmt.Sprint("all-", i), "team")
		case 2, 3:
			line(fmt.Sprintf("own-%d-%d", target, i), "team")
		case 4:
			line(fmt.Sprintf("own-%d-%d", target, scrape/3), "team")
		case 5:
			if n := len(lines); n > 0 {
				lines = append(lines, lines[r.IntN(n)])
			}
		default:
			line(fmt.Sprintf("once-%d-%d-%d", target, scrape-r.IntN(12)/11, i), fmt.Sprint("ns", i%3))
		}
	}
	if r.IntN(4) == 0 {
		r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	}
	return b.String() + strings.Join(lines, "") + "# TYPE z gauge\nz 1\n"
}

// Lines that are forgotten with their page do not affect later pages: the result is as if the target had seen only its
// last page before.
func TestSeriesSeenOnceMeanTheSame(t *testing.T) {
	racetest.Sequential(t)
	cfg := Config{Scrape: testScrapeConfig()}
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 26))
		reusing := cfg
		reusing.Reuse = seed%2 == 0
		j := newTestJob(t, reusing)
		var targets []*Target
		for i := range 5 {
			targets = append(targets, testTarget(j, i))
		}
		last := make([][]string, len(targets)) // the last page, and failures since then
		for n := range 25 {
			at := start.Add(time.Duration(n) * time.Second)
			for i, target := range targets {
				if r.IntN(15) == 0 {
					show(target, at, typeText, errorPage, 1<<20)
					last[i] = append(last[i], errorPage)
					continue
				}
				page := passersby(r, i, n)
				fresh := testTarget(newTestJob(t, cfg), i)
				for _, before := range last[i] {
					show(fresh, at, typeText, before, 1<<20)
				}
				want := show(fresh, at, typeText, page, 1<<20)
				got := show(target, at, typeText, page, 100+r.IntN(3000))
				require.Equal(t, canon(want.Metrics), canon(got.Metrics), "seed %d scrape %d target %d\n%s", seed, n, i, page)
				require.Equal(t, want.Samples, got.Samples)
				require.Equal(t, want.Added, got.Added)
				got.Release()
				last[i] = []string{page}
			}
		}
		for _, target := range targets {
			target.Retire(start)
		}
		require.Equal(t, Stats{}, j.Stats())
	}
}

// Many new series in a row, followed by metadata, do not make a plan of their own either.
func TestNewSeriesInARowKeepPlansShared(t *testing.T) {
	j := newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: true})
	var before strings.Builder
	for i := range 500 {
		fmt.Fprintf(&before, "# TYPE m%d gauge\nm%d 1\n", i, i)
	}
	targets := []*Target{testTarget(j, 1), testTarget(j, 2), testTarget(j, 3)}
	for n := range 10 {
		for i, target := range targets {
			var page strings.Builder
			page.WriteString(before.String() + "# TYPE short gauge\n")
			for k := range 50 {
				fmt.Fprintf(&page, "short{id=\"%d-%d-%d\"} 1\n", i, n, k)
			}
			page.WriteString("# TYPE z gauge\nz 1\n")
			r := show(target, start, typeText, page.String(), 1<<20)
			require.NoError(t, r.Err)
			require.Equal(t, 551, r.Samples)
			if n > 0 {
				require.Equal(t, 50, r.Added)
				require.Equal(t, 50+551+5, r.Metrics.DataPointCount())
			}
			r.Release()
		}
		require.Equal(t, 1, j.Stats().Plans)
	}
}

// A page whose lines come in a different order each time is still the same page.
func TestReorderedPagesKeepTheirPlan(t *testing.T) {
	j := newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: true})
	target := testTarget(j, 1)
	c := newCrowd(1, exporterLines(200, 10), 0, shuffled)
	var plan *plan.Plan
	for i := range 20 {
		page := string(c.next(0, nil))
		r := show(target, start, typeText, page, 1000)
		require.NoError(t, r.Err)
		require.Equal(t, i == 0, r.Added > 0)
		require.Equal(t, 205, r.Metrics.DataPointCount())
		for _, s := range canon(r.Metrics) {
			require.Contains(t, s, "flags 0")
		}
		r.Release()
		if plan == nil {
			plan = target.Plan
		}
		require.Same(t, plan, target.Plan)
	}
}
