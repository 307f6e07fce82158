// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/slab"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

// A Tree is metrics that were handed out and came back, to be filled again: names, attributes and bounds are already
// there.
type Tree struct {
	metrics            pmetric.Metrics
	Layout             *plan.Layout
	lists              [][]int32         // numbers of points by metric, where they differ from the layout
	owner              *catalog.Identity // the target that it was last filled for
	version            int               // of that target's own values
	hasExemplars       bool
	handed             record  // as it was handed out
	Poisoned           bool    // it was overwritten when it came back
	foreign            bool    // its points still have another layout's attributes
	pointCounts        []int32 // how many points each metric has, while foreign
	stowed             int     // points that the last page did not need
	debt               *Owner  // the target whose values Settle fills in
	attributesPoisoned bool    // attributes of points are still overwritten with poison
	loan               handback.Loan
	changes            handback.Changes // that are restored
	later              bool             // it comes back from batches
	torn               bool             // it came back with something else than was handed out
}

// Loan is passed along with the tree's metrics.
func (t *Tree) Loan() *handback.Loan { return &t.loan }

// Send hands out the tree's metrics for longer than the consumer's call, and reports whether they come back.
func (t *Tree) Send(md pmetric.Metrics, back func()) bool {
	return t.loan.Send(md, int(t.size()), back)
}

// Render makes metrics of a view, in a tree if one is given. They can come back as the returned tree, if there is one.
func Render(l *plan.Layout, t *Tree, v *View) (pmetric.Metrics, *Tree) {
	v.hasExemplars = len(v.Exemplars) > 0
	reuse := v.Owner.Tree.Reuse
	if t != nil && !t.isIntact() {
		v.Owner.Tree.cameBackChanged()
		t = nil
	}
	if t != nil {
		t.handed.lists.PutBack()
		t.loan.Seal(v.Owner.Tree.Unread)
		defers := t.mayDefer(l, v)
		changed := t.Poisoned                  // points have other attributes than last time, or are other points
		anew := t.Poisoned || !slab.Readable() // other values are in other memory
		switch {
		case t.Poisoned:
			t.restore(v.Owner, !defers && !t.foreign)
		case t.attributesPoisoned && !defers && !t.foreign:
			t.restorePoints(v.Owner)
		}
		if t.Layout != l {
			t.become(l)
		}
		anew = anew || t.foreign
		has := v.hasExemplars
		v.hasExemplars = has || t.hasExemplars
		switch {
		case defers:
			t.deferAttributes(v.Owner)
		case t.owner != v.Owner.Identity || t.version != v.Owner.Version || t.foreign || t.debt != nil:
			changed = t.own(v.Owner) || changed || t.foreign
			t.debt = nil
		case t.changes.Resources || t.changes.Removes:
			t.ownResources(v.Owner)
		}
		if whole, moved, some := t.refill(v, defers); whole {
			t.attributesPoisoned = t.attributesPoisoned && defers // else all are written by now
			moved = moved || some && defers && t.foreign
			if defers && !moved {
				t.loan.Reword(v.Owner.wording(l, false, 0), len(l.Points), t)
			} else {
				t.Settle()
				t.loan.Unword()
			}
			if !defers && changed || moved {
				t.loan.Forget()
			} else if t.changes.Points {
				t.loan.ForgetAttributes()
			}
			t.owner, t.version, t.hasExemplars, t.foreign = v.Owner.Identity, v.Owner.Version, has, t.foreign && t.debt != nil
			if moved {
				t.record()
			} else {
				if t.changes.Points && (some || changed && anew) {
					t.recordLists()
				}
				if t.changes.Removes && some {
					t.recordElements()
				}
			}
			return t.metrics, t
		}
		v.hasExemplars = has
	}
	md, whole := emit(l, v, nil)
	if !reuse || !whole || len(l.Metrics) == 0 {
		return md, nil
	}
	fresh := &Tree{metrics: md, Layout: l, owner: v.Owner.Identity, version: v.Owner.Version, hasExemplars: v.hasExemplars, changes: v.Owner.Tree.Changes, later: v.Owner.Tree.Later}
	if v.Variation != nil {
		c := cursor{View: v, Layout: l}
		for _, ch := range v.Changes {
			k := c.choose(&l.Metrics[ch.Metric], ch, nil, false)
			fresh.setList(int(ch.Metric), k.list)
		}
	}
	fresh.record()
	return md, fresh
}

