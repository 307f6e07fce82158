// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"math"
	"slices"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
)

// A difference is how a page differs from a plan: lines that are missing, and extra ones.
type difference struct {
	edits  []edit
	Extras []*catalog.Line
}

// A lineSet is a bitmap of lines of a plan.
type lineSet []uint64

func (s lineSet) Has(i int32) bool { return i >= 0 && int(i/64) < len(s) && s[i/64]&(1<<(i%64)) != 0 }

func (s lineSet) add(i int32) { s[i/64] |= 1 << (i % 64) }

// none returns an empty set for the given number of lines, in the memory of s.
func (s lineSet) none(lines int) lineSet {
	s = slices.Grow(s[:0], (lines+63)/64)[:(lines+63)/64]
	clear(s)
	return s
}

// An edit skips lines of the plan, starting at one, and inserts the next extra lines there.
type edit struct{ at, gone, extra int32 }

func (d *difference) IsEmpty() bool { return len(d.edits) == 0 }

// First returns how many lines of the plan come before the first difference.
func (d *difference) First() int {
	if len(d.edits) == 0 {
		return math.MaxInt
	}
	return int(d.edits[0].at)
}

// Apply appends the lines of the page, given those of the plan.
func (d *difference) Apply(dst, plan []*catalog.Line) []*catalog.Line {
	i, x := int32(0), int32(0)
	for _, e := range d.edits {
		dst = append(append(dst, plan[i:e.at]...), d.Extras[x:x+e.extra]...)
		i, x = e.at+e.gone, x+e.extra
	}
	return append(dst, plan[i:]...)
}

// Compare finds how a page differs from a plan, with about some extra lines; ok is false if they differ too much.
func Compare(p *Plan, page []*catalog.Line, some int) (d difference, ok bool) {
	d.Extras = make([]*catalog.Line, 0, some)
	plan, look := p.Body, p.Among(nil)
	i, lost, sum := 0, 0, 0
	at := func() *edit {
		if n := len(d.edits); n > 0 && int(d.edits[n-1].at+d.edits[n-1].gone) == i {
			return &d.edits[n-1]
		}
		d.edits = append(d.edits, edit{at: int32(i)})
		return &d.edits[len(d.edits)-1]
	}
	for _, l := range page {
		if i < len(plan) && plan[i] == l {
			i++
			lost = 0
			continue
		}
		lost++
		if next := look.Ahead(plan, i, lost, l); next >= 0 {
			at().gone += int32(next - i)
			sum += next - i
			i, lost = next+1, 0
			continue
		}
		at().extra++
		d.Extras = append(d.Extras, l)
		if sum++; sum > len(plan)+8 {
			return d, false
		}
	}
	if i < len(plan) {
		sum += len(plan) - i
		at().gone += int32(len(plan) - i)
	}
	return d, sum <= len(plan)+8
}

// A Search looks for lines of a page among the following lines of the last page.
type Search struct {
	newest uint32 // highest ID of those lines
	Tried  int    // lines that were looked for
	Wasted int    // lines compared without a match
}

// Among prepares to search lines of the plan and extras.
func (p *Plan) Among(extras []*catalog.Line) Search {
	s := Search{newest: p.newest}
	for _, l := range extras {
		s.newest = max(s.newest, l.ID)
	}
	return s
}

const (
	// near is the distance that is always searched.
	near = 64
	// vainPages and vainLines limit the lines that are compared without a match beyond that: vainPages pages, and
	// vainLines lines for each one that is looked for.
	vainPages = 8
	vainLines = 2 * near
)

// MostWasted is the limit of lines that are compared without a match when tried lines are looked for.
func MostWasted(lines, tried int) int { return vainPages*lines + vainLines*tried }

