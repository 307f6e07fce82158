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

	promconfig "github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/racetest"
)

func TestGeneratedSequencesAgainstStock(t *testing.T) {
	racetest.Sequential(t)
	var seqs []sequence
	jobs := []string{
		"", "honor_labels: true", "track_timestamps_staleness: true", "honor_timestamps: false",
		"metric_relabel_configs:\n- {source_labels: [zone], regex: v1, action: drop}\n- {regex: a, action: labeldrop}",
		"metric_relabel_configs:\n- {source_labels: [__name__], regex: 'm3.*', action: drop}\n- {source_labels: [id], regex: '(.).*', target_label: first}",
	}
	for i := range 36 {
		g := newGenerator(uint64(i), i%2 == 1, true)
		seq := sequence{name: fmt.Sprint("generated", i), media: typeText, job: jobs[i/2%len(jobs)]}
		if i%2 == 1 {
			seq.media = typeOM
		}
		if i%3 == 0 {
			seq.labels = map[string]string{"zone": "z", "rack": "r"}
		}
		for range 12 {
			seq.pages = append(seq.pages, g.page())
			if g.IntN(12) == 0 {
				seq.pages = append(seq.pages, errorPage)
			}
			g.change()
		}
		seqs = append(seqs, seq)
	}
	compareWithStock(t, receiverOptions{}, seqs)
}

func testScrapeConfig() *promconfig.ScrapeConfig {
	c := promconfig.DefaultScrapeConfig
	c.JobName = "j"
	c.MetricNameValidationScheme = 2 // UTF-8
	c.ScrapeFallbackProtocol = promconfig.PrometheusText0_0_4
	return &c
}

// setParts lowers the limits from which pages are large.
func setParts(j *Job, part, round int) {
	j.tree.Part, j.tree.Round, j.book.Round = part, round, round
}

func testTarget(j *Job, n int, more ...string) *Target {
	discovered := labels.FromStrings("__scheme__", "http")
	return j.NewTarget(discovered, labels.FromStrings(append([]string{"job", "j", "instance", fmt.Sprintf("host%d:80", n)}, more...)...))
}

func media(openMetrics bool) string {
	if openMetrics {
		return typeOM
	}
	return typeText
}

var start = time.UnixMilli(1_700_000_000_000)

// The result of a page is the same with a plan, whatever came before, however it was cut, and whatever targets share
// the plan.
func TestPlansChangeNothing(t *testing.T) {
	racetest.Sequential(t)
	for seed := range uint64(60) {
		checkSequence(t, seed, 25)
	}
}

func checkSequence(t *testing.T, seed uint64, pages int) {
	g := newGenerator(seed, seed%2 == 1, false)
	r := rand.New(rand.NewPCG(seed, 2))
	m := media(g.openMetrics)
	cfg := Config{Scrape: testScrapeConfig()}
	reusing := cfg
	reusing.Reuse = true
	shared, trees, cut, passing := newTestJob(t, cfg), newTestJob(t, reusing), newTestJob(t, reusing), newTestJob(t, reusing)
	setParts(cut, 1+int(seed%7), 1+int(seed%17))
	cut.rules.MostWhole = int(seed % 13)
	passing.tree.Idle = noTrees
	if seed%3 == 0 {
		passing.tree.Part = 1 + int(seed%5)
	}
	var targets, again, parted, passed []*Target
	for i := range 3 {
		targets = append(targets, testTarget(shared, i, "zone", fmt.Sprint("z", i)))
		again = append(again, testTarget(trees, i, "zone", fmt.Sprint("z", i)))
		parted = append(parted, testTarget(cut, i, "zone", fmt.Sprint("z", i)))
		passed = append(passed, testTarget(passing, i, "zone", fmt.Sprint("z", i)))
	}
	last := make([]string, len(targets))
	for n := range pages {
		page := g.page()
		at := start.Add(time.Duration(n) * time.Second)
		for i := range targets {
			if r.IntN(5) == 0 {
				continue // this target skips a page
			}
			fresh := testTarget(newTestJob(t, cfg), i, "zone", fmt.Sprint("z", i))
			if last[i] != "" {
				show(fresh, at, m, last[i], 1<<20)
			}
			want := show(fresh, at, m, page, 1<<20)
			require.NoError(t, want.Err)
			got := show(targets[i], at, m, page, 1+r.IntN(200))
			require.Equal(t, canon(want.Metrics), canon(got.Metrics), "seed %d page %d target %d\n%s", seed, n, i, page)
			reused := show(again[i], at, m, page, 1+r.IntN(200))
			require.Equal(t, canon(want.Metrics), canon(reused.Metrics), "reuse: seed %d page %d target %d\n%s", seed, n, i, page)
			md, inParts := merge(t, show(parted[i], at, m, page, 1+r.IntN(200)))
			require.Equal(t, canon(want.Metrics), canon(md), "parts: seed %d page %d target %d\n%s", seed, n, i, page)
			md, inPassing := merge(t, show(passed[i], at, m, page, 1+r.IntN(200)))
			require.Equal(t, canon(want.Metrics), canon(md), "passing: seed %d page %d target %d\n%s", seed, n, i, page)
			if r.IntN(4) > 0 {
				reused.Release()
				inParts.Release()
				inPassing.Release()
			}
			last[i] = page
		}
		if r.IntN(3) == 0 {
			g.change()
		}
	}
	require.False(t, trees.tree.Changed.Load() || cut.tree.Changed.Load() || passing.tree.Changed.Load(), "nobody changed what was handed out")
}

