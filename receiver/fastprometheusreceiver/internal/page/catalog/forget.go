// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import "iter"

// sweepBytes is how far a catalog may grow before a sweep.
const sweepBytes = 4 << 20

// A sweep is worth its cost when one line in lostPart, and at least a few, are known to be gone. Lines may also go out
// of use unnoticed, or be on pages that never repeat: up to as many of these as lines in use are kept.
const (
	lostPart = 8
	fewLost  = 8000
	// discardedTimes is how many times the number of lines must have been discarded before a sweep looks for names,
	// shapes and the rest that only those lines used.
	discardedTimes = 8
)

// unused estimates what has gone out of use since the last sweep.
type unused struct {
	lost      int // lines that pages lost
	discarded int // lines that were discarded
	swept     int // lines left by the last sweep
	sweptSize int64
}

// needsSweep reports whether more may be out of use than the last sweep left, given the number of lines and bytes.
func (t *unused) needsSweep(lines int, held int64) bool {
	return t.lost > lines/lostPart+fewLost || t.discarded > discardedTimes*lines+fewLost || lines > 2*t.swept+1000 || held > 2*t.sweptSize+sweepBytes
}

// Lose records that pages have lost the given number of lines, which may now be out of use.
func (c *Catalog) Lose(lines int) { c.unused.lost += lines }

// share records that other pages than the one which a line came with may have it. l may be nil.
func (l *Line) share() *Line {
	if l != nil && l.Point != nil {
		l.Point.bits &^= soleBit
	}
	return l
}

// Share calls share for each of the lines.
func Share(lines []*Line) {
	for _, l := range lines {
		l.share()
	}
}

// Discard forgets lines that a page had in addition to those of a plan, and the next page does not have: those that
// nothing else ever had at once, with their points, and others with the next sweep.
func (c *Catalog) Discard(lines []*Line) {
	for _, l := range lines {
		if !c.discard(l) {
			c.unused.lost++
		}
	}
}

func (c *Catalog) discard(l *Line) bool {
	p := l.Point
	if p == nil || p.bits&soleBit == 0 || p.Line != l || !c.Lines.remove(l) {
		return false
	}
	c.size -= l.bytes()
	if p.Family.shape == nil { // it was placed
		c.points.remove(p)
	}
	c.unused.discarded++
	return true
}

// NeedsSweep reports whether more may be out of use than the last sweep left.
func (c *Catalog) NeedsSweep() bool { return c.unused.needsSweep(c.Lines.count, c.Held()) }

// Sweep forgets all but the lines and points that are in use, and those of the report.
func (c *Catalog) Sweep(lines iter.Seq[[]*Line], points iter.Seq[[]*Point]) {
	mark := c.MarkLines()
	keep := func(lines []*Line) {
		for _, l := range lines {
			l.Epoch = mark
			l.keep(mark)
		}
	}
	for some := range lines {
		keep(some)
	}
	for some := range points {
		for _, p := range some {
			p.keep(mark)
		}
	}
	keep(c.ReportLines)
	stays := c.sweepLines(mark)
	c.pieces.sweep(stays)
	c.shapes = newShapes()
	c.points.sweep(mark, stays)
	c.metrics.sweep(mark)
	c.sweepConditions(mark)
	c.unused = unused{swept: c.Lines.count, sweptSize: c.Held()}
}

// sweepLines forgets lines without a mark, and returns the part that stays.
func (c *Catalog) sweepLines(mark uint32) part {
	known := c.Lines.count
	c.size = 0
	metas := make(map[*Line]Meta)
	for l := range c.Bounds.rare {
		if l.Epoch != mark {
			delete(c.Bounds.rare, l)
		}
	}
	c.unplaced.sweep(mark)
	c.Lines.retain(func(l *Line) bool {
		if l.Epoch != mark {
			return false
		}
		c.size += l.bytes()
		if m, ok := c.metas[l]; ok {
			metas[l] = m
			c.size += MetaBytes + int64(len(m.Text))
		}
		return true
	})
	c.metas = metas
	return part{stay: int64(c.Lines.count), all: int64(known)}
}

// A part is how many stay, of how many.
type part struct{ stay, all int64 }

func (p part) of(n int64) int64 {
	if p.all == 0 {
		return n
	}
	return n * p.stay / p.all
}

// keep marks what a line refers to.
func (l *Line) keep(epoch uint32) {
	l.Name.Epoch = epoch
	if l.Name.Cond != nil {
		l.Name.Cond.Epoch = epoch
	}
	if l.Point != nil {
		l.Point.keep(epoch)
	}
}

// keep marks what a point refers to. A point that is not placed yet has no base.
func (p *Point) keep(epoch uint32) {
	p.Epoch, p.Form.Keys.epoch = epoch, epoch
	f := p.Family
	f.Resource.Epoch = epoch
	if f.Scope != nil {
		f.Scope.epoch = epoch
	}
	if f.Base != nil {
		f.Epoch, f.Base.epoch = epoch, epoch
	}
}

// kept returns a new map of what stays, since a map does not shrink.
func kept[K comparable, V any](m map[K]V, stays func(V) bool) map[K]V {
	out := make(map[K]V)
	for k, v := range m {
		if stays(v) {
			out[k] = v
		}
	}
	return out
}

// Rest frees what only serves to add lines, of which many come together: shapes, and the tables by which forms and pieces are found. Later
// lines have little in common with these.
func (c *Catalog) Rest() {
	c.shapes = newShapes()
	c.pieces.rest()
	c.points.rest()
}

// mostPutAside limits the lines of tables that are put aside: to fill them again takes a tenth of a second for so many.
const mostPutAside = 1 << 18

// PutTablesAside frees the tables by which lines and points are found. The first line that is looked for afterwards has them
// made again, of the lines and points in use then.
func (c *Catalog) PutTablesAside(lines iter.Seq[[]*Line], points iter.Seq[[]*Point]) {
	if c.Lines.count > mostPutAside || c.Lines.things != nil {
		return
	}
	c.Lines.putAside(func(yield func(*Line) bool) {
		for some := range lines {
			for _, l := range some {
				if l.Kind != ReportLine && !yield(l) {
					return
				}
			}
		}
	})
	c.points.known.putAside(func(yield func(*Point) bool) {
		for some := range points {
			for _, p := range some {
				if !yield(p) {
					return
				}
			}
		}
		for some := range lines {
			for _, l := range some {
				if p := l.Point; p != nil && p.Family.shape == nil && !yield(p) {
					return
				}
			}
		}
		for _, l := range c.ReportLines {
			if l.Point != nil && !yield(l.Point) {
				return
			}
		}
	})
}

// BringTables makes tables again that were put aside, while all that is in use can still be found.
func (c *Catalog) BringTables() {
	c.Lines.fill()
	c.points.known.fill()
}

// Slim frees the memory that a page of new lines took.
func (c *Catalog) Slim() { c.unplaced.slim() }
