// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper"

	"github.com/godwit-otel/godwit/internal/handback"
)

// acting returns processors that call act for metrics. They say nothing about themselves, or that they release metrics,
// or that they keep them.
func acting(name string, says handback.Releaser, changes bool, act func(of component.ID, md pmetric.Metrics) (pmetric.Metrics, error)) processor.Factory {
	return processor.NewFactory(component.MustNewType(name), func() component.Config { return &struct{}{} }, processor.WithMetrics(
		func(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Metrics) (processor.Metrics, error) {
			forget := func() {}
			p, err := processorhelper.NewMetrics(ctx, set, cfg, next,
				func(_ context.Context, md pmetric.Metrics) (pmetric.Metrics, error) { return act(set.ID, md) },
				processorhelper.WithCapabilities(consumer.Capabilities{MutatesData: changes}),
				processorhelper.WithShutdown(func(context.Context) error {
					forget()
					return nil
				}))
			if err == nil && says != nil {
				forget = handback.Register(p, says)
			}
			return p, err
		}, component.StabilityLevelDevelopment))
}

var (
	errKeeps   = errors.New("keeps a copy")
	errRefuses = errors.New("refuses this page")
)

// strangers returns processors that are unknown, that break their promises, or that are difficult in another way.
func (w *witness) strangers() []processor.Factory {
	same := func(_ component.ID, md pmetric.Metrics) (pmetric.Metrics, error) { return md, nil }
	lets := answer{}
	return []processor.Factory{
		acting("passing", nil, false, same),
		acting("blocking", lets, false, func(_ component.ID, md pmetric.Metrics) (pmetric.Metrics, error) {
			time.Sleep(rand.N(40 * time.Millisecond))
			return md, nil
		}),
		acting("refusing", lets, false, refusing(false)),
		acting("rejecting", lets, false, refusing(true)),
		acting("keeping", answer{errKeeps}, true, w.keep),
		acting("hoarding", nil, true, w.keep),
		acting("reordering", nil, true, reorder),
		acting("enriching", nil, true, enrich),
		acting("thinning", nil, true, thin),
		acting("seeing", lets, false, w.see),
		// These break their promise, in ways that a receiver detects.
		acting("lyingreorder", lets, true, reorder),
		acting("lyingthin", lets, true, thin),
		acting("lyingenrich", lets, true, enrich),
		acting("lyingmove", lets, true, func(_ component.ID, md pmetric.Metrics) (pmetric.Metrics, error) {
			other := pmetric.NewMetrics()
			md.ResourceMetrics().MoveAndAppendTo(other.ResourceMetrics())
			return other, nil
		}),
		acting("recording", nil, false, w.record),
	}
}

// pointsOf calls yield for the points of a metric with their attributes, times and, of numbers, values.
func pointsOf(m pmetric.Metric, yield func(of pcommon.Map, at pcommon.Timestamp, value float64)) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		for _, p := range m.Gauge().DataPoints().All() {
			yield(p.Attributes(), p.Timestamp(), p.DoubleValue())
		}
	case pmetric.MetricTypeSum:
		for _, p := range m.Sum().DataPoints().All() {
			yield(p.Attributes(), p.Timestamp(), p.DoubleValue())
		}
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			yield(p.Attributes(), p.Timestamp(), 0)
		}
	case pmetric.MetricTypeSummary:
		for _, p := range m.Summary().DataPoints().All() {
			yield(p.Attributes(), p.Timestamp(), 0)
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			yield(p.Attributes(), p.Timestamp(), 0)
		}
	default:
	}
}

func metricsOf(md pmetric.Metrics, yield func(pmetric.ResourceMetrics, pmetric.ScopeMetrics, pmetric.Metric)) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				yield(rm, sm, m)
			}
		}
	}
}

// numberOf returns the number of the page or request that metrics are from, or 0 if it is unknown.
func numberOf(md pmetric.Metrics) (number uint64) {
	metricsOf(md, func(_ pmetric.ResourceMetrics, _ pmetric.ScopeMetrics, m pmetric.Metric) {
		pointsOf(m, func(_ pcommon.Map, at pcommon.Timestamp, value float64) {
			switch {
			case at < relaysUntil: // the time of a request is its number
				number = max(number, uint64(at/1_000_000))
			case value >= perPage && value < 1e9:
				number = max(number, uint64(value)/perPage)
			}
		})
	})
	return number
}

