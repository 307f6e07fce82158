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

// sweep forgets lines and points that are in no plan, and held by no scrape, once they are as many as those that are.
func (c *cohort) sweep() {
	if c.lines.count <= 2*c.swept+1000 {
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
			if l.point != nil {
				l.point.epoch = c.epoch
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
			for i := range p.layout.points {
				p.layout.points[i].point.epoch = c.epoch
			}
		}
	}
	lines, points := c.lines, c.points
	c.pieces, c.forms, c.shapes = map[string]*string{}, map[string]*form{}, map[uint64]*shape{}
	c.lines, c.points = table[line, *line]{}, table[point, *point]{}
	c.lines.makeRoom(kept)
	c.points.makeRoom(min(kept, points.count))
	names := map[[2]string]*name{}
	for _, l := range c.report {
		names[[2]string{l.name.final, l.name.exposed}] = l.name
	}
	for l := range lines.all {
		if l.epoch != c.epoch {
			delete(c.metas, l)
			delete(c.exposed, l)
			delete(c.untold, l)
			continue
		}
		c.lines.add(l)
		c.keep(l.text)
		if l.name != nil && l.name.epoch != c.epoch {
			l.name.epoch = c.epoch
			names[[2]string{l.name.final, l.name.exposed}] = l.name
		}
	}
	c.names = names
	for p := range points.all {
		if p.epoch == c.epoch {
			c.points.add(p)
		}
	}
	c.swept = c.lines.count
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
	s.Targets += c.targets
	s.Plans += len(c.plans)
	s.Lines += c.lines.count
	s.Points += c.points.count
	for l := range c.lines.all {
		if s.Bytes += 80; l.text.body == nil {
			s.Bytes += int64(len(*l.text.head)) + 16
		}
	}
	for t := range c.pieces {
		s.Bytes += int64(len(t)) + 64
	}
	s.Bytes += 48 * int64(c.points.count)
	for f := range c.forms {
		s.Bytes += int64(len(f)) + 64
	}
	for _, p := range c.plans {
		s.Bytes += 8 * int64(len(p.lines))
		if p.layout != nil {
			s.Bytes += 16 * int64(len(p.layout.points))
		}
	}
}