// refill gives every point its new value, and another layout's points their attributes unless these are deferred. whole is
// false when a point must be left out, and the tree cannot be used; moved says that there may be other points than before,
// anew that attributes of some are in other memory.
func (t *Tree) refill(v *View, defers bool) (whole, moved, anew bool) {
	l := t.Layout
	c := cursor{View: v, Layout: t.Layout, stowed: &t.stowed}
	w := walk{Tree: t}
	var (
		ch   plan.Change
		next int
	)
	for i := range t.Layout.Metrics {
		m := &t.Layout.Metrics[i]
		out := w.metric(m)
		if out == (pmetric.Metric{}) {
			return false, true, true
		}
		k := allOf(m, true)
		had := t.list(i)
		switch ch, next = v.change(i, next); {
		case t.foreign && defers: // there are as many points
		case t.foreign:
			if ch != (plan.Change{}) {
				k = c.choose(m, ch, nil, false)
				t.setList(i, k.list)
			}
			k = k.reusing(int(t.pointCounts[i]))
			moved = moved || k.count != int(t.pointCounts[i])
		case ch == (plan.Change{}) && l.IsComplete(m, had):
			k.list = had
		default:
			k = c.choose(m, ch, had, true)
			t.setList(i, k.list)
			moved = true
		}
		c.metric(m, out, k, true)
	}
	if c.broken.count > 0 {
		return false, moved, c.moved
	}
	c.broken.report(v.Owner, true)
	return true, moved || c.rebuilt, c.moved
}

// Move gives a tree another layout, if that has the same metrics.
func (t *Tree) Move(c *catalog.Catalog, l *plan.Layout) bool {
	old := t.Layout
	if old == l {
		return true
	}
	if !old.HasMetricsOf(l) || !slices.EqualFunc(old.Resources, l.Resources, func(a, b plan.PlacedResource) bool { return slices.Equal(a.Info, b.Info) }) {
		return false
	}
	if t.foreign {
		t.become(l)
		return true
	}
	mark := c.Mark()
	for i, p := range l.Points {
		p.Epoch = mark
		p.SetOrder(int32(i))
	}
	lists := make([][]int32, len(l.Metrics))
	for i := range old.Metrics {
		k := allOf(&old.Metrics[i], true)
		if k.list = t.list(i); k.list != nil {
			k.count = len(k.list)
		}
		lists[i] = make([]int32, k.count)
		for j := range lists[i] {
			lists[i][j] = -1
			if at := int(k.at(j)); at < len(old.Points) && old.Points[at].Epoch == mark {
				lists[i][j] = old.Points[at].Order()
			}
		}
	}
	t.Layout, t.lists = l, lists
	return true
}

// list returns the numbers of a metric's points, nil if they are as in the layout.
func (t *Tree) list(metric int) []int32 {
	if t.lists == nil {
		return nil
	}
	return t.lists[metric]
}

func (t *Tree) setList(metric int, list []int32) {
	if t.lists == nil {
		t.lists = make([][]int32, len(t.Layout.Metrics))
	}
	t.lists[metric] = list
}

// A walk finds the metrics of a tree in the order of its layout.
type walk struct {
	*Tree

	slices []pmetric.MetricSlice // by scope
	next   []int
	one    [1]pmetric.MetricSlice
	zero   [1]int
}

func (w *walk) metric(m *plan.PlacedMetric) pmetric.Metric {
	if w.slices == nil {
		w.slices, w.next = w.one[:], w.zero[:]
		if n := len(w.Layout.Scopes); n > 1 {
			w.slices, w.next = make([]pmetric.MetricSlice, n), make([]int, n)
		}
		w.each(func(scope int32, sm pmetric.ScopeMetrics, _ pmetric.ResourceMetrics) { w.slices[scope] = sm.Metrics() })
	}
	ms, i := w.slices[m.Scope], w.next[m.Scope]
	if ms == (pmetric.MetricSlice{}) || i >= ms.Len() {
		return pmetric.Metric{}
	}
	w.next[m.Scope]++
	return ms.At(i)
}

