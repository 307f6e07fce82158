// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/slab"
)

// A tree is metrics that were handed out and came back, to be filled again: names, attributes and bounds are there.
type tree struct {
	metrics      pmetric.Metrics
	layout       *layout
	lists        [][]int32 // by metric, of those whose points are not the layout's
	target       *Target   // whose it was last
	version      int       // of the target's own values
	hasExemplars bool
	handed       record  // what it was when it was handed out
	poisoned     bool    // it was overwritten when it came back
	foreign      bool    // its points are not yet the layout's
	had          []int32 // how many points each metric has, when they are not
}

// Release says that the consumer has returned without an error. With Config.Reuse the metrics may then be filled again;
// without, the call means nothing.
func (r Result) Release() {
	if r.Metrics.IsReadOnly() { // shared by several consumers: their flag cannot be taken back
		return
	}
	if handback.Poisons() && (r.tree != nil || r.parts != nil && r.parts.target.cohort.job.cfg.Reuse) {
		handback.Overwrite(r.Metrics)
	}
	if r.tree == nil {
		return
	}
	r.tree.poisoned = handback.Poisons()
	r.plan.pool.give(r.tree)
}

// render makes metrics of a view, out of a tree where there is one. They can come back as the tree returned, if any.
func (l *layout) render(t *tree, v *view) (pmetric.Metrics, *tree) {
	v.hanging = len(v.exemplars) > 0
	reuse := v.target.cohort.job.cfg.Reuse
	if t != nil && !t.isIntact() {
		v.target.cohort.job.cameBackChanged()
		t = nil
	}
	if t != nil {
		if t.poisoned {
			t.restore(v.target)
		}
		if t.layout != l {
			t.become(l)
		}
		hanging := v.hanging
		v.hanging = hanging || t.hasExemplars
		if t.target != v.target || t.version != v.target.version || t.foreign {
			t.own(v.target)
		}
		if whole, moved := t.refill(v); whole {
			t.target, t.version, t.hasExemplars, t.foreign = v.target, v.target.version, hanging, false
			if moved {
				t.record()
			}
			return t.metrics, t
		}
		v.hanging = hanging
	}
	md, whole := l.emit(v)
	if !reuse || !whole || len(l.metrics) == 0 {
		return md, nil
	}
	fresh := &tree{metrics: md, layout: l, target: v.target, version: v.target.version, hasExemplars: v.hanging}
	if v.variation != nil {
		c := cursor{view: v, layout: l}
		for _, ch := range v.changes {
			k := c.choose(&l.metrics[ch.metric], ch, nil, false)
			fresh.setList(int(ch.metric), k.list)
		}
	}
	fresh.record()
	return md, fresh
}

// refill gives every point its new value. It is not whole when a point must be left out; the tree is of no use then. moved
// says that there may be other points than before.
func (t *tree) refill(v *view) (whole, moved bool) {
	l := t.layout
	c := cursor{view: v, layout: t.layout}
	w := walk{tree: t}
	var (
		ch   change
		next int
	)
	for i := range t.layout.metrics {
		m := &t.layout.metrics[i]
		out := w.metric(m)
		if out == (pmetric.Metric{}) {
			return false, true
		}
		k := m.all(true)
		had := t.list(i)
		switch ch, next = v.change(i, next); {
		case t.foreign:
			if ch != (change{}) {
				k = c.choose(m, ch, nil, false)
				t.setList(i, k.list)
			}
			k = k.over(int(t.had[i]))
			moved = moved || k.count != int(t.had[i])
		case ch == (change{}) && l.isComplete(m, had):
			k.list = had
		default:
			k = c.choose(m, ch, had, true)
			t.setList(i, k.list)
			moved = true
		}
		c.metric(m, out, k, true)
	}
	if c.broken.count > 0 {
		return false, moved
	}
	c.broken.report(v.target, true)
	return true, moved || c.rebuilt
}

// isComplete tells whether a list, if there is one, has all points of a metric and no others.
func (l *layout) isComplete(m *placedMetric, list []int32) bool {
	if list == nil {
		return true
	}
	for _, at := range list {
		if at < 0 || int(at) >= len(l.points) {
			return false
		}
	}
	return len(list) == int(m.points)
}

