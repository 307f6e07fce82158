// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"maps"

	"github.com/prometheus/prometheus/model/labels"
)

// hold keeps a line that a scrape has found by its text until the scrape has ended: it may be in no plan yet, or no more.
func (c *cohort) hold(s *Scrape, l *line) *line {
	if s.held = append(s.held, l); len(s.held) == 1 {
		c.reading[s] = struct{}{}
	}
	return l
}

// sweep forgets what is in no plan, and held by no scrape, once it is as much as what is.
func (c *cohort) sweep() {
	if c.lines.count <= 2*c.swept+1000 && c.held() <= 2*c.sweptSize+sweepBytes {
		return
	}
	c.epoch++
	c.marked = nil
	kept := 0
	keep := func(lines []*line) {
		for _, l := range lines {
			if l.epoch != c.epoch {
				l.epoch = c.epoch
				kept++
			}
			l.name.epoch = c.epoch
			if l.name.cond != nil {
				l.name.cond.epoch = c.epoch
			}
			if l.point != nil {
				l.point.keep(c.epoch)
			}
		}
	}
	for t := range c.differing {
		keep(t.diff.extras)
	}
	for s := range c.reading {
		keep(s.held)
	}
	for _, p := range c.plans {
		keep(p.lines)
		if p.layout != nil {
			for _, q := range p.layout.points {
				q.keep(c.epoch)
			}
		}
	}
	keep(c.report)
	lines := c.lines
	c.lines.makeRoom(kept)
	// These are for lines to share that come at once. Those to come have little to share with these.
	c.pieces, c.forms, c.shapes = table[piece, *piece]{}, map[string]*form{}, map[uint64]*shape{}
	c.cast = 0
	c.size = 0
	metas := make(map[*line]meta)
	for l := range lines.all {
		if l.epoch != c.epoch {
			delete(c.bounds.rare, l)
			delete(c.exposed, l)
			delete(c.untold, l)
			continue
		}
		c.lines.add(l)
		c.size += l.bytes()
		if m, ok := c.metas[l]; ok {
			metas[l] = m
			c.size += metaBytes + int64(len(m.text))
		}
	}
	c.metas = metas
	c.points.retain(func(p *point) bool { return p.epoch == c.epoch })
	c.sweepShared()
	if lines.count > 0 {
		c.written = c.written * int64(c.lines.count) / int64(lines.count)
	}
	c.size += pointBytes * int64(c.points.count)
	c.swept, c.sweptSize = c.lines.count, c.held()
}

// keep marks what a point that stays refers to. One that is not placed yet has no base.
func (p *point) keep(epoch uint32) {
	p.epoch, p.form.keys.epoch = epoch, epoch
	f := p.family
	f.resource.epoch = epoch
	if f.scope != nil {
		f.scope.epoch = epoch
	}
	if f.base != nil {
		f.epoch, f.base.epoch = epoch, epoch
	}
}

// sweepShared forgets what no line and no point that stays refers to.
func (c *cohort) sweepShared() {
	c.names.retain(func(n *name) bool { return n.epoch == c.epoch })
	for n := range c.names.all {
		c.size += n.bytes()
	}
	c.bases.retain(func(b *base) bool { return b.epoch == c.epoch })
	for b := range c.bases.all {
		if b.family != nil && b.family.epoch != c.epoch {
			b.family = nil
		}
		c.size += baseBytes + familyBytes
	}
	c.families = kept(c.families, func(f *family) bool { return f.epoch == c.epoch })
	c.size += 2 * familyBytes * int64(len(c.families))
	c.resources = kept(c.resources, func(r *resource) bool { return r.epoch == c.epoch })
	c.scopes = kept(c.scopes, func(s *scope) bool { return s.epoch == c.epoch })
	c.keySets = kept(c.keySets, func(k *keys) bool { return k.epoch == c.epoch })
	for _, r := range c.resources {
		c.size += r.bytes()
	}
	for k, s := range c.scopes {
		c.size += s.bytes(len(k))
	}
	c.conditions = kept(c.conditions, func(cond *condition) bool { return cond.epoch == c.epoch })
	for _, cond := range c.conditions {
		c.size += cond.bytes()
	}
	c.named = map[string][]*keys{}
	attributes := make(map[string]string)
	for key, k := range c.keySets {
		c.size += k.bytes(len(key))
		for _, name := range k.names {
			attributes[name] = name
		}
		k.contested = false
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

// slim gives back what exposed took for a page of new lines: a map does not shrink by itself.
func (c *cohort) slim() {
	if c.crowd <= 1000+4*len(c.exposed) {
		return
	}
	kept := make(map[*line]labels.Labels, len(c.exposed))
	maps.Copy(kept, c.exposed)
	c.exposed, c.crowd = kept, len(kept)
}

// stats adds what the cohort holds.
func (c *cohort) stats(s *Stats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Targets += int(c.targets.Load())
	s.Plans += len(c.plans)
	s.Lines += c.lines.count
	s.Points += c.points.count
	s.Bytes += c.held()
	for _, p := range c.plans {
		s.Bytes += 8*int64(len(p.lines)) + saidBytes*int64(len(p.said))
		if p.layout != nil {
			s.Bytes += p.layout.bytes()
		}
	}
	for t := range c.differing {
		s.Bytes += 8*int64(len(t.diff.extras)) + 12*int64(len(t.diff.edits))
	}
}
