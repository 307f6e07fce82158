// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

var hostileJobs = []string{
	"", "  honor_labels: true\n", "  honor_timestamps: false\n", "  track_timestamps_staleness: true\n", "  sample_limit: 25\n",
	"  metric_relabel_configs:\n  - {source_labels: [zone], regex: v1, action: drop}\n  - {regex: x, action: labeldrop}\n",
	"  metric_relabel_configs:\n  - {source_labels: [rack], regex: r0, target_label: job, replacement: other}\n  - {regex: id, action: labeldrop}\n",
	"  metric_relabel_configs:\n  - {source_labels: [__name__], regex: 'a(.*)', target_label: __name__, replacement: 'b$1'}\n",
	"  metric_relabel_configs:\n  - {regex: 'x|l.*', replacement: 'z$0', action: labelmap}\n  - {regex: 'l.*', action: labeldrop}\n",
	"  always_scrape_classic_histograms: true\n", "  convert_classic_histograms_to_nhcb: true\n",
}

// A witness is a target with the same pages as another one, but alone in its job, and without a parse cache.
type witness struct {
	target *Target
	last   []string // pages
}

// memory is the number of previous pages that can affect the result, through their metadata, if few fail.
const memory = plan.MetadataScrapes + 8

func (w *witness) show(at time.Time, media, page string) Result {
	w.last = append(w.last, page)
	w.last = w.last[max(0, len(w.last)-memory):]
	t := w.target
	t.Settled = false // so that everything is decided anew
	if page == errorPage {
		return t.Fail(at, Report{Err: errStatus})
	}
	s, err := t.Begin(at, media)
	if err != nil {
		return t.Fail(at, Report{Err: err})
	}
	s.expected, s.search = nil, plan.Search{} // so that every line is parsed
	_ = s.Feed([]byte(page))
	return s.End(Report{BodyBytes: int64(len(page))})
}

var errStatus = fmt.Errorf("server returned HTTP status %d", 404)

// requireSamePoints prints only the differences: pages have many points.
func requireSamePoints(t *testing.T, want, got []string, all string) {
	t.Helper()
	if slices.Equal(want, got) {
		return
	}
	without := func(of, these []string) string {
		return strings.Join(slices.DeleteFunc(slices.Clone(of), func(s string) bool { return slices.Contains(these, s) }), "\n")
	}
	require.Fail(t, "not the same", "wanted:\n%s\n\ngot:\n%s\n\n%d points, not %d, %s", without(want, got), without(got, want), len(got), len(want), all)
}

func requireSame(t *testing.T, want, got Result, all string) {
	t.Helper()
	require.Equal(t, want.Err == nil, got.Err == nil, "%v, %v, %s", want.Err, got.Err, all)
	requireSamePoints(t, canon(want.Metrics), canon(merged(t, got)), all)
	require.Equal(t, [...]int{want.Samples, want.PostRelabel, want.Added, want.Late}, [...]int{got.Samples, got.PostRelabel, got.Added, got.Late}, all)
}

