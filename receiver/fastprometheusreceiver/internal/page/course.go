// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"slices"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

// A course follows a page along the lines that were expected: those of its target's plan, or of another target's.
type course struct {
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
func (r *course) expect(t *Target) {
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
func (r *course) step(l *catalog.Line) {
	r.next++
	r.lost = 0
	if r.strayed {
		r.lines = append(r.lines, l)
	}
}

// stray takes a line that is not the next expected, and searches the expected lines for the place to continue.
func (r *course) stray(l *catalog.Line) {
	if !r.strayed {
		r.leave()
	}
	r.lines = append(r.lines, l)
	r.lost++
	if i := r.search.Ahead(r.expected, r.next, r.lost, l); i >= 0 {
		r.next, r.lost = i+1, 0
	}
}

// leave begins a list of the page's own lines, with those read up to here.
func (r *course) leave() {
	r.strayed, r.text, r.lost = true, nil, 0
	r.lines = append(slices.Grow(r.lines[:0], len(r.expected)+len(r.expected)/16), r.expected[:r.next]...)
}

// seen returns the lines of the page read so far.
func (r *course) seen() []*catalog.Line {
	if r.strayed {
		return r.lines
	}
	return r.expected[:r.next]
}

// exchange replaces the page's lines.
func (r *course) exchange(lines []*catalog.Line) []*catalog.Line {
	r.lines, r.strayed = lines, true
	return lines
}

// isThrough reports whether the page had all expected lines and no others.
func (r *course) isThrough() bool { return !r.strayed && r.next == len(r.expected) }
