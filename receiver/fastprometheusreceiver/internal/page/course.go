// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"slices"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

// A course is how a page goes along with the lines that were expected: those of its target's plan, or of another's.
type course struct {
	plan     *plan.Plan
	borrowed bool            // it is not the target's
	expected []*catalog.Line // the last page's
	page     []*catalog.Line // likewise, when they are not the plan's
	next     int             // of expected
	search   plan.Search

	text   *plan.Text // of the first of them, as long as the page has what was expected and nothing else
	texts  int        // how many these are
	places []place    // of those that were read from the bytes at hand, if there is a text
	placed int        // the first of them

	strayed bool            // from the plan: lines has what came instead
	lines   []*catalog.Line // from then on
	lost    int             // lines in a row that were not the next
}

// A place is where the text of a line is in the bytes at hand.
type place struct{ begin, end int }

// expect has the page go along with the plan and, where that is the target's, with what its last page had otherwise.
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

// stray takes a line that is not the next, and looks for the place where to go on.
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

// leave notes line by line what the page has, from its beginning.
func (r *course) leave() {
	r.strayed, r.text, r.lost = true, nil, 0
	r.lines = append(slices.Grow(r.lines[:0], len(r.expected)+len(r.expected)/16), r.expected[:r.next]...)
}

// seen returns the lines of the page up to here.
func (r *course) seen() []*catalog.Line {
	if r.strayed {
		return r.lines
	}
	return r.expected[:r.next]
}

// exchange has other lines be those of the page.
func (r *course) exchange(lines []*catalog.Line) []*catalog.Line {
	r.lines, r.strayed = lines, true
	return lines
}

// isThrough tells whether the page had all that was expected and nothing else.
func (r *course) isThrough() bool { return !r.strayed && r.next == len(r.expected) }