// move makes a tree one of another layout, if that has the same metrics.
func (c *cohort) move(t *tree, l *layout) bool {
	old := t.layout
	if old == l {
		return true
	}
	if !old.hasMetricsOf(l) || !slices.EqualFunc(old.resources, l.resources, func(a, b placedResource) bool { return slices.Equal(a.info, b.info) }) {
		return false
	}
	c.epoch++
	for i, p := range l.points {
		p.epoch = c.epoch
		p.setOrder(int32(i))
	}
	lists := make([][]int32, len(l.metrics))
	for i := range old.metrics {
		k := old.metrics[i].all(true)
		if k.list = t.list(i); k.list != nil {
			k.count = len(k.list)
		}
		lists[i] = make([]int32, k.count)
		for j := range lists[i] {
			lists[i][j] = -1
			if at := int(k.at(j)); at < len(old.points) && old.points[at].epoch == c.epoch {
				lists[i][j] = old.points[at].order()
			}
		}
	}
	t.layout, t.lists = l, lists
	return true
}

// list returns the numbers of a metric's points, nil if they are the layout's.
func (t *tree) list(metric int) []int32 {
	if t.lists == nil {
		return nil
	}
	return t.lists[metric]
}

func (t *tree) setList(metric int, list []int32) {
	if t.lists == nil {
		t.lists = make([][]int32, len(t.layout.metrics))
	}
	t.lists[metric] = list
}

// A walk finds the metrics of a tree in the order of its layout.
type walk struct {
	*tree

	slices []pmetric.MetricSlice // by scope
	next   []int
	one    [1]pmetric.MetricSlice
	zero   [1]int
}

func (w *walk) metric(m *placedMetric) pmetric.Metric {
	if w.slices == nil {
		w.slices, w.next = w.one[:], w.zero[:]
		if n := len(w.layout.scopes); n > 1 {
			w.slices, w.next = make([]pmetric.MetricSlice, n), make([]int, n)
		}
		w.each(func(scope int32, sm pmetric.ScopeMetrics, _ pmetric.ResourceMetrics) { w.slices[scope] = sm.Metrics() })
	}
	ms, i := w.slices[m.scope], w.next[m.scope]
	if ms == (pmetric.MetricSlice{}) || i >= ms.Len() {
		return pmetric.Metric{}
	}
	w.next[m.scope]++
	return ms.At(i)
}

// each visits the scopes as a frame has them: in the order of their first metrics.
func (t *tree) each(f func(scope int32, sm pmetric.ScopeMetrics, rm pmetric.ResourceMetrics)) {
	l := t.layout
	if len(l.scopes) == 1 {
		rm := t.metrics.ResourceMetrics().At(0)
		f(0, rm.ScopeMetrics().At(0), rm)
		return
	}
	seen := make([]bool, len(l.scopes))
	at, used := make([]int, len(l.resources)), make([]int, len(l.resources))
	resources := 0
	for i := range l.metrics {
		scope := l.metrics[i].scope
		if seen[scope] {
			continue
		}
		seen[scope] = true
		r := l.scopes[scope].resource
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
func (t *tree) chosen(metric int) choice {
	k := t.layout.metrics[metric].all(true)
	if k.list = t.list(metric); k.list != nil {
		k.count = len(k.list)
	}
	return k
}

// ownResources gives the resources a target's attributes.
func (t *tree) ownResources(target *Target) {
	l := t.layout
	done := make([]bool, len(l.resources))
	t.each(func(scope int32, _ pmetric.ScopeMetrics, rm pmetric.ResourceMetrics) {
		r := l.scopes[scope].resource
		if done[r] {
			return
		}
		done[r] = true
		rm.Resource().Attributes().Clear()
		target.fill(rm.Resource().Attributes(), &l.resources[r])
	})
	t.recordResources()
}

// own gives the tree another target's attributes.
func (t *tree) own(target *Target) {
	t.ownResources(target)
	l := t.layout
	if !l.marked || t.foreign {
		return
	}
	w := walk{tree: t}
	for i := range l.metrics {
		m := &l.metrics[i]
		out := w.metric(m)
		k := t.chosen(i)
		for j := range k.count {
			if at := int(k.at(j)); at >= 0 && at < len(l.points) && l.points[at].form.keys.marked {
				l.points[at].own(attributesOf(out, j), target)
			}
		}
	}
}

func (p *point) own(m pcommon.Map, t *Target) {
	for i, from := range p.form.keys.from {
		if from < 0 {
			continue
		}
		if a, ok := m.Get(p.form.keys.names[i]); ok && a.Str() != t.value(int(from)) {
			slab.ChangeStr(a, t.value(int(from)))
		}
	}
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
