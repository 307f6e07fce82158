// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"iter"
	"maps"

	"github.com/prometheus/prometheus/model/labels"
)

// sweepBytes are those that may be too many without a sweep.
const sweepBytes = 4 << 20

// lostPart is the part of all lines, one in so many, that is worth a sweep when that many, and a few, are known to be gone. Others may come
// to be out of use unseen, or be in pages that come one after the other: there may be as many of these as of lines in use.
const (
	lostPart = 8
	fewLost  = 8000
	// discardedTimes is after how many times as many lines as there are were discarded a sweep looks for names, shapes and whatever else
	// only they had.
	discardedTimes = 8
)

// Lose notes that pages have lost so many lines, which nothing may have any more.
func (c *Catalog) Lose(lines int) { c.lost += lines }

// share notes that others than the page which a line came with may have it. It may be nil.
func (l *Line) share() *Line {
	if l != nil && l.Point != nil {
		l.Point.bits &^= soleBit
	}
	return l
}

// Share does so for a list of lines.
func Share(lines []*Line) {
	for _, l := range lines {
		l.share()
	}
}

// Discard forgets lines that a page had besides those of a plan, and the next one has no more: those that nobody else has ever had at
// once, with their points, and others with the next sweep.
func (c *Catalog) Discard(lines []*Line) {
	for _, l := range lines {
		if !c.discard(l) {
			c.lost++
		}
	}
}

func (c *Catalog) discard(l *Line) bool {
	p := l.Point
	if p == nil || p.bits&soleBit == 0 || p.Line != l || !c.Lines.remove(l) {
		return false
	}
	c.size -= l.bytes()
	if p.Family.shape == nil && c.points.remove(p) { // it was placed
		c.size -= PointBytes
	}
	c.discarded++
	return true
}

// IsLitter tells whether more may be out of use than what the last sweep left.
func (c *Catalog) IsLitter() bool {
	return c.lost > c.Lines.count/lostPart+fewLost || c.discarded > discardedTimes*c.Lines.count+fewLost || c.Lines.count > 2*c.swept+1000 || c.Held() > 2*c.sweptSize+sweepBytes
}

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
	known := c.Lines.count
	// These are for lines to share that come at once. Those to come have little to share with these.
	c.pieces, c.forms, c.shapes = table[piece, *piece]{}, map[string]*form{}, map[uint64]*shape{}
	c.shapeCount = 0
	c.size = 0
	metas := make(map[*Line]Meta)
	c.Lines.retain(func(l *Line) bool {
		if l.Epoch != mark {
			delete(c.Bounds.rare, l)
			delete(c.exposed, l)
			delete(c.unspelled, l)
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
	c.points.retain(func(p *Point) bool { return p.Epoch == mark })
	c.sweepShared()
	if known > 0 {
		c.written = c.written * int64(c.Lines.count) / int64(known)
	}
	c.size += PointBytes * int64(c.points.count)
	c.lost, c.discarded = 0, 0
	c.swept, c.sweptSize = c.Lines.count, c.Held()
}

// keep marks what a line that stays refers to.
func (l *Line) keep(epoch uint32) {
	l.Name.Epoch = epoch
	if l.Name.Cond != nil {
		l.Name.Cond.Epoch = epoch
	}
	if l.Point != nil {
		l.Point.keep(epoch)
	}
}

// keep marks what a point that stays refers to. One that is not placed yet has no base.
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

// sweepShared forgets what no line and no point that stays refers to.
func (c *Catalog) sweepShared() {
	c.names.retain(func(n *Name) bool { return n.Epoch == c.epoch })
	for n := range c.names.all {
		c.size += n.bytes()
	}
	c.bases.retain(func(b *base) bool { return b.epoch == c.epoch })
	for b := range c.bases.all {
		if b.family != nil && b.family.Epoch != c.epoch {
			b.family = nil
		}
		c.size += BaseBytes + FamilyBytes
	}
	c.families = kept(c.families, func(f *Family) bool { return f.Epoch == c.epoch })
	c.size += 2 * FamilyBytes * int64(len(c.families))
	c.resources = kept(c.resources, func(r *Resource) bool { return r.Epoch == c.epoch })
	c.scopes = kept(c.scopes, func(s *Scope) bool { return s.epoch == c.epoch })
	c.keySets = kept(c.keySets, func(k *keys) bool { return k.epoch == c.epoch })
	for _, r := range c.resources {
		c.size += r.bytes()
	}
	for k, s := range c.scopes {
		c.size += s.bytes(len(k))
	}
	c.conditions = kept(c.conditions, func(cond *Condition) bool { return cond.Epoch == c.epoch })
	for _, cond := range c.conditions {
		c.size += cond.bytes()
	}
	c.named = map[string][]*keys{}
	attributes := make(map[string]string)
	for key, k := range c.keySets {
		c.size += k.bytes(len(key))
		for _, name := range k.Names {
			attributes[name] = name
		}
		k.Contested = false
	}
	for _, k := range c.keySets {
		c.contest(k)
	}
	c.attributes = attributes
	for name := range attributes {
		c.size += attributeBytes + int64(len(name))
	}
}

// kept returns a map of what stays: one does not shrink by itself.
func kept[K comparable, V any](m map[K]V, stays func(V) bool) map[K]V {
	out := make(map[K]V)
	for k, v := range m {
		if stays(v) {
			out[k] = v
		}
	}
	return out
}

// Slim gives back what exposed took for a page of new lines: a map does not shrink by itself.
func (c *Catalog) Slim() {
	if c.exposedPeak <= 1000+4*len(c.exposed) {
		return
	}
	kept := make(map[*Line]labels.Labels, len(c.exposed))
	maps.Copy(kept, c.exposed)
	c.exposed, c.exposedPeak = kept, len(kept)
}
