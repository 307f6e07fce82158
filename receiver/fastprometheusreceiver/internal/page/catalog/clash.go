// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"iter"

	"github.com/prometheus/prometheus/model/labels"
)

// Lines that are different series for most targets may be the same series for one: a line has a value of its own that
// another line takes from the target. Such a target is pinned: it has lines of its own, with all values spelled out.

// Pin gives a target lines of its own from now on, shared with no other. The shared lines of its last page are replaced
// when the next page has ended.
func (c *Catalog) Pin(t *Identity) {
	h := uint64(1)
	for _, v := range t.Values {
		h = mixed(h, v)
	}
	t.Pin = &Condition{values: t.Values[:c.variables:c.variables], pin: h | 1}
	t.Turned = true
}

// Turn replaces lines that a target shares by its own.
func (c *Catalog) Turn(t *Identity, lines []*Line) []*Line {
	out := make([]*Line, len(lines))
	for i, l := range lines {
		out[i] = c.turnLine(t, l)
	}
	return out
}

func (c *Catalog) turnLine(t *Identity, l *Line) *Line {
	if l.Kind.IsMetadata() || l.Kind == ReportLine || l.Name.Cond == t.Pin {
		return l
	}
	text := l.AppendSpelled(nil, t.Own)
	if own := c.Find(t, text, l.Setting); own != nil {
		return own
	}
	var set labels.Labels
	if l.Kind == SeriesLine {
		var ok bool
		if set, ok = c.unplaced.labels[l]; !ok {
			set = c.again(l)
		}
		b := labels.NewBuilder(set)
		set.Range(func(l labels.Label) { b.Set(l.Name, t.resolve(l.Value)) })
		set = b.Labels()
	}
	n := c.metrics.name(l.Name.Final, l.Name.exposed, t.Pin)
	if l.Kind == DroppedLine {
		own := c.NewLine(Whole(n, text), DroppedLine, l.Setting)
		c.Lines.Add(own)
		return own
	}
	return c.addSeries(Whole(n, text), l.Setting, set, !c.unplaced.isUnspelled(l))
}

// Clashes reports whether lines of a page that are different series for other targets are the same series for this one:
// a line has a value of its own where another one, or one of the last page, has the target's. They must become one
// point.
func (c *Catalog) Clashes(t *Identity, lines, was []*Line) bool {
	mark := c.Mark()
	type identity struct {
		base          *base
		scope         *Scope
		job, instance string
		attributes    uint64
	}
	seen := map[identity]*Point{}
	for l := range both(lines, was) {
		q := l.Point
		if l.Kind != SeriesLine || l.Role == NoRole || q == nil || q.Epoch == mark {
			continue
		}
		r := q.Family.Resource
		job, instance := t.Of(r)
		if r.IsNamed() && job == t.Job && instance == t.Host {
			return true
		}
		if !q.Form.Keys.Contested && !r.IsNamed() {
			continue
		}
		q.Epoch = mark
		id := identity{q.Family.Base, q.Family.Scope, job, instance, t.attributesHash(q)}
		if other := seen[id]; other != nil && other != q { // on a mere collision of hashes, the target only shares less
			return true
		}
		seen[id] = q
	}
	return false
}

func both(a, b []*Line) iter.Seq[*Line] {
	return func(yield func(*Line) bool) {
		for _, lines := range [][]*Line{a, b} {
			for _, l := range lines {
				if !yield(l) {
					return
				}
			}
		}
	}
}
