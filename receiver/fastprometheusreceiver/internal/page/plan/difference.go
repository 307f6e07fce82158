// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"math"
	"slices"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
)

// A difference is how a page departs from a plan: lines that are missing, and extra ones.
type difference struct {
	edits  []edit
	Extras []*catalog.Line
}

// A lineSet is some of the lines of a plan, by their numbers.
type lineSet []uint64

func (s lineSet) Has(i int32) bool { return i >= 0 && int(i/64) < len(s) && s[i/64]&(1<<(i%64)) != 0 }

func (s lineSet) add(i int32) { s[i/64] |= 1 << (i % 64) }

// none returns an empty set that has room for so many lines, in the memory of another.
func (s lineSet) none(lines int) lineSet {
	s = slices.Grow(s[:0], (lines+63)/64)[:(lines+63)/64]
	clear(s)
	return s
}

// An edit leaves out lines of the plan, from one on, and has the next of the extras in their place.
type edit struct{ at, gone, extra int32 }

func (d *difference) IsEmpty() bool { return len(d.edits) == 0 }

// First returns how many lines of the plan there are before the first that is missing or has others before it.
func (d *difference) First() int {
	if len(d.edits) == 0 {
		return math.MaxInt
	}
	return int(d.edits[0].at)
}

// Apply appends the lines of the page that differs so from the plan's.
func (d *difference) Apply(dst, plan []*catalog.Line) []*catalog.Line {
	i, x := int32(0), int32(0)
	for _, e := range d.edits {
		dst = append(append(dst, plan[i:e.at]...), d.Extras[x:x+e.extra]...)
		i, x = e.at+e.gone, x+e.extra
	}
	return append(dst, plan[i:]...)
}

// Compare finds how a page differs from a plan, by about as many extras as some; ok is false when there is too much of it.
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

// A Search looks for lines of a page among those of the last that are to come.
type Search struct {
	newest uint32 // of those lines
	Tried  int    // lines that were looked for
	Wasted int    // lines looked at for nothing
}

// Among prepares to search lines, of which some are not the plan's.
func (p *Plan) Among(extras []*catalog.Line) Search {
	s := Search{newest: p.newest}
	for _, l := range extras {
		s.newest = max(s.newest, l.ID)
	}
	return s
}

const (
	// near is how far a search always looks.
	near = 64
	// vainPages and vainLines bound what it looks at for nothing beyond that: so many pages, and for each line it looks for
	// so many more.
	vainPages = 8
	vainLines = 2 * near
)

// MostWasted bounds how many lines are looked at for nothing when so many were looked for among others.
func MostWasted(lines, tried int) int { return vainPages*lines + vainLines*tried }

// Ahead returns where a line is, or -1. What is new on the page is not looked for. The more lines in a row were not the
// next, the further it looks, until most of that was in vain.
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

// Align brings the values of the page into the order of the plan's lines. Those missing are stale markers.
func (d *difference) Align(dst, values []float64, lines int) []float64 {
	return align(d, dst, values, lines, StaleMarker)
}

// AlignTimes does so with the times of samples. Those missing have none.
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

// missing adds the lines of the plan that the page has not.
func (d *difference) missing(to lineSet) {
	for _, e := range d.edits {
		for i := e.at; i < e.at+e.gone; i++ {
			to.add(i)
		}
	}
}

// missed returns how many lines of the plan the page has not.
func (d *difference) missed() (n int) {
	for _, e := range d.edits {
		n += int(e.gone)
	}
	return n
}

// Beyond appends the values of the extras.
func (d *difference) Beyond(dst, values []float64) []float64 { return beyond(d, dst, values) }

// TimesBeyond appends their times.
func (d *difference) TimesBeyond(dst, times []int64) []int64 { return beyond(d, dst, times) }

func beyond[T any](d *difference, dst, values []T) []T {
	i, from := 0, 0
	for _, e := range d.edits {
		from += int(e.at) - i
		dst = append(dst, values[from:from+int(e.extra)]...)
		i, from = int(e.at+e.gone), from+int(e.extra)
	}
	return dst
}

// divide takes bits of the lines of a page apart: those of the plan's lines, and those of the extras.
func (d *difference) divide(page lineSet, lines int) (plan, extras lineSet) {
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

// Renumber names samples of the page, in order, as align and beyond place them.
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