// each visits the scopes in a frame's order, that of their first metrics.
func (t *Tree) each(f func(scope int32, sm pmetric.ScopeMetrics, rm pmetric.ResourceMetrics)) {
	l := t.Layout
	if len(l.Scopes) == 1 {
		rm := t.metrics.ResourceMetrics().At(0)
		f(0, rm.ScopeMetrics().At(0), rm)
		return
	}
	seen := make([]bool, len(l.Scopes))
	at, used := make([]int, len(l.Resources)), make([]int, len(l.Resources))
	resources := 0
	for i := range l.Metrics {
		scope := l.Metrics[i].Scope
		if seen[scope] {
			continue
		}
		seen[scope] = true
		r := l.Scopes[scope].Resource
		if used[r] == 0 {
			at[r] = resources
			resources++
		}
		rm := t.metrics.ResourceMetrics().At(at[r])
		f(scope, rm.ScopeMetrics().At(used[r]), rm)
		used[r]++
	}
}

// chosen returns the points that a metric has.
func (t *Tree) chosen(metric int) choice {
	k := allOf(&t.Layout.Metrics[metric], true)
	if k.list = t.list(metric); k.list != nil {
		k.count = len(k.list)
	}
	return k
}

// ownResources sets the attributes of the resources for a target. They have no schema, unless a consumer has set one.
func (t *Tree) ownResources(o *Owner) {
	l := t.Layout
	done := make([]bool, len(l.Resources))
	t.each(func(scope int32, _ pmetric.ScopeMetrics, rm pmetric.ResourceMetrics) {
		r := l.Scopes[scope].Resource
		if done[r] {
			return
		}
		done[r] = true
		rm.SetSchemaUrl("")
		rm.Resource().Attributes().Clear()
		o.fill(rm.Resource().Attributes(), &l.Resources[r])
	})
	t.recordResources()
}

// own sets all attributes for another target, and reports whether points had others.
func (t *Tree) own(o *Owner) (changed bool) {
	t.ownResources(o)
	if t.foreign {
		return false
	}
	return t.ownPoints(o)
}

// ownPoints sets a target's own values in the points, and reports whether they had others.
func (t *Tree) ownPoints(o *Owner) (changed bool) {
	l := t.Layout
	if l.Marked == 0 {
		return false
	}
	w := walk{Tree: t}
	for i := range l.Metrics {
		m := &l.Metrics[i]
		out := w.metric(m)
		k := t.chosen(i)
		for j := range k.count {
			if at := int(k.at(j)); at >= 0 && at < len(l.Points) && l.Points[at].Form.Keys.Marked {
				changed = ownPoint(attributesOf(out, j), l.Points[at], o) || changed
			}
		}
	}
	return changed
}

// ownPoint sets another target's own values in a point. They are at their usual index, unless a consumer has moved
// them.
func ownPoint(m pcommon.Map, p *catalog.Point, o *Owner) (changed bool) {
	k, i := p.Form.Keys, 0
	if !k.Marked {
		return false
	}
	for name, a := range m.All() {
		if i == len(k.Names) || name != k.Names[i] {
			return ownByName(m, p, o) || changed
		}
		if from := k.From[i]; from >= 0 {
			changed = ownValue(a, o.Value(int(from))) || changed
		}
		i++
	}
	return changed
}

func ownByName(m pcommon.Map, p *catalog.Point, o *Owner) (changed bool) {
	for i, from := range p.Form.Keys.From {
		if from < 0 {
			continue
		}
		if a, ok := m.Get(p.Form.Keys.Names[i]); ok {
			changed = ownValue(a, o.Value(int(from))) || changed
		}
	}
	return changed
}

func ownValue(a pcommon.Value, v string) bool {
	if a.Str() == v {
		return false
	}
	slab.ChangeStr(a, v)
	return true
}

// attributesOf returns the attributes of a metric's point.
func attributesOf(m pmetric.Metric, i int) pcommon.Map {
	switch m.Type() {
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints().At(i).Attributes()
	case pmetric.MetricTypeHistogram:
		return m.Histogram().DataPoints().At(i).Attributes()
	case pmetric.MetricTypeSummary:
		return m.Summary().DataPoints().At(i).Attributes()
	case pmetric.MetricTypeExponentialHistogram:
		return m.ExponentialHistogram().DataPoints().At(i).Attributes()
	default:
		return m.Gauge().DataPoints().At(i).Attributes()
	}
}
