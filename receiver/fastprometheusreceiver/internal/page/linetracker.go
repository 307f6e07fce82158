// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"slices"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

// A lineTracker follows a page along the lines that were expected: those of its target's plan, or of another target's.
type lineTracker struct {
	plan     *plan.Plan
	borrowed bool            // the plan is another target's
	expected []*catalog.Line // the lines of the last page
	page     []*catalog.Line // memory for expected, when it is not the plan's list
	next     int             // index into expected
	search   plan.Search

	text   *plan.Text // of the first lines of expected, for as long as the page matches them
	texts  int        // how many lines text has
	places []place    // where the lines are that were read from the current chunk; only with text
	placed int        // index of the first line in places

	strayed bool            // the page differs from expected: lines has its own
	lines   []*catalog.Line // all lines of the page, once strayed
	lost    int             // consecutive lines that were not the next expected
}

// A place is where the text of a line is in the current chunk.
type place struct{ begin, end int }

// expect sets the expected lines to those of the plan and, if that is the target's, to how its last page differed from
// it.
func (r *lineTracker) expect(t *Target) {
	r.expected = r.plan.Body
	r.text, r.texts = r.plan.Text(), len(r.expected)
	r.search = r.plan.Among(nil)
	if r.plan == t.Plan && !t.Diff.IsEmpty() {
		r.search = r.plan.Among(t.Diff.Extras)
		r.page = t.Diff.Apply(slices.Grow(r.page[:0], len(r.expected)+len(t.Diff.Extras)), r.expected)
		r.expected, r.texts = r.page, t.Diff.First()
	}
}

// step takes the expected line.
func (r *lineTracker) step(l *catalog.Line) {
	r.next++
	r.lost = 0
	if r.strayed {
		r.lines = append(r.lines, l)
	}
}

// deviate takes a line that is not the next expected, and searches the expected lines for the place to continue.
func (r *lineTracker) deviate(l *catalog.Line) {
	if !r.strayed {
		r.beginOwnLines()
	}
	r.lines = append(r.lines, l)
	r.lost++
	if i := r.search.Ahead(r.expected, r.next, r.lost, l); i >= 0 {
		r.next, r.lost = i+1, 0
	}
}

// beginOwnLines begins a list of the page's own lines, with those read up to here.
func (r *lineTracker) beginOwnLines() {
	r.strayed, r.text, r.lost = true, nil, 0
	r.lines = append(slices.Grow(r.lines[:0], len(r.expected)+len(r.expected)/16), r.expected[:r.next]...)
}

// readSoFar returns the lines of the page read so far.
func (r *lineTracker) readSoFar() []*catalog.Line {
	if r.strayed {
		return r.lines
	}
	return r.expected[:r.next]
}

// replaceLines replaces the page's lines.
func (r *lineTracker) replaceLines(lines []*catalog.Line) []*catalog.Line {
	r.lines, r.strayed = lines, true
	return lines
}

// isComplete reports whether the page had all expected lines and no others.
func (r *lineTracker) isComplete() bool { return !r.strayed && r.next == len(r.expected) }
