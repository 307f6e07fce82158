// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"testing"
)

func sample(axis string) *Result {
	run := func(cpu float64, rss int64) Run {
		return Run{Seconds: 20, Samples: 1_000_000, CPU: cpu, RSSMean: rss, RSSPeak: rss + 5e6, Wire: 4_500_000, Raw: 30_000_000, Requests: 100, Scrapes: 10, Served: 5000}
	}
	r := &Result{Name: "node", Title: "1000 pages <of> 500 samples", Command: "make bench-scrape", Axis: axis}
	for at := range 2 {
		r.Rows = append(r.Rows,
			Row{Agent: "slow", Title: "Slow & steady", Party: "collector", Version: "v1", At: float64(at), Runs: []Run{run(6.5, 700e6), run(6.1, 710e6)}},
			Row{Agent: "fast", Title: "Fast", Party: "godwit", Version: "v2", At: float64(at), Runs: []Run{run(0.8, 50e6)}},
			Row{Agent: "broken", Title: "Broken", Party: "vmagent", At: float64(at), Failed: []string{"cannot start\nat all"}})
		if axis == "" {
			break
		}
	}
	return r
}

func TestSpreadIsLeastMiddleGreatest(t *testing.T) {
	row := Row{Runs: []Run{{CPU: 3, Samples: 1e6}, {CPU: 1, Samples: 1e6}, {CPU: 8, Samples: 1e6}}}
	if got := row.Of((*Run).CPUPerMillion); got != (Spread{1, 3, 8}) {
		t.Errorf("got %+v", got)
	}
	row.Runs = row.Runs[:2]
	if got := row.Of((*Run).CPUPerMillion); got != (Spread{1, 2, 3}) {
		t.Errorf("got %+v", got)
	}
}

func TestCPUIsPerScrapedSampleWhereAllArrived(t *testing.T) {
	r := Run{CPU: 1, Samples: 800_000, Scraped: 1_000_000}
	if got := r.CPUPerMillion(); got != 1 {
		t.Errorf("complete: %v µs per sample, want 1", got)
	}
	if r.Lost = 1; r.CPUPerMillion() != 1.25 {
		t.Errorf("one is lost: %v µs per sample, want 1.25", r.CPUPerMillion())
	}
	if r.Lost, r.Scraped = 0, 0; r.CPUPerMillion() != 1.25 {
		t.Errorf("not known: %v µs per sample, want 1.25", r.CPUPerMillion())
	}
}

func TestMarkdownHasARowPerAgent(t *testing.T) {
	text := sample("").Markdown()
	for _, want := range []string{
		"| Slow & steady | 6.30 (6.10–6.50) | 705 (700–710) |", "| Fast | 0.80 | 50 | 55 | 4.50 | 30 | 5 |",
		"| Broken | - |", "Failed: broken: cannot start\n", "`make bench-scrape`",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestRepeatedRunsAreCompared(t *testing.T) {
	const title = "lie apart"
	text := sample("").Markdown()
	if want := "| Slow & steady | 2 | 6.3 % | 1.4 % | 0.0 % |"; !strings.Contains(text, want) || !strings.Contains(text, title) {
		t.Errorf("%q is not in\n%s", want, text)
	}
	if strings.Contains(text, "| Fast | 1 |") {
		t.Error("a single run is compared")
	}
	if text := sample("churn").Markdown(); !strings.Contains(text, "| Slow & steady, churn 100 % | 2 |") {
		t.Errorf("points of a curve cannot be told apart in\n%s", text)
	}
	r := sample("")
	r.Rows = r.Rows[1:]
	if strings.Contains(r.Markdown(), title) {
		t.Error("there is nothing to compare")
	}
}

func TestWhatCannotBeCheckedIsNotCalledComplete(t *testing.T) {
	r := sample("")
	run := Run{Seconds: 20, Samples: 1e6, CPU: 0.5, RSSMean: 20e6, RSSPeak: 21e6, Unchecked: true}
	r.Rows = append(r.Rows, Row{Agent: "silent", Title: "Silent", Party: "godwit", Runs: []Run{run}})
	if text := r.Markdown(); !strings.Contains(text, "| Silent | 0.50 | 20 | 21 | - | - | - | not checked | not checked | not checked |") {
		t.Error(text)
	}
	if line := Line(&run); strings.Contains(line, "complete") {
		t.Error(line)
	}
}

func TestWorkThatIsNoScrapingIsToldInWords(t *testing.T) {
	r := sample("")
	r.Workload = Workload{Work: "points that come by themselves", Window: 12}
	text := r.Markdown()
	for _, want := range []string{"- Work: points that come by themselves; window 12 s\n", "| Slow & steady | 5000 |"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	for _, unwanted := range []string{"targets", "scrapes", "Scrape,"} {
		if strings.Contains(text, unwanted) {
			t.Errorf("%q is in\n%s", unwanted, text)
		}
	}
}

func TestChartsAreWellFormedAndNameEachAgentThatRan(t *testing.T) {
	for _, axis := range []string{"", "churn"} {
		svg := sample(axis).SVG()
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("axis %q: %v", axis, err)
			}
		}
		if !strings.Contains(svg, "Slow &amp; steady") || !strings.Contains(svg, "Fast") || strings.Contains(svg, "Broken") || strings.Contains(svg, "NaN") {
			t.Errorf("axis %q:\n%s", axis, svg)
		}
	}
}

func TestNiceStepsAreRoundAndFew(t *testing.T) {
	for _, most := range []float64{0.3, 1, 7.2, 34, 99, 750, 1300} {
		step := niceStep(most)
		if n := math.Ceil(most / step); n < 2 || n > 5 {
			t.Errorf("%v in steps of %v is %v steps", most, step, n)
		}
	}
}

func TestSpliceKeepsWhatIsOutside(t *testing.T) {
	const begin, end = "<!-- x:begin -->", "<!-- x:end -->"
	got, err := spliced("a\n"+begin+"\nold\n"+end+"\nb\n", "x", "new\n")
	if want := "a\n" + begin + "\nnew\n" + end + "\nb\n"; got != want || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	for _, file := range []string{"", begin + "\n", end + "\n" + begin + "\n", "<!-- y:begin -->\n<!-- y:end -->"} {
		if _, err := spliced(file, "x", "new\n"); !errors.Is(err, errMarkers) {
			t.Errorf("%q: %v", file, err)
		}
	}
}

// The README, the tables and the charts are rendered from the results. This fails if one of them is edited by hand, or
// not rendered after a measurement.
func TestReportsAreWhatTheResultsGive(t *testing.T) {
	const results = "../results"
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	table, err := ReadmeTable(results)
	if err != nil {
		t.Fatalf("%v: run `make bench-scrape`", err)
	}
	want, err := spliced(string(readme), "measured", table)
	if err != nil {
		t.Fatalf("README.md cannot take the measured table: %v", err)
	}
	table, ok, err := FormatsTable(results)
	if err != nil {
		t.Fatal(err)
	}
	if ok {
		if want, err = spliced(want, "formats", table); err != nil {
			t.Fatalf("README.md cannot take the table of formats: %v", err)
		}
	}
	if string(readme) != want {
		t.Error("README.md's table is not what benchmarks/results gives: run `make report`")
	}
	all, err := LoadAll(results)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		for suffix, want := range map[string]string{".md": r.Markdown(), ".svg": r.SVG()} {
			got, err := os.ReadFile(results + "/" + r.Name + suffix)
			if err != nil || string(got) != want {
				t.Errorf("%s%s is not what %s.json gives: run `make report` (%v)", r.Name, suffix, r.Name, err)
			}
		}
	}
}
