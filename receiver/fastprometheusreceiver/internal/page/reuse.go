// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"runtime"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// A tree is metrics that were handed out and came back, to be filled again: names, attributes and bounds are there.
type tree struct {
	metrics      pmetric.Metrics
	layout       *layout
	target       *Target // whose it was last
	hasExemplars bool
}

// take returns a tree of the plan to fill, if one is free.
func (p *plan) take() *tree {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.trees)
	if n == 0 {
		return nil
	}
	t := p.trees[n-1]
	p.trees[n-1] = nil
	p.trees = p.trees[:n-1]
	retained.Add(-int64(len(t.layout.points)))
	return t
}

// drop forgets the trees of a plan that has no target any more.
func (p *plan) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.trees {
		retained.Add(-int64(len(t.layout.points)))
	}
	p.trees, p.abandoned = nil, true
}

// retained counts the points of trees that wait to be filled. Pages that no other target has cost a tree each; past the
// bound such trees go to the collector, and their pages are built anew.
var retained atomic.Int64

const (
	retainedPoints = 1 << 16
	largePage      = 1 << 14 // the tree of a page with more points is kept in any case
)

// Release says that the consumer has returned. With Config.Reuse the metrics may then be filled again; without, the call
// means nothing.
func (r Result) Release() {
	if r.tree == nil || r.Metrics.IsReadOnly() { // shared by several consumers: their flag cannot be taken back
		return
	}
	p, n := r.plan, len(r.tree.layout.points)
	p.mu.Lock()
	defer p.mu.Unlock()
	most := runtime.GOMAXPROCS(0) // as many as scrapes can be filling
	if n > largePage {
		most = 1
	} else if len(p.trees) > 0 && retained.Load() > retainedPoints || retained.Load() > 4*retainedPoints {
		most = 0
	}
	if !p.abandoned && len(p.trees) < most {
		p.trees = append(p.trees, r.tree)
		retained.Add(int64(n))
	}
}

// render makes metrics of a view, out of a tree where there is one. They can come back as the tree returned, if any.
func (l *layout) render(t *tree, v *view) (pmetric.Metrics, *tree) {
	v.hanging = len(v.exemplars) > 0
	reuse := v.target.cohort.job.cfg.Reuse
	if t != nil {
		hanging := v.hanging
		v.hanging = hanging || t.hasExemplars
		if t.target != v.target {
			t.own(v.target)
		}
		if t.layout == l && t.refill(v) || t.layout != l && t.rebuild(l, v) {
			t.target, t.hasExemplars = v.target, hanging
			return t.metrics, t
		}
		v.hanging = hanging
	}
	md, whole := l.emit(v)
	if !reuse || !whole || len(l.metrics) == 0 {
		return md, nil
	}
	return md, &tree{metrics: md, layout: l, target: v.target, hasExemplars: v.hanging}
}

// refill gives every point its new value. It returns false when a point must be left out; the tree is of no use then.
func (t *tree) refill(v *view) bool {
	c := cursor{view: v, layout: t.layout}
	w := walk{tree: t}
	for i := range t.layout.metrics {
		m := &t.layout.metrics[i]
		out := w.metric(m)
		if out == (pmetric.Metric{}) {
			return false
		}
		c.metric(m, out, c.points[m.first:m.first+m.points])
	}
	return !c.left
}

// rebuild makes the tree one of another layout, in which the points both have stand in the order they have here. Points
// keep their attributes; a metric nothing changes in is moved as it is.
func (t *tree) rebuild(l *layout, v *view) bool {
	type had struct {
		metric pmetric.Metric
		points []placedPoint
	}
	old := make(map[*family]had, len(t.layout.metrics))
	w := walk{tree: t}
	for i := range t.layout.metrics {
		m := &t.layout.metrics[i]
		out := w.metric(m)
		if out == (pmetric.Metric{}) {
			return false
		}
		old[m.family] = had{out, t.layout.points[m.first : m.first+m.points]}
	}
	md := pmetric.NewMetrics()
	scopes := l.skeleton(md, v.target)
	c := cursor{view: v, layout: l}
	for i := range l.metrics {
		m := &l.metrics[i]
		out := scopes[m.scope].Metrics().AppendEmpty()
		if h, ok := old[m.family]; ok {
			h.metric.MoveTo(out)
			c.metric(m, out, h.points)
		} else {
			c.metric(m, out, nil)
		}
	}
	t.metrics, t.layout = md, l
	return !c.left
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

// each visits the scopes as skeleton made them: in the order of their first metrics.
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

// own gives the tree another target's attributes.
func (t *tree) own(target *Target) {
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
	if !l.marked {
		return
	}
	w := walk{tree: t}
	for i := range l.metrics {
		m := &l.metrics[i]
		out := w.metric(m)
		for j := range int(m.points) {
			if p := l.points[int(m.first)+j].point; p.keys.marked {
				p.own(attributesOf(out, j), target)
			}
		}
	}
}

func (p *point) own(m pcommon.Map, t *Target) {
	for i, from := range p.keys.from {
		if from < 0 {
			continue
		}
		if a, ok := m.Get(p.keys.names[i]); ok {
			a.SetStr(t.values[from])
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
