// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// readmeResults are the results in the README; the first one's chart is shown too.
var readmeResults = []string{"node", "ksm"}

// ReadmeTable renders the section between the README's markers, with the agents that ran in all of these results. The
// results' own pages have every row.
func ReadmeTable(dir string) (string, error) {
	var results []*Result
	ran := map[string]int{}
	for _, name := range readmeResults {
		r, err := Load(filepath.Join(dir, name+".json"))
		if err != nil {
			return "", err
		}
		results = append(results, r)
		for _, w := range r.Rows {
			if len(w.Runs) > 0 {
				ran[w.Agent]++
			}
		}
	}
	var b strings.Builder
	first := results[0]
	fmt.Fprintf(&b, "\nOn %d cores of %s, load, destination and agents on the same machine, one agent at a time (`%s`, %s). CPU is user and system time of the whole process.\nEvery sample served is looked up at the destination. \"RSS without files\" excludes pages of the program's own file: our agent releases these, the others do not.\n\n",
		first.Machine.Cores, first.Machine.Model, first.Command, first.Taken.Format("2 January 2006"))
	for _, r := range results {
		fmt.Fprintf(&b, "**[%s](benchmarks/results/%s.md)**\n\n", r.Title, r.Name)
		b.WriteString(header("Agent", "CPU µs/sample", "RSS MB mean / peak", "RSS MB without files", "Wire B/sample", "Lost samples"))
		for _, w := range byCost(r.Rows) {
			if ran[w.Agent] < len(results) {
				continue
			}
			title := w.Title
			if w.Party == "godwit" {
				title = "**" + title + "**"
			}
			b.WriteString(row(title, number(w.Of(cpuFigure.of).Median),
				number(w.Of(rssFigure.of).Median)+" / "+number(w.Of(peakFigure.of).Max), number(w.Of(anonFigure.of).Median),
				number(w.Of(wireFigure.of).Median), number(w.Of(lostFigure.of).Max)))
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "![%s](benchmarks/results/%s.svg)\n\n", first.Title, first.Name)
	others, err := fleets(dir)
	return b.String() + others, err
}

// fleetResults are the results of more varied or misbehaving fleets.
var fleetResults = []string{"own", "relabel", "tls", "kubelet", "mixed", "mixed-plain", "ksm-changes", "bomb"}

// The two agents that fleets are measured with.
const ours, theirs = "godwit-rw2", "vmagent-zstd"

// fleets renders one line for each fleet that was measured with both, sorted by how badly we compare.
func fleets(dir string) (string, error) {
	type line struct {
		cpu  float64
		text string
	}
	var lines []line
	for _, name := range fleetResults {
		r, err := Load(filepath.Join(dir, name+".json"))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		a, b := r.rowOf(ours), r.rowOf(theirs)
		if a == nil || b == nil {
			continue
		}
		ratio := func(f figure) float64 { return a.Of(f.of).Median / b.Of(f.of).Median }
		cells := []string{fmt.Sprintf("[%s](benchmarks/results/%s.md)", r.Title, r.Name)}
		for _, f := range []figure{cpuFigure, rssFigure, anonFigure, wireFigure} {
			cells = append(cells, fmt.Sprintf("%s / %s = **%s**", number(a.Of(f.of).Median), number(b.Of(f.of).Median), number(ratio(f))))
		}
		lost := number(a.Of(lostFigure.of).Max) + " / " + number(b.Of(lostFigure.of).Max)
		lines = append(lines, line{ratio(cpuFigure), row(append(cells, lost)...)})
	}
	if len(lines) == 0 {
		return "", nil
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(b.cpu, a.cpu) })
	var text strings.Builder
	text.WriteString("More varied or badly behaved fleets: our agent / vmagent, both with zstd, our worst result first.\n\n" +
		header("Work", "CPU µs/sample", "RSS MB mean", "RSS MB without files", "Wire B/sample", "Lost samples"))
	for _, l := range lines {
		text.WriteString(l.text)
	}
	return text.String() + "\n", nil
}

// destinations are the kinds of destinations, with our agent and the rival's that send to it.
var destinations = []struct{ to, ours, theirs string }{
	{"Godwit", ours, ""},
	{"VictoriaMetrics", "godwit-rw1", theirs},
	{"Prometheus, Mimir, Thanos", "godwit-rw2-snappy", "prometheus-rw2"},
}

// FormatsTable renders the section between the README's markers for formats: the cost of the same pages for each kind
// of destination. Without such a result ok is false, and the section stays.
func FormatsTable(dir string) (table string, ok bool, err error) {
	r, err := Load(filepath.Join(dir, "formats.json"))
	if errors.Is(err, os.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nThe same pages sent to each kind of destination, in one run ([%s](benchmarks/results/%s.md), %d cores of %s, %s):\n\n",
		r.Title, r.Name, r.Machine.Cores, r.Machine.Model, r.Taken.Format("2 January 2006"))
	b.WriteString(header("To", "Agent", "Wire B/sample", "CPU µs/sample", "Lost samples"))
	for _, d := range destinations {
		for _, agent := range []string{d.ours, d.theirs} {
			w := r.rowOf(agent)
			if w == nil {
				continue
			}
			title := w.Title
			if agent == d.ours {
				title = "**" + title + "**"
			}
			b.WriteString(row(d.to, title, number(w.Of(wireFigure.of).Median), number(w.Of(cpuFigure.of).Median), number(w.Of(lostFigure.of).Max)))
		}
	}
	b.WriteString("\n")
	return b.String(), true, nil
}

// rowOf returns the row of an agent, nil if it did not run.
func (r *Result) rowOf(agent string) *Row {
	i := slices.IndexFunc(r.Rows, func(w Row) bool { return w.Agent == agent && len(w.Runs) > 0 })
	if i < 0 {
		return nil
	}
	return &r.Rows[i]
}

// UpdateReadme writes the tables into the README.
func UpdateReadme(file, dir string) error {
	table, err := ReadmeTable(dir)
	if err != nil {
		return fmt.Errorf("cannot update the README: %w", err)
	}
	if err := Splice(file, "measured", table); err != nil {
		return err
	}
	table, ok, err := FormatsTable(dir)
	if err != nil {
		return fmt.Errorf("cannot update the README: %w", err)
	}
	if !ok {
		return nil
	}
	return Splice(file, "formats", table)
}

// Splice replaces the text in a file between `<!-- name:begin -->` and `<!-- name:end -->`.
func Splice(file, name, text string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("cannot update a table: %w", err)
	}
	updated, err := spliced(string(old), name, text)
	if err != nil {
		return fmt.Errorf("cannot update %s: %w", file, err)
	}
	return os.WriteFile(file, []byte(updated), 0o644)
}

var errMarkers = errors.New("it must have the lines `<!-- NAME:begin -->` and `<!-- NAME:end -->`, in this order")

func spliced(old, name, text string) (string, error) {
	begin, end := "<!-- "+name+":begin -->\n", "<!-- "+name+":end -->"
	before, rest, ok := strings.Cut(old, begin)
	_, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		return "", fmt.Errorf("%w, NAME being %s", errMarkers, name)
	}
	return before + begin + text + end + after, nil
}
