// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	readmeBegin = "<!-- measured:begin -->"
	readmeEnd   = "<!-- measured:end -->"
)

// readmeResults are the results that the README shows.
var readmeResults = []string{"node", "ksm"}

var errMarkers = errors.New("it must have the lines " + readmeBegin + " and " + readmeEnd + ", in this order")

// ReadmeTable renders what stands between the README's markers.
func ReadmeTable(dir string) (string, error) {
	var b strings.Builder
	b.WriteString("\n")
	for i, name := range readmeResults {
		r, err := Load(filepath.Join(dir, name+".json"))
		if err != nil {
			return "", err
		}
		if i == 0 {
			fmt.Fprintf(&b, "On %d cores of %s, all on one machine, each agent in turn (`%s`, %s). The CPU is user and system time of the whole process;\nevery sample served was looked for at the destination.\n\n",
				r.Machine.Cores, r.Machine.Model, r.Command, r.Taken.Format("2 January 2006"))
		}
		fmt.Fprintf(&b, "**%s**\n\n", r.Title)
		b.WriteString(header("Agent", "CPU µs/sample", "RSS MB mean / peak", "Wire B/sample", "Lost samples"))
		for _, w := range byCost(r.Rows) {
			if len(w.Runs) == 0 {
				continue
			}
			title := w.Title
			if w.Party == "godwit" {
				title = "**" + title + "**"
			}
			b.WriteString(row(title, number(w.Of(cpuFigure.of).Median),
				number(w.Of(rssFigure.of).Median)+" / "+number(w.Of(peakFigure.of).Max),
				number(w.Of(wireFigure.of).Median), number(w.Of(lostFigure.of).Max)))
		}
		fmt.Fprintf(&b, "\n![%s](benchmarks/results/%s.svg)\n\n", r.Title, r.Name)
	}
	return b.String(), nil
}

// readmeWith puts a table between the markers of a README.
func readmeWith(readme, table string) (string, error) {
	before, rest, ok := strings.Cut(readme, readmeBegin+"\n")
	_, after, ended := strings.Cut(rest, readmeEnd)
	if !ok || !ended {
		return "", errMarkers
	}
	return before + readmeBegin + "\n" + table + readmeEnd + after, nil
}

// UpdateReadme writes the table of the results into the README.
func UpdateReadme(file, dir string) error {
	readme, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("cannot update the README: %w", err)
	}
	table, err := ReadmeTable(dir)
	if err != nil {
		return fmt.Errorf("cannot update the README: %w", err)
	}
	updated, err := readmeWith(string(readme), table)
	if err != nil {
		return fmt.Errorf("cannot update %s: %w", file, err)
	}
	return os.WriteFile(file, []byte(updated), 0o644)
}
