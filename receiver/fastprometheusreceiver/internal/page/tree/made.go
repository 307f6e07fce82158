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

// made is the memory of metrics that no consumer keeps, and a record of them as they were handed out, so that any other
// metrics can be made of it. Filling a tree again is cheaper, but the tree takes memory meanwhile.
type made struct {
	slabs  *slab.Slabs
	given  []given
	scopes []pmetric.ScopeMetrics
	lost   bool // some of the metrics are where isIntact would not find them
	loan   handback.Loan
}

type given struct {
	pmetric.Metric

	scope int32
	place int // index within the scope
	size  size
}

// makings are those not in use. There are as many as metrics were in the pipeline at once.
var makings = sync.Pool{New: func() any { return &made{slabs: slab.Kept()} }}

// note records a metric, the last one of a scope.
func (m *made) note(out pmetric.Metric, scope int32, in pmetric.MetricSlice) {
	m.given = append(m.given, given{out, scope, in.Len() - 1, sizeOf(out)})
}

// lose says that the memory will not be used again.
func (m *made) lose() {
	if m != nil {
		m.lost = true
	}
}

// takeBack makes the memory available again, if consumed still is what was handed out.
func (m *made) takeBack(consumed pmetric.Metrics, o *Owner) bool {
	if !m.comesBack(consumed, o) {
		return false
	}
	m.slabs.Again()
	clear(m.given)
	clear(m.scopes)
	m.given, m.scopes = m.given[:0], m.scopes[:0]
	m.loan.Forget()
	return true
}

// comesBack reports whether the memory can be used again.
func (m *made) comesBack(consumed pmetric.Metrics, o *Owner) bool {
	switch {
	case m.lost || consumed.IsReadOnly():
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
func (m *made) release(consumed pmetric.Metrics, o *Owner) {
	if handback.Poisons() {
		m.comesBack(consumed, o)
	} else if m.takeBack(consumed, o) {
		makings.Put(m)
	}
}

// isIntact reports whether metrics are where they were handed out, with as many points and, unless these are restored,
// attributes. If so, no part of them has been moved elsewhere.
func (m *made) isIntact(md pmetric.Metrics, putsBack bool) bool {
	there := make(map[pmetric.ScopeMetrics]bool, len(m.scopes))
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			there[sm] = true
		}
	}
	for _, g := range m.given {
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

// Passing are metrics of a page for which no tree is kept.
type Passing struct {
	made  *made
	owner *Owner
}

// Pass makes metrics of a view that are not filled again. Their memory is used again, if a Passing is returned.
func Pass(l *plan.Layout, v *View) (pmetric.Metrics, *Passing) {
	v.hanging = len(v.Exemplars) > 0
	if !v.Owner.Tree.remakes() {
		md, _ := emit(l, v, nil)
		return md, nil
	}
	m := makings.Get().(*made)
	md, whole := emit(l, v, m)
	if !whole {
		return md, nil
	}
	return md, &Passing{m, v.Owner}
}

// Loan is passed along with the metrics.
func (p *Passing) Loan() *handback.Loan { return &p.made.loan }

// Release takes back the metrics, which were consumed, to use their memory again.
func (p *Passing) Release(consumed pmetric.Metrics) {
	p.made.release(consumed, p.owner)
	p.made = nil
}
