// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"maps"

	"github.com/prometheus/prometheus/model/labels"
)

// sweep forgets lines and points that are in no plan, once they are as many as those that are.
func (c *cohort) sweep() {
	if len(c.lines) <= 2*c.swept+1000 {
		return
	}
	c.epoch++
	c.marked = nil
	keep := func(lines []*line) {
		for _, l := range lines {
			l.epoch = c.epoch
			if l.point != nil {
				l.point.epoch = c.epoch
			}
		}
	}
	for t := range c.differing {
		keep(t.diff.extras)
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
	c.lines, c.points = map[uint64]*line{}, map[uint64]*point{}
	names := map[[2]string]*name{}
	for _, l := range c.report {
		names[[2]string{l.name.final, l.name.exposed}] = l.name
	}
	for _, l := range lines {
		if l.epoch != c.epoch {
			delete(c.metas, l)
			delete(c.exposed, l)
			delete(c.untold, l)
			continue
		}
		_, at := c.find([]byte(l.text), l.setting)
		c.lines[at] = l
		if l.name != nil {
			names[[2]string{l.name.final, l.name.exposed}] = l.name
		}
	}
	c.names = names
	for at, p := range points {
		if p.epoch == c.epoch {
			for c.points[at] != nil {
				at++
			}
			c.points[at] = p
		}
	}
	c.swept = len(c.lines)
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
	s.Lines += len(c.lines)
	s.Points += len(c.points)
	for _, l := range c.lines {
		s.Bytes += int64(len(l.text)) + 80
	}
	for _, p := range c.points {
		s.Bytes += 72 + int64(len(p.values))
	}
	for _, p := range c.plans {
		s.Bytes += 8 * int64(len(p.lines))
		if p.layout != nil {
			s.Bytes += 16 * int64(len(p.layout.points))
		}
	}
}