// Ahead returns where a line is, or -1. New lines are not looked for. The more consecutive lines were not the next, the
// further it searches, until the limit of comparisons without a match.
func (s *Search) Ahead(lines []*catalog.Line, next, lost int, l *catalog.Line) int {
	if l.ID > s.newest {
		return -1
	}
	s.Tried++
	end := min(len(lines), next+near<<min(lost, 12))
	if s.Wasted+end-next > MostWasted(len(lines), s.Tried) {
		end = min(end, next+near)
	}
	for i := next; i < end; i++ {
		if lines[i] == l {
			return i
		}
	}
	s.Wasted += end - next
	return -1
}

// Align brings the values of the page into the order of the plan's lines. Missing ones become stale markers.
func (d *difference) Align(dst, values []float64, lines int) []float64 {
	return align(d, dst, values, lines, StaleMarker)
}

// AlignTimes does the same with timestamps. Missing ones become NoTime.
func (d *difference) AlignTimes(dst, times []int64, lines int) []int64 {
	return align(d, dst, times, lines, NoTime)
}

func align[T any](d *difference, dst, values []T, lines int, missing T) []T {
	i, from := 0, 0
	for _, e := range d.edits {
		same := int(e.at) - i
		dst = append(dst, values[from:from+same]...)
		for range e.gone {
			dst = append(dst, missing)
		}
		i, from = int(e.at+e.gone), from+same+int(e.extra)
	}
	return append(dst, values[from:from+lines-i]...)
}

// missing adds the lines of the plan that the page lacks.
func (d *difference) missing(to lineSet) {
	for _, e := range d.edits {
		for i := e.at; i < e.at+e.gone; i++ {
			to.add(i)
		}
	}
}

// missingCount returns how many lines of the plan the page lacks.
func (d *difference) missingCount() (n int) {
	for _, e := range d.edits {
		n += int(e.gone)
	}
	return n
}

// ExtraValues appends the values of the extra lines.
func (d *difference) ExtraValues(dst, values []float64) []float64 { return appendExtra(d, dst, values) }

// ExtraTimes appends the timestamps of the extra lines.
func (d *difference) ExtraTimes(dst, times []int64) []int64 { return appendExtra(d, dst, times) }

func appendExtra[T any](d *difference, dst, values []T) []T {
	i, from := 0, 0
	for _, e := range d.edits {
		from += int(e.at) - i
		dst = append(dst, values[from:from+int(e.extra)]...)
		i, from = int(e.at+e.gone), from+int(e.extra)
	}
	return dst
}

// splitBits splits a bitmap of the page's lines into those of the plan and the extra ones.
func (d *difference) splitBits(page lineSet, lines int) (plan, extras lineSet) {
	if len(page) == 0 || d.IsEmpty() {
		return page, nil
	}
	plan, extras = lineSet(nil).none(lines), lineSet(nil).none(len(d.Extras))
	i, x, at := int32(0), int32(0), int32(0)
	same := func(end int32) {
		for ; i < end; i, at = i+1, at+1 {
			if page.Has(at) {
				plan.add(i)
			}
		}
	}
	for _, e := range d.edits {
		same(e.at)
		for range e.extra {
			if page.Has(at) {
				extras.add(x)
			}
			x, at = x+1, at+1
		}
		i += e.gone
	}
	same(int32(lines))
	return plan, extras
}

// Renumber changes the sample numbers of exemplars, which are in order, from those of the page to those that Align and
// Beyond give.
func (d *difference) Renumber(xs []PlacedExemplar, all int) {
	i, from, x, extras := 0, 0, 0, 0
	shift := func(end, by int) {
		for ; x < len(xs) && int(xs[x].Sample) < end; x++ {
			xs[x].Sample += int32(by)
		}
	}
	for _, e := range d.edits {
		same := int(e.at) - i
		shift(from+same, i-from)
		from += same
		shift(from+int(e.extra), all+extras-from)
		extras += int(e.extra)
		i, from = int(e.at+e.gone), from+int(e.extra)
	}
	shift(math.MaxInt, i-from)
}