// checkHostileSequence scrapes pages for targets that share all they can, with reused metrics, in chunks and in parts;
// each target skips some pages. The metrics must equal those of a witness, and those of a target that has only seen the
// last few pages.
func checkHostileSequence(t *testing.T, seed uint64, pages int) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 13))
	var g interface {
		page() string
		change()
	}
	media := []string{typeText, typeOM, typeText, typeProto}[seed%4]
	if media == typeProto {
		g = newProtoGenerator(seed)
	} else {
		g = newHostileGenerator(seed, media)
	}
	scrape := scrapeConfig(t, "  scrape_native_histograms: true\n"+hostileJobs[int(seed/4)%len(hostileJobs)])
	shared := newTestJob(t, Config{
		Scrape: scrape, Reuse: seed%3 > 0, Changes: handback.Changes{Points: seed%2 > 0, Resources: seed/2%2 > 0, Removes: seed/5%2 > 0},
	})
	if seed%5 < 2 {
		setParts(shared, 1+int(seed%7), 1+int(seed%17))
		shared.rules.MostWhole = int(seed % 13)
	}
	if seed%7 == 0 {
		shared.rules.MostShapes = int(seed % 3)
	}
	newTarget := func(j *Job, i int) *Target {
		return testTarget(j, i, "rack", fmt.Sprint("r", i%2), "zone", fmt.Sprint("z", i))
	}
	var targets []*Target
	var witnesses []*witness
	for i := range 3 {
		targets = append(targets, newTarget(shared, i))
		witnesses = append(witnesses, &witness{target: newTarget(newTestJob(t, Config{Scrape: scrape}), i)})
	}
	for n := range pages {
		page := g.page()
		at := start.Add(time.Duration(n) * time.Second)
		for i, target := range targets {
			if r.IntN(4) == 0 {
				continue // this target skips the page
			}
			about := fmt.Sprintf("seed %d page %d target %d\n%s", seed, n, i, strings.ToValidUTF8(page, "."))
			want := witnesses[i].show(at, media, page)
			got := show(target, at, media, page, 1+r.IntN(300))
			requireSame(t, want, got, about)
			if r.IntN(4) > 0 {
				change(r, shared.cfg.Changes, got.Metrics)
			}
			if r.IntN(4) > 0 {
				got.Release()
			}
			if good := slices.ContainsFunc(witnesses[i].last[:len(witnesses[i].last)-1], isGoodPage); good && seed/4%2 > 0 && r.IntN(6) == 0 {
				fresh := newTarget(newTestJob(t, Config{Scrape: scrape}), i)
				var last Result
				for _, page := range witnesses[i].last {
					last = show(fresh, at, media, page, 1<<20)
				}
				if len(fresh.Failed) == 0 || len(witnesses[i].last) < memory { // otherwise failures before the last few pages also count
					requireSame(t, want, last, "after the last few pages: "+about)
				}
			}
			if r.IntN(40) == 0 {
				target.Retire(at)
				targets[i] = newTarget(shared, i)
				witnesses[i].target = newTarget(newTestJob(t, Config{Scrape: scrape}), i)
				witnesses[i].last = nil
			}
		}
		if r.IntN(3) > 0 {
			g.change()
		}
	}
}

func isGoodPage(page string) bool {
	return page != errorPage && page != "" && !strings.Contains(page, "broken{") && !strings.HasSuffix(page, "\x7f\x0a\x01a")
}

func TestHostileSequencesMeanWhatTheySay(t *testing.T) {
	racetest.Sequential(t)
	for seed := range uint64(60) {
		checkHostileSequence(t, seed, 25)
	}
}

func FuzzHostileSequences(f *testing.F) {
	racetest.Sequential(f)
	for seed := range uint64(8) {
		f.Add(1000+seed, uint8(30))
	}
	f.Fuzz(func(t *testing.T, seed uint64, pages uint8) { checkHostileSequence(t, seed, int(pages)) })
}

// withoutAdded omits the number of new series: a series that is written differently is new, in Prometheus too.
func withoutAdded(points []string) []string {
	return slices.DeleteFunc(points, func(s string) bool { return strings.Contains(s, "| scrape_series_added ") })
}

// A page has the same meaning in each format and in any order of lines, on every scrape.
func TestFormatsAndOrderMeanNothing(t *testing.T) {
	racetest.Sequential(t)
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 14))
		p := newNeutralPage(r)
		scrape := scrapeConfig(t, []string{"", "  honor_labels: true\n", "  metric_relabel_configs: [{regex: zone, action: labeldrop}]\n"}[seed%3])
		newTarget := func() *Target { return testTarget(newTestJob(t, Config{Scrape: scrape, Reuse: true}), 1) }
		formats := []string{typeText, typeOM, typeProto}
		var own []*Target // one for each format
		for range formats {
			own = append(own, newTarget())
		}
		mixed, plain, shuffled := newTarget(), newTarget(), newTarget()
		for n := range 12 {
			page := p.next(r)
			at := start.Add(time.Duration(n) * time.Second)
			about := fmt.Sprintf("seed %d page %d\n%s", seed, n, page.in(typeText))
			res := show(plain, at, typeText, page.in(typeText), 1<<20)
			require.NoError(t, res.Err, about)
			want := canon(res.Metrics)
			res.Release()
			for i, media := range formats {
				r := show(own[i], at, media, page.in(media), 1<<20)
				requireSamePoints(t, want, canon(r.Metrics), media+" "+about)
				r.Release()
			}
			r1 := show(shuffled, at, typeText, page.reordered(r).in(typeText), 1<<20)
			requireSamePoints(t, want, canon(r1.Metrics), "in another order: "+about)
			r1.Release()
			media := one(r, formats...)
			r2 := show(mixed, at, media, page.in(media), 1<<20)
			requireSamePoints(t, withoutEnds(withoutAdded(want)), withoutEnds(withoutAdded(canon(r2.Metrics))), "now in "+media+": "+about)
			r2.Release()
			if r.IntN(3) > 0 {
				p = page
			}
		}
	}
}