// refusing refuses some pages, always the same ones.
func refusing(permanently bool) func(component.ID, pmetric.Metrics) (pmetric.Metrics, error) {
	return func(_ component.ID, md pmetric.Metrics) (pmetric.Metrics, error) {
		if numberOf(md)%4 != 3 {
			return md, nil
		}
		if permanently {
			return md, consumererror.NewPermanent(errRefuses)
		}
		return md, errRefuses
	}
}

// reorder reverses the order of metrics and points.
func reorder(_ component.ID, md pmetric.Metrics) (pmetric.Metrics, error) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			place := map[pmetric.Metric]int{}
			for i, m := range sm.Metrics().All() {
				place[m] = i
			}
			sm.Metrics().Sort(func(a, b pmetric.Metric) bool { return place[a] > place[b] })
			for _, m := range sm.Metrics().All() {
				if m.Type() == pmetric.MetricTypeGauge {
					m.Gauge().DataPoints().Sort(func(a, b pmetric.NumberDataPoint) bool { return textOf(a.Attributes()) > textOf(b.Attributes()) })
				}
			}
		}
	}
	return md, nil
}

func textOf(m pcommon.Map) string { return fmt.Sprint(m.AsRaw()) }

// enrich adds attributes to resources and points, like processors that look up a host or a pod.
func enrich(_ component.ID, md pmetric.Metrics) (pmetric.Metrics, error) {
	metricsOf(md, func(rm pmetric.ResourceMetrics, _ pmetric.ScopeMetrics, m pmetric.Metric) {
		rm.Resource().Attributes().PutStr("host.name", "aviary")
		pointsOf(m, func(of pcommon.Map, _ pcommon.Timestamp, _ float64) { of.PutStr("enriched", "yes") })
	})
	return md, nil
}

// thin removes points with certain labels, and metrics with certain names.
func thin(_ component.ID, md pmetric.Metrics) (pmetric.Metrics, error) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			sm.Metrics().RemoveIf(func(m pmetric.Metric) bool { return hashOf(m.Name())%5 == 0 })
			for _, m := range sm.Metrics().All() {
				if m.Type() == pmetric.MetricTypeGauge {
					m.Gauge().DataPoints().RemoveIf(func(p pmetric.NumberDataPoint) bool { return hashOf(textOf(p.Attributes()))%5 == 0 })
				}
			}
		}
	}
	return md, nil
}

func hashOf(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s))
	return h.Sum64() >> 7
}

// A witness observes the metrics that pass.
type witness struct {
	mu    sync.Mutex
	seen  map[string]map[pmetric.Metric]bool // by pipeline; holding them keeps their addresses from being used for others
	again map[string]int                     // metrics that were seen before
	ends  map[string]record
	wrong []string
	kept  sync.WaitGroup
	loose map[string]bool // destinations behind a batch processor that splits metrics and leaves one part without metadata
}

func newWitness() *witness {
	return &witness{seen: map[string]map[pmetric.Metric]bool{}, again: map[string]int{}, ends: map[string]record{}, loose: map[string]bool{}}
}

// see records whether the memory of metrics is reused. It does not read them.
func (w *witness) see(of component.ID, md pmetric.Metrics) (pmetric.Metrics, error) {
	road := of.Name()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen[road] == nil {
		w.seen[road] = map[pmetric.Metric]bool{}
	}
	metricsOf(md, func(_ pmetric.ResourceMetrics, _ pmetric.ScopeMetrics, m pmetric.Metric) {
		if w.seen[road][m] {
			w.again[road]++
		}
		w.seen[road][m] = true
	})
	return md, nil
}

// forgetAgain resets the counts of reused metrics.
func (w *witness) forgetAgain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.again)
}

// keep keeps what it gets, passes a copy on, and checks later whether the original is unchanged.
func (w *witness) keep(of component.ID, md pmetric.Metrics) (pmetric.Metrics, error) {
	next, was := pmetric.NewMetrics(), pmetric.NewMetrics()
	md.CopyTo(next)
	md.CopyTo(was)
	w.kept.Go(func() {
		time.Sleep(rand.N(2 * time.Second))
		var m pmetric.ProtoMarshaler
		before, err := m.MarshalMetrics(was)
		after, err2 := m.MarshalMetrics(md)
		if err := errors.Join(err, err2); err != nil || !slices.Equal(before, after) {
			w.fail(fmt.Sprintf("%s kept metrics that have become others: %v", of, err))
		}
	})
	return next, nil
}

func (w *witness) fail(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, what)
}
