// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package report says what became of an input: one line for each change.
package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"

	"github.com/godwit-otel/godwit/internal/redact"
)

// An Outcome is the severity of a finding.
type Outcome string

// The outcomes, the worst first.
const (
	// Lost means left out, although it had an effect.
	Lost Outcome = "lost"
	// Needs means present in the result, but not in the distribution that will run it.
	Needs Outcome = "needs"
	// Changed means present in the result with another meaning.
	Changed Outcome = "changed"
	// Note means worth knowing.
	Note Outcome = "note"
)

// A Finding is one line of a report.
type Finding struct {
	Kind Outcome
	// File and Line are the place in the input, Path is the key. Each may be empty.
	File string
	Line int
	Path string
	// Text says what happened to it and, if something can be done, what.
	Text string
}

// String returns the line. What the finding quotes of the input has no secrets: the result has them, where it needs them.
func (f Finding) String() string {
	var b strings.Builder
	b.WriteString(string(f.Kind) + ": ")
	if f.File != "" {
		b.WriteString(f.File)
		if f.Line > 0 {
			fmt.Fprintf(&b, ":%d", f.Line)
		}
		b.WriteString(": ")
	}
	if f.Path != "" {
		b.WriteString(f.Path + ": ")
	}
	b.WriteString(redact.Text(f.Text))
	return b.String()
}

// A Report lists what the conversion changed.
type Report struct {
	Findings []Finding
}

// Add adds a finding unless it is there already.
func (r *Report) Add(f Finding) {
	if !slices.Contains(r.Findings, f) {
		r.Findings = append(r.Findings, f)
	}
}

// Sort sorts the most severe findings first, and keeps the order of the input otherwise.
func (r *Report) Sort() {
	order := []Outcome{Lost, Needs, Changed, Note}
	sort.SliceStable(r.Findings, func(i, j int) bool {
		a, b := r.Findings[i], r.Findings[j]
		return cmp.Or(
			cmp.Compare(slices.Index(order, a.Kind), slices.Index(order, b.Kind)),
			cmp.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line),
		) < 0
	})
}

// Complete reports whether nothing was lost and the distribution has all that the result needs.
func (r *Report) Complete() bool {
	return !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Kind == Lost || f.Kind == Needs })
}

// WriteTo writes a line for each finding, and one with their counts.
func (r *Report) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	counts := map[Outcome]int{}
	for _, f := range r.Findings {
		b.WriteString(f.String() + "\n")
		counts[f.Kind]++
	}
	fmt.Fprintf(&b, "%d lost, %d needed, %d changed, %d notes\n", counts[Lost], counts[Needs], counts[Changed], counts[Note])
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

// Findings that several converters have.
const (
	NoRules   = "rules are evaluated by the server that the series go to: move it there"
	NoAnswers = "a collector answers no queries and stores nothing: leave it with the server that does"
)
