// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"sync"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/slab"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

// recycled is the memory of metrics that no consumer keeps, and a record of them as they were handed out, so that any other
// metrics can be made of it. Filling a tree again is cheaper, but the tree takes memory meanwhile.
type recycled struct {
	slabs     *slab.Slabs
	metrics   []handedOut
	scopes    []pmetric.ScopeMetrics
	abandoned bool // some of the metrics are where isIntact would not find them
	loan      handback.Loan
}

type handedOut struct {
	pmetric.Metric

	scope int32
	place int // index within the scope
	size  size
}

// idleRecycled are those not in use. There are as many as metrics were in the pipeline at once.
var idleRecycled = sync.Pool{New: func() any { return &recycled{slabs: slab.Kept()} }}

// add records a metric, the last one of a scope.
func (m *recycled) add(out pmetric.Metric, scope int32, in pmetric.MetricSlice) {
	m.metrics = append(m.metrics, handedOut{out, scope, in.Len() - 1, sizeOf(out)})
}

// abandon records that the memory will not be used again.
func (m *recycled) abandon() {
	if m != nil {
		m.abandoned = true
	}
}

// reclaim makes the memory available again, if consumed still is what was handed out.
func (m *recycled) reclaim(consumed pmetric.Metrics, o *Owner) bool {
	if !m.canReclaim(consumed, o) {
		return false
	}
	m.slabs.Again()
	clear(m.metrics)
	clear(m.scopes)
	m.metrics, m.scopes = m.metrics[:0], m.scopes[:0]
	m.loan.Forget()
	return true
}

// canReclaim reports whether the memory can be used again.
func (m *recycled) canReclaim(consumed pmetric.Metrics, o *Owner) bool {
	switch {
	case m.abandoned || consumed.IsReadOnly():
		return false
	case !m.isIntact(consumed, o.Tree.Changes.Points):
		o.Tree.cameBackChanged()
		return false
	}
	if handback.Poisons() {
		handback.Overwrite(consumed)
	}
	return true
}

// release takes the memory back, for others to use. Poisoned memory is left alone, so that whoever kept the metrics
// finds the poison.
func (m *recycled) release(consumed pmetric.Metrics, o *Owner) {
	if handback.Poisons() {
		m.canReclaim(consumed, o)
	} else if m.reclaim(consumed, o) {
		idleRecycled.Put(m)
	}
}

// isIntact reports whether metrics are where they were handed out, with as many points and, unless these are restored,
// attributes. If so, no part of them has been moved elsewhere.
func (m *recycled) isIntact(md pmetric.Metrics, putsBack bool) bool {
	there := make(map[pmetric.ScopeMetrics]bool, len(m.scopes))
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			there[sm] = true
		}
	}
	for _, g := range m.metrics {
		sm := m.scopes[g.scope]
		if !there[sm] || g.place >= sm.Metrics().Len() || sm.Metrics().At(g.place) != g.Metric {
			return false
		}
		if is := sizeOf(g.Metric); is.points != g.size.points || !putsBack && is.attributes != g.size.attributes {
			return false
		}
	}
	return true
}

// size is how many points a metric has, and how many attributes these have together.
type size struct{ points, attributes int }

func sizeOf(m pmetric.Metric) (s size) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		count(&s, m.Gauge().DataPoints())
	case pmetric.MetricTypeSum:
		count(&s, m.Sum().DataPoints())
	case pmetric.MetricTypeHistogram:
		count(&s, m.Histogram().DataPoints())
	case pmetric.MetricTypeSummary:
		count(&s, m.Summary().DataPoints())
	case pmetric.MetricTypeExponentialHistogram:
		count(&s, m.ExponentialHistogram().DataPoints())
	default:
	}
	return s
}

func count[P attributed, S pointSlice[P]](s *size, dps S) {
	s.points += dps.Len()
	for i := range dps.Len() {
		s.attributes += dps.At(i).Attributes().Len()
	}
}

// A Transient holds the memory of metrics for which no tree is kept.
type Transient struct {
	memory *recycled
	owner  *Owner
}

// RenderTransient makes metrics of a view that will not be filled again. If it returns a Transient, their memory can be
// reused.
func RenderTransient(l *plan.Layout, v *View) (pmetric.Metrics, *Transient) {
	v.hasExemplars = len(v.Exemplars) > 0
	if !v.Owner.Tree.remakes() {
		md, _ := emit(l, v, nil)
		return md, nil
	}
	m := idleRecycled.Get().(*recycled)
	md, whole := emit(l, v, m)
	if !whole {
		return md, nil
	}
	m.know(v, l, false, 0)
	return md, &Transient{m, v.Owner}
}

// Loan is passed along with the metrics.
func (p *Transient) Loan() *handback.Loan { return &p.memory.loan }

// Release takes back the metrics, which were consumed, to use their memory again.
func (p *Transient) Release(consumed pmetric.Metrics) {
	p.memory.release(consumed, p.owner)
	p.memory = nil
}
