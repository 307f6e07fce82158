// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"hash/maphash"
	"iter"

	"github.com/prometheus/prometheus/model/labels"
)

// Lines that differ for all others may be one series for a target: one has a value of its own that another gets from the target.
// Such a target has lines of its own, all its values spelled out.

// pin gives a target lines of its own from now on, as of no other. Those of its page it still shares are exchanged when the page
// has ended.
func (c *cohort) pin(t *Target) {
	h := uint64(1)
	for _, v := range t.values {
		h = (h ^ maphash.String(seed, v)) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	t.pin = &condition{values: t.values[:c.variables:c.variables], pin: h | 1}
	t.turned = true
}

// turn exchanges lines that a target shares for its own.
func (c *cohort) turn(t *Target, lines []*line) []*line {
	out := make([]*line, len(lines))
	for i, l := range lines {
		out[i] = c.turnLine(t, l)
	}
	return out
}

func (c *cohort) turnLine(t *Target, l *line) *line {
	if l.kind.isMetadata() || l.kind == reportLine || l.name.cond == t.pin {
		return l
	}
	text := l.appendSpelled(nil, t.own)
	if own := c.find(t, text, l.setting); own != nil {
		return own
	}
	var set labels.Labels
	_, untold := c.untold[l]
	if l.kind == seriesLine {
		var ok bool
		if set, ok = c.exposed[l]; !ok {
			set = c.again(l)
		}
		b := labels.NewBuilder(set)
		set.Range(func(l labels.Label) { b.Set(l.Name, t.resolve(l.Value)) })
		set = b.Labels()
	}
	n := c.name(l.name.final, l.name.exposed, t.pin)
	if l.kind == droppedLine {
		own := c.newLine(whole(n, text), droppedLine, l.setting)
		c.lines.add(own)
		return own
	}
	return c.addSeries(whole(n, text), l.setting, set, !untold)
}

// clashes tells whether lines of a page that was just passed, and that differ for other targets, are the same series for this
// one: a line has a value of its own where another, or one of the last page, has the target's. They are to be one point.
func (p *pass) clashes(lines []*line) bool {
	t := p.target
	if t.pin != nil || !p.contested {
		return false
	}
	p.cohort.epoch++
	type identity struct {
		base          *base
		scope         *scope
		job, instance string
		attributes    uint64
	}
	seen := map[identity]*point{}
	for l := range both(lines, p.was) {
		q := l.point
		if l.kind != seriesLine || l.role == noRole || q == nil || q.epoch == p.cohort.epoch {
			continue
		}
		r := q.family.resource
		job, instance := t.of(r)
		if r.isNamed() && job == t.job && instance == t.host {
			return true
		}
		if !q.form.keys.contested && !r.isNamed() {
			continue
		}
		q.epoch = p.cohort.epoch
		h := uint64(0)
		at := 0
		for i, name := range q.form.keys.names {
			v, next := q.value(i, at, t)
			at = next
			h = (h ^ maphash.String(seed, name)) * 0x9e3779b97f4a7c15
			h = (h ^ maphash.String(seed, v)) * 0x9e3779b97f4a7c15
			h ^= h >> 29
		}
		id := identity{q.family.base, q.family.scope, job, instance, h}
		if other := seen[id]; other != nil && other != q { // two that merely have one hash do no more than share nothing
			return true
		}
		seen[id] = q
	}
	return false
}

func both(a, b []*line) iter.Seq[*line] {
	return func(yield func(*line) bool) {
		for _, lines := range [][]*line{a, b} {
			for _, l := range lines {
				if !yield(l) {
					return
				}
			}
		}
	}
}

// of returns the job and the instance that name a resource.
func (t *Target) of(r *resource) (job, instance string) {
	return cmp.Or(t.resolve(r.job), t.job), cmp.Or(t.resolve(r.instance), t.host)
}