// withoutEnds omits points without a value.
func withoutEnds(points []string) []string {
	return slices.DeleteFunc(slices.Clone(points), func(s string) bool { return strings.Contains(s, " flags 1:") })
}

func isSummary(s string) bool { return strings.Contains(s, " Summary {") }

func isEndedSummary(s string) bool { return isSummary(s) && strings.Contains(s, " flags 1:") }

// Scrapes that fail between two pages do not change the result of the second, except that removed series have ended
// already.
func TestFailuresInBetweenChangeNothing(t *testing.T) {
	racetest.Sequential(t)
	for seed := range uint64(150) {
		media := []string{typeText, typeOM}[seed%2]
		g := newHostileGenerator(seed, media)
		scrape := scrapeConfig(t, hostileJobs[int(seed/2)%len(hostileJobs)])
		page := func() string {
			for {
				if p := g.page(); isGoodPage(p) {
					return p
				}
			}
		}
		first := page()
		g.change()
		second := page()
		newTarget := func() *Target { return testTarget(newTestJob(t, Config{Scrape: scrape, Reuse: true}), 1) }
		plain := newTarget()
		show(plain, start, media, first, 1<<20).Release()
		want := show(plain, start, media, second, 1<<20)
		for name, failures := range map[string][]string{
			"no answer": {errorPage}, "nothing": {""}, "no answers": {errorPage, errorPage, errorPage}, "malformed": {"broken{\n"},
			"cut": {first[:g.IntN(len(first)+1)], errorPage}, "cut, then other": {second[:g.IntN(len(second)+1)] + "\n}\n"},
		} {
			target := newTarget()
			show(target, start, media, first, 1<<20).Release()
			for _, f := range failures {
				if name == "cut" {
					s, err := target.Begin(start, media)
					require.NoError(t, err)
					_ = s.Feed([]byte(f))
					s.End(Report{Err: errStatus}).Release()
					continue
				}
				show(target, start, media, f, 1<<20).Release()
			}
			got := show(target, start, media, second, 1<<20)
			require.Equal(t, want.Err == nil, got.Err == nil)
			wanted, has := canon(want.Metrics), canon(got.Metrics)
			if slices.ContainsFunc(wanted, isEndedSummary) { // its sum is missing: it has ended, and goes on without one
				wanted, has = slices.DeleteFunc(wanted, isSummary), slices.DeleteFunc(has, isSummary)
			}
			requireSamePoints(t, withoutEnds(withoutAdded(wanted)), withoutEnds(withoutAdded(has)), fmt.Sprintf("seed %d, %s\n%s\n%s", seed, name, first, second))
			if name != "malformed" && !strings.HasPrefix(name, "cut, ") {
				require.Equal(t, want.Added, got.Added)
			}
			got.Release()
		}
	}
}

// Targets that scrape concurrently and share all they can have the same results as alone.
func TestTargetsAtTheSameTime(t *testing.T) {
	for seed := range uint64(6) {
		media := []string{typeText, typeOM, typeProto}[seed%3]
		scrape := scrapeConfig(t, "  scrape_native_histograms: true\n"+hostileJobs[int(seed)%len(hostileJobs)])
		shared := newTestJob(t, Config{Scrape: scrape, Reuse: true})
		var running sync.WaitGroup
		for i := range 4 {
			witness := &witness{target: testTarget(newTestJob(t, Config{Scrape: scrape}), i)}
			target := testTarget(shared, i)
			running.Go(func() {
				var g interface {
					page() string
					change()
				} = newHostileGenerator(seed, media) // the same for all, so that they share
				if media == typeProto {
					g = newProtoGenerator(seed)
				}
				for n := range 25 {
					page := g.page()
					at := start.Add(time.Duration(n) * time.Second)
					want, got := witness.show(at, media, page), show(target, at, media, page, 100)
					assert.Equal(t, canon(want.Metrics), canon(got.Metrics), "seed %d page %d", seed, n)
					got.Release()
					g.change()
				}
				target.Retire(start)
			})
		}
		running.Wait()
		require.Equal(t, Stats{}, shared.Stats())
	}
}