// mutate damages a page a little.
func mutate(r *rand.Rand, page string) string {
	b := []byte(page)
	for range 1 + r.IntN(4) {
		i := r.IntN(len(b))
		switch r.IntN(3) {
		case 0:
			b[i] = byte(r.IntN(256))
		case 1:
			b = slices.Delete(b, i, min(len(b), i+r.IntN(20)))
		default:
			b = slices.Insert(b, i, "\n\"\\ {}=,#"[r.IntN(9)])
		}
		if len(b) == 0 {
			return "a"
		}
	}
	return string(b)
}

func TestMutatedPagesMeanTheSame(t *testing.T) {
	racetest.Sequential(t)
	r := rand.New(rand.NewPCG(9, 9))
	pages := []string{node, om, "a 1\na 2\n", "a{x=\"1\n\"} 2\n"}
	for range 2000 {
		page := pages[r.IntN(len(pages))]
		checkPair(t, mutate(r, page), mutate(r, page), uint16(r.IntN(100)), r.IntN(2) == 0)
	}
}

func FuzzPlan(f *testing.F) {
	for _, p := range []string{node, om, "a 1\na 2\n", "a{x=\"1\n\"} 2\n"} {
		f.Add(p, p, uint16(7), false)
		f.Add(p, strings.Replace(p, "1", "2", 3), uint16(3), true)
	}
	f.Fuzz(func(t *testing.T, one, two string, size uint16, openMetrics bool) {
		if len(one)+len(two) < 1<<16 {
			checkPair(t, one, two, size, openMetrics)
		}
	})
}

// checkPair scrapes a page after another, in chunks, and compares the result with that of the page alone.
func checkPair(t *testing.T, one, two string, size uint16, openMetrics bool) {
	cfg := Config{Scrape: testScrapeConfig()}
	cfg.Scrape.HonorTimestamps = false
	m := media(openMetrics)
	// The second page as the same target's next page, and as another target's first page.
	j := newTestJob(t, cfg)
	j.rules.MostWhole = int(size % 4)
	a := testTarget(j, 1)
	first := show(a, start, m, one, 1+int(size))
	second := show(a, start, m, two, 1+int(size))
	again := show(testTarget(j, 1), start, m, two, 1<<20)
	alone := show(testTarget(newTestJob(t, cfg), 1), start, m, two, 1<<20)
	require.Equal(t, alone.Err == nil, second.Err == nil, "%v %v", alone.Err, second.Err)
	require.Equal(t, canon(alone.Metrics), canon(again.Metrics))
	require.Equal(t, alone.Samples, second.Samples)
	require.Equal(t, alone.PostRelabel, second.PostRelabel)
	if first.Err == nil && one == two {
		third := show(a, start, m, two, 1+int(size))
		drop := func(s string) bool { return strings.Contains(s, "scrape_series_added") }
		require.Equal(t, slices.DeleteFunc(canon(second.Metrics), drop), slices.DeleteFunc(canon(third.Metrics), drop))
	}
}
