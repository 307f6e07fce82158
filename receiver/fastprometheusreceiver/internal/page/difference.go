// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"math"
	"slices"
)

// A difference is how a page departs from a plan: lines that are missing, and extra ones.
type difference struct {
	edits  []edit
	extras []*line
}

// A lineSet is some of the lines of a plan, by their numbers.
type lineSet []uint64

func (s lineSet) has(i int32) bool { return i >= 0 && int(i/64) < len(s) && s[i/64]&(1<<(i%64)) != 0 }

func (s lineSet) add(i int32) { s[i/64] |= 1 << (i % 64) }

// none returns an empty set that has room for so many lines, in the memory of another.
func (s lineSet) none(lines int) lineSet {
	s = slices.Grow(s[:0], (lines+63)/64)[:(lines+63)/64]
	clear(s)
	return s
}

// An edit leaves out lines of the plan, from one on, and has the next of the extras in their place.
type edit struct{ at, gone, extra int32 }

func (d *difference) isEmpty() bool { return len(d.edits) == 0 }

// apply appends the lines of the page that differs so from the plan's.
func (d *difference) apply(dst, plan []*line) []*line {
	i, x := int32(0), int32(0)
	for _, e := range d.edits {
		dst = append(append(dst, plan[i:e.at]...), d.extras[x:x+e.extra]...)
		i, x = e.at+e.gone, x+e.extra
	}
	return append(dst, plan[i:]...)
}

// compare finds how a page differs from a plan, by about as many extras as some; ok is false when there is too much of it.
func compare(p *plan, report int, page []*line, some int) (d difference, ok bool) {
	d.extras = make([]*line, 0, some)
	plan, look := p.body(report), p.among(nil)
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
		if next := look.ahead(plan, i, lost, l); next >= 0 {
			at().gone += int32(next - i)
			sum += next - i
			i, lost = next+1, 0
			continue
		}
		at().extra++
		d.extras = append(d.extras, l)
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

// A search looks for lines of a page among those of the last that are to come.
type search struct {
	newest uint32 // of those lines
	tried  int    // lines that were looked for
	vain   int    // lines looked at for nothing
}

// among prepares to search lines, of which some are not the plan's.
func (p *plan) among(extras []*line) search {
	s := search{newest: p.newest}
	for _, l := range extras {
		s.newest = max(s.newest, l.id)
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

// ahead returns where a line is, or -1. What is new on the page is not looked for. The more lines in a row were not the
// next, the further it looks, until most of that was in vain.
func (s *search) ahead(lines []*line, next, lost int, l *line) int {
	if l.id > s.newest {
		return -1
	}
	s.tried++
	end := min(len(lines), next+near<<min(lost, 12))
	if s.vain+end-next > vainPages*len(lines)+vainLines*s.tried {
		end = min(end, next+near)
	}
	for i := next; i < end; i++ {
		if lines[i] == l {
			return i
		}
	}
	s.vain += end - next
	return -1
}

// align brings the values of the page into the order of the plan's lines. Those missing are stale markers.
func (d *difference) align(dst, values []float64, lines int) []float64 {
	i, from := 0, 0
	for _, e := range d.edits {
		same := int(e.at) - i
		dst = append(dst, values[from:from+same]...)
		for range e.gone {
			dst = append(dst, staleMarker)
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

// beyond appends the values of the extras.
func (d *difference) beyond(dst, values []float64) []float64 {
	i, from := 0, 0
	for _, e := range d.edits {
		from += int(e.at) - i
		dst = append(dst, values[from:from+int(e.extra)]...)
		i, from = int(e.at+e.gone), from+int(e.extra)
	}
	return dst
}

// renumber names samples of the page, in order, as align and beyond place them.
func (d *difference) renumber(xs []placedExemplar, all int) {
	i, from, x, extras := 0, 0, 0, 0
	shift := func(end, by int) {
		for ; x < len(xs) && int(xs[x].sample) < end; x++ {
			xs[x].sample += int32(by)
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
