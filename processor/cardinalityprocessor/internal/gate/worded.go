// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/slab"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
)

// If targets of a kind share memory and each has values of its own, the attributes of points may contain another
// target's values. A wording, as package handback defines it, identifies the values that they should have. What is
// known about a target's pages is stored with the wording, and the next page passes without a look at any attribute. If
// that knowledge is not valid, the values are written into the attributes, and points are decided about as usual.

// worded is what is known about the metrics of a wording.
type worded struct {
	shapes []*ident.Shape // of their scopes; nil if one of them is not known
	epoch  uint32         // in which it was found out

	refused []*rejections     // what the scopes last lost
	rest    *handback.Wording // of the remaining points
}

// wording is the state of a batch with a wording.
type wording struct {
	words       *handback.Wording // nil if attributes have their own values
	ofPage      int               // which part of the page it is
	learns      bool
	shapes      []*ident.Shape // that were found out
	knownShapes []*ident.Shape // of scopes that are known, from the current one on
	entered     int            // scopes
	hints       ident.Hints    // for finding out shapes
	noted       *worded        // what was known; nil if nothing was
	refused     []*rejections  // what was known that scopes lose, by scope
}

// kept returns the memory for the next batch.
func (w *wording) kept() wording {
	clear(w.shapes)
	clear(w.refused)
	w.hints.Reset(maxRetained)
	return wording{shapes: w.shapes[:0], hints: w.hints, refused: w.refused[:0]}
}

// isWorded reports whether all pages of a batch may pass by their wording. If not, the values are written into the
// attributes before these are read.
func (b *Batch) isWorded(md pmetric.Metrics) bool {
	b.ofPage = b.words.Part
	noted, _ := b.words.Note(b.g).(*worded)
	b.noted = noted
	if noted != nil && noted.shapes != nil && len(b.aggregations) == 0 {
		known, whole := b.areOf(noted.shapes, md.ResourceMetrics())
		if whole {
			b.g.Familiar.Passed.Add(int64(len(noted.shapes)))
			b.weighAll(md.ResourceMetrics())
			return true
		}
		if known {
			b.knownShapes = noted.shapes
		}
	}
	if b.knownShapes == nil || !slab.Toggles() {
		b.Settle()
	}
	b.came = 0
	if b.learns = b.knownShapes == nil && (noted == nil || noted.shapes != nil || noted.epoch != b.g.Limiter.Now().Epoch()); b.learns {
		b.hinted.Hints = &b.hints
	}
	return false
}

// areOf reports whether there is exactly one familiar page for each of the shapes, in their order, and whether all of
// these pass as a whole.
func (b *Batch) areOf(shapes []*ident.Shape, resources pmetric.ResourceMetricsSlice) (known, whole bool) {
	f := &b.g.Familiar
	whole = true
	for _, rm := range resources.All() {
		resource := b.enter(rm)
		for _, sm := range rm.ScopeMetrics().All() {
			p := f.of(b.Hash.Scope(resource, sm.Scope()))
			if p == nil || len(shapes) == 0 {
				return false, false
			}
			losses, now := f.limiter.Losses.Load(), f.limiter.Now()
			k, _ := p.ask(b.ofPage, shapes[0], b.Policy.Generation, losses, now)
			if k.shape == nil {
				return false, false
			}
			shapes = shapes[1:]
			if whole = whole && k.all; !whole { // the others must be known, too
				continue
			}
			b.Owner.Scope = sm.Scope().Name()
			points, ok := b.fit(k.shape, sm.Metrics())
			if !ok || !p.see(b.ofPage, &k, now) {
				return false, false
			}
			b.came += int64(points)
		}
	}
	return len(shapes) == 0, whole
}

// nextKnownShape returns the shape of the current scope, nil if it is not known from the wording.
func (b *Batch) nextKnownShape() (s *ident.Shape) {
	if len(b.knownShapes) > 0 {
		s, b.knownShapes = b.knownShapes[0], b.knownShapes[1:]
	}
	return s
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

// recordShape records the shape of the current scope.
func (b *Batch) recordShape(s *ident.Shape) {
	if b.learns {
		b.shapes = append(b.shapes, s)
	}
}

// leaveWords stores what was found out with the wording. If points were removed or added, the remaining ones are not
// those of the wording. If values are still deferred, then the same points were removed as the last time, and no others.
func (b *Batch) leaveWords() {
	switch {
	case len(b.hidden) == 0 && b.added == 0:
	case b.filler == nil:
		b.loan.Unword()
	default:
		if !slices.Equal(b.noted.refused, b.refused) {
			b.noted.refused, b.noted.rest, b.refused = b.refused, &handback.Wording{}, nil
		}
		b.loan.Narrow(b.noted.rest, int(b.came-b.gone), &b.lending)
	}
	if !b.learns {
		return
	}
	w := &worded{epoch: b.g.Limiter.Now().Epoch()}
	if len(b.shapes) == b.entered {
		w.shapes, b.shapes = b.shapes, nil
	}
	b.words.Leave(b.g, w)
}
