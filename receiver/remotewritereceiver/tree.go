// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"context"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/translator/prometheus"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/borrow"
	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/internal/reuse"
	"github.com/godwit-otel/godwit/internal/slab"
)

// tree is the metrics of a request: in reused memory if possible, or else new.
type tree struct {
	metrics  pmetric.Metrics
	again    *reuse.Metrics // nil if all is new
	slabs    *slab.Slabs    // of the worker that fills it
	placed   []placed
	mayDefer bool // values of points in parts may be left out, once a consumer has asked for them
	defers   bool // and are: see package handback
}

// placed is a part of a run.
type placed struct {
	of   *run
	part *reuse.Part
}

// numbers is a metric of float series.
type numbers = reuse.Numbers

func newTree(reused bool) *tree {
	if !reused {
		return &tree{metrics: pmetric.NewMetrics()}
	}
	again := reuse.New()
	return &tree{metrics: again.Metrics(), again: again}
}

const types = int(promwrite.Stateset) + 1

// fewPoints is the initial capacity of a new metric: most have no more points.
const fewPoints = 2

// resource adds a resource, with known attributes or after setting them.
func (t *tree) resource(known *knownTarget, key *resourceKey, text *borrow.Text, more *asker) pmetric.ScopeMetricsSlice {
	var rm pmetric.ResourceMetrics
	if t.again == nil {
		rm = t.metrics.ResourceMetrics().AppendEmpty()
	} else {
		rm = t.again.Resource()
		if known != nil && known.attributes.Are() {
			t.again.Share(rm.Resource().Attributes(), known.attributes)
			return rm.ScopeMetrics()
		}
	}
	job, instance := key.last(text)
	setTarget(rm.Resource().Attributes(), job, instance)
	more.describe(*key, rm.Resource().Attributes())
	return rm.ScopeMetrics()
}

// scope adds a scope.
func (t *tree) scope(in pmetric.ScopeMetricsSlice) pmetric.ScopeMetrics {
	if t.again == nil {
		return in.AppendEmpty()
	}
	return t.again.Scope(in)
}

// numbers adds a metric of float series.
func (t *tree) numbers(in pmetric.MetricSlice, f *family) (n numbers) {
	switch {
	case t.again == nil:
		if f.shape == pmetric.MetricTypeSum {
			n.Metric, n.Points = t.slabs.AppendSum(in, fewPoints)
		} else {
			n.Metric, n.Points = t.slabs.AppendGauge(in, fewPoints)
		}
	case f.shape == pmetric.MetricTypeSum:
		n = t.again.Sum(in)
	default:
		n = t.again.Gauge(in)
	}
	if t.again != nil && f.metadata.Are() {
		t.again.Describe(n, f.metadata)
	} else {
		t.slabs.Reserve(n.Metric.Metadata(), 1)
		t.slabs.PutStr(n.Metric.Metadata(), prometheus.MetricMetadataTypeKey, f.typ.String())
	}
	f.describe(n.Metric)
	return n
}

// number adds a point with a value and the attributes of a set.
func (t *tree) number(to pmetric.NumberDataPointSlice, set *labelSet, value float64) pmetric.NumberDataPoint {
	if t.again != nil && set.attributes.Are() { // fast path
		return t.again.Double(to, set.attributes, value, t.slabs)
	}
	var p pmetric.NumberDataPoint
	if t.again != nil {
		p = t.again.Double(to, reuse.None, value, t.slabs)
	} else {
		p = t.slabs.AppendNumber(to)
		t.slabs.SetDouble(p, value)
	}
	set.put(t.slabs, p.Attributes())
	return p
}

// lend returns the context for handing the metrics on, with their number of points.
func (t *tree) lend(ctx context.Context, points int) context.Context {
	switch {
	case t.again == nil:
		return ctx
	case t.defers:
		return t.again.LendDeferred(ctx, points)
	}
	return t.again.Lend(ctx)
}

// settle sets the values that were left out, for somebody who reads the points.
func (t *tree) settle() {
	for i := range t.placed {
		t.placed[i].part.Settle()
	}
}

// takeBack makes the tree available for the next request. It returns false if it must not be used again.
func (t *tree) takeBack() bool {
	t.slabs = nil
	t.defers = t.mayDefer && t.again.MayDefer()
	taken := t.again != nil && t.again.TakeBack()
	t.giveParts(taken)
	return taken
}

// drop records that the tree is not used again, after the pipeline refused it.
func (t *tree) drop() { t.giveParts(false) }

func (t *tree) giveParts(again bool) {
	for i := range t.placed {
		p := &t.placed[i]
		p.of.give(p.part, again && p.part.Whole())
	}
	clear(t.placed)
	t.placed = t.placed[:0]
}

// place adds the metrics of a run.
func (t *tree) place(to *target, r *run, part *reuse.Part) {
	t.again.PlacePart(to.metrics, to.number, part)
	t.placed = append(t.placed, placed{r, part})
}

// isSpoiled reports, after takeBack returned false, that shared attributes were changed in place.
func (t *tree) isSpoiled() bool { return t.again != nil && t.again.Changed() }
