// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
)

// If targets of a kind share memory and each has values of its own, the attributes of points may contain another
// target's values. A wording, as package handback defines it, identifies the values that they should have. What is
// known about a target's pages is stored with the wording, and the next page passes without a look at any attribute. If
// that knowledge is not valid, the values are written into the attributes, and points are decided about as usual.

// worded is what is known about the metrics of a wording.
type worded struct {
	shapes []*ident.Shape // of their scopes; nil unless all may pass as a whole
	epoch  uint32         // in which it was found out
}

// wording is the state of a batch with a wording.
type wording struct {
	words   *handback.Wording // nil if attributes have their own values
	learns  bool
	shapes  []*ident.Shape // of scopes that may pass as a whole
	entered int            // scopes
}

// kept returns the memory for the next batch.
func (w *wording) kept() wording {
	clear(w.shapes)
	return wording{shapes: w.shapes[:0]}
}

// isWorded reports whether all pages of a batch may pass by their wording. If not, it writes the values into the
// attributes.
func (b *Batch) isWorded(md pmetric.Metrics, loan *handback.Loan) bool {
	known, _ := b.words.Note(b.g).(*worded)
	if known != nil && known.shapes != nil && len(b.aggregations) == 0 && b.areOf(known.shapes, md.ResourceMetrics()) {
		b.weighAll(md.ResourceMetrics())
		return true
	}
	loan.Settle()
	b.came = 0
	if b.learns = known == nil || known.shapes != nil || known.epoch != b.g.Limiter.Now().Epoch(); b.learns {
		b.hinted.Hints = &ident.Hints{}
	}
	return false
}

// areOf reports whether there is exactly one familiar page for each of the shapes, in their order.
func (b *Batch) areOf(shapes []*ident.Shape, resources pmetric.ResourceMetricsSlice) bool {
	f := &b.g.Familiar
	for _, rm := range resources.All() {
		resource := b.enter(rm)
		for _, sm := range rm.ScopeMetrics().All() {
			p := f.of(b.Hash.Scope(resource, sm.Scope()))
			if p == nil || len(shapes) == 0 {
				return false
			}
			losses, now := f.limiter.Losses.Load(), f.limiter.Now()
			k, _ := p.ask(shapes[0], b.Policy.Generation, losses, now)
			if k.shape == nil || !k.all {
				return false
			}
			b.Owner.Scope = sm.Scope().Name()
			points, ok := b.fit(k.shape, sm.Metrics())
			if !ok || !p.see(&k, now) {
				return false
			}
			b.came += int64(points)
			shapes = shapes[1:]
			f.Passed.Add(1)
		}
	}
	return len(shapes) == 0
}

// fit reports whether metrics have as many points as a shape, and none of their series ends. It returns the number of
// points.
func (b *Batch) fit(s *ident.Shape, metrics pmetric.MetricSlice) (points int, ok bool) {
	found := 0
	for i := range metrics.Len() {
		m := metrics.At(i)
		if len(b.Policy.Exempt) > 0 {
			if b.Owner.Metric = m.Name(); b.passes() {
				points += amount.PointCount(m)
				continue
			}
		}
		n, ok := ident.Lasting(m)
		if !ok || found == s.Metrics() || s.PointsOf(found) != n {
			return 0, false
		}
		points += n
		found++
	}
	return points, found == s.Metrics()
}

// weighAll reports the number of points of a batch's metrics to statistics.
func (b *Batch) weighAll(resources pmetric.ResourceMetricsSlice) {
	if !b.weighed {
		return
	}
	for _, rm := range resources.All() {
		b.Owner.Resource = rm.Resource().Attributes()
		for _, sm := range rm.ScopeMetrics().All() {
			b.Owner.Scope = sm.Scope().Name()
			b.weighScope(sm.Metrics())
		}
	}
}

// weighScope reports the number of points of a scope's metrics to statistics.
func (b *Batch) weighScope(metrics pmetric.MetricSlice) {
	if !b.weighed {
		return
	}
	for _, m := range metrics.All() {
		if b.Owner.Metric = m.Name(); !b.passes() {
			b.weigh(m, amount.PointCount(m))
		}
	}
}

// recordShape records the shape of the current scope, if that may pass as a whole.
func (b *Batch) recordShape(s *ident.Shape) {
	if b.learns && !slices.Contains(b.page.plain, false) {
		b.shapes = append(b.shapes, s)
	}
}

// leaveWords stores what was found out with the wording. If points were removed or added, the remaining ones are not
// those of the wording.
func (b *Batch) leaveWords(loan *handback.Loan) {
	if len(b.hidden) > 0 || b.added > 0 {
		loan.Unword()
	}
	if !b.learns {
		return
	}
	w := &worded{epoch: b.g.Limiter.Now().Epoch()}
	if len(b.shapes) == b.entered {
		w.shapes = slices.Clone(b.shapes)
	}
	b.words.Leave(b.g, w)
}
