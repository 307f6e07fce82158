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

// made is what metrics were made of that nobody keeps, and what they were when they were handed out: for others to be made of it, whatever
// those have. A tree is filled again for less, but takes memory until then.
type made struct {
	slabs  *slab.Slabs
	given  []given
	scopes []pmetric.ScopeMetrics
	lost   bool // some of it is where it is not looked for
	loan   handback.Loan
}

type given struct {
	pmetric.Metric

	scope int32
	place int // in the scope
	size  size
}

// makings are what nobody has. They are as many as there are metrics on the way at once.
var makings = sync.Pool{New: func() any { return &made{slabs: slab.Kept()} }}

// note notes a metric, the last one of a scope.
func (m *made) note(out pmetric.Metric, scope int32, in pmetric.MetricSlice) {
	m.given = append(m.given, given{out, scope, in.Len() - 1, sizeOf(out)})
}

// lose says that what is there will not be used again.
func (m *made) lose() {
	if m != nil {
		m.lost = true
	}
}

// takeBack takes back what was made, if it can be used again.
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

// comesBack tells whether what was made can be used again.
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

// release takes back what was made, and leaves it to others. Poison stays where it is, for who keeps metrics to find it.
func (m *made) release(consumed pmetric.Metrics, o *Owner) {
	if handback.Poisons() {
		m.comesBack(consumed, o)
	} else if m.takeBack(consumed, o) {
		makings.Put(m)
	}
}

// isIntact tells whether metrics are what and where they were, with as many points and, unless these are put back, attributes. If they are,
// nothing that they are made of is somewhere else.
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

// size is how many points a metric has, and they together attributes.
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

// Passing is the metrics of a page for which no tree is kept.
type Passing struct {
	made  *made
	owner *Owner
}

// Pass makes metrics of a view that are not filled again. Their memory is, unless nothing is returned beside them.
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

// Loan is what goes with the metrics when they are handed out.
func (p *Passing) Loan() *handback.Loan { return &p.made.loan }

// Release takes back the metrics, which were consumed: others are made of their memory.
func (p *Passing) Release(consumed pmetric.Metrics) {
	p.made.release(consumed, p.owner)
	p.made = nil
}
