// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"math"
	"sync"

	"github.com/prometheus/prometheus/model/value"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/slab"
)

// A view is the samples of a scrape as a layout names them.
type view struct {
	*variation // nil when the page has what the layout has

	target    *Target
	at        pcommon.Timestamp
	values    []float64
	times     []int64 // nil when no sample has a time of its own
	natives   map[int32]nativeValue
	exemplars []placedExemplar // by point
	hanging   bool             // there are exemplars, or were
}

// change returns what the variation, if any, changes in a metric. Calls are for one metric after another.
func (v *view) change(metric, next int) (change, int) {
	if v.variation != nil && next < len(v.changes) && int(v.changes[next].metric) == metric {
		return v.changes[next], next + 1
	}
	return change{}, next
}

// A stale marker ends a series. A page in protobuf may say it too, and any other NaN: so what the scrape knows of a line is
// never told by its value.
var (
	staleMarker = math.Float64frombits(value.StaleNaN)
	staleBits   = math.Float64bits(staleMarker)
)

func isStale(v float64) bool { return math.Float64bits(v) == staleBits }

// value returns sample i; of none it is NaN.
func (v *view) value(i int32) float64 {
	if i < 0 {
		return math.NaN()
	}
	return v.values[i]
}

func (v *view) time(i int32) pcommon.Timestamp {
	if v.times == nil || i < 0 || int(i) >= len(v.times) || v.times[i] == noTime {
		return v.at
	}
	return pcommon.Timestamp(v.times[i] * 1e6)
}

// started returns the start time that a sample of a _created series gives, 0 for none.
func (v *view) started(i int32) pcommon.Timestamp {
	s := v.value(i)
	if math.IsNaN(s) || s == 0 {
		return 0
	}
	whole := int64(s)
	return pcommon.Timestamp(whole*1e9 + int64((s-float64(whole))*1e9))
}

// slabs are what metrics are made of that are made anew. Those that stay, to be filled again, have points come and go one by one:
// there, what is left of a slab would be kept for the sake of a few.
var slabs = sync.Pool{New: func() any { return new(slab.Slabs) }}

// emit builds a tree anew. whole is false when a histogram had to be left out.
func (l *layout) emit(v *view) (md pmetric.Metrics, whole bool) {
	md = pmetric.NewMetrics()
	c := cursor{view: v, layout: l, slabs: slabs.Get().(*slab.Slabs)}
	defer slabs.Put(c.slabs)
	f := l.frame(md, v.target)
	if len(l.scopes) == 1 && len(l.metrics) > 0 {
		f.scope(0).EnsureCapacity(len(l.metrics))
	}
	var (
		ch   change
		next int
	)
	for i := range l.metrics {
		m := &l.metrics[i]
		k := m.all(false)
		if ch, next = v.change(i, next); ch != (change{}) {
			k = c.choose(m, ch, nil, false)
		}
		c.metric(m, f.scope(m.scope).AppendEmpty(), k, false)
	}
	if c.broken.count > 0 {
		removeEmpty(md)
	}
	c.broken.report(v.target, true)
	return md, c.broken.count == 0
}

// A frame is the resources and scopes of metrics in the making: in the order of their first metrics.
type frame struct {
	*layout

	metrics   pmetric.Metrics
	target    *Target
	resources []pmetric.ResourceMetrics
	scopes    []pmetric.ScopeMetrics
}

func (l *layout) frame(md pmetric.Metrics, t *Target) frame {
	return frame{
		layout: l, metrics: md, target: t,
		resources: make([]pmetric.ResourceMetrics, len(l.resources)), scopes: make([]pmetric.ScopeMetrics, len(l.scopes)),
	}
}

// scope returns the metrics of a scope, which is there from then on.
func (f *frame) scope(at int32) pmetric.MetricSlice {
	if f.scopes[at] == (pmetric.ScopeMetrics{}) {
		s := f.layout.scopes[at]
		if f.resources[s.resource] == (pmetric.ResourceMetrics{}) {
			f.resources[s.resource] = f.metrics.ResourceMetrics().AppendEmpty()
			f.target.fill(f.resources[s.resource].Resource().Attributes(), &f.layout.resources[s.resource])
		}
		f.scopes[at] = f.resources[s.resource].ScopeMetrics().AppendEmpty()
		s.scope.fill(f.scopes[at])
	}
	return f.scopes[at].Metrics()
}

// removeEmpty removes metrics all points of which were left out.
func removeEmpty(md pmetric.Metrics) {
	md.ResourceMetrics().RemoveIf(func(rm pmetric.ResourceMetrics) bool {
		rm.ScopeMetrics().RemoveIf(func(sm pmetric.ScopeMetrics) bool {
			sm.Metrics().RemoveIf(func(m pmetric.Metric) bool {
				return m.Type() == pmetric.MetricTypeHistogram && m.Histogram().DataPoints().Len() == 0
			})
			return sm.Metrics().Len() == 0
		})
		return rm.ScopeMetrics().Len() == 0
	})
}

func (s *scope) fill(sm pmetric.ScopeMetrics) {
	sm.Scope().SetName(s.name)
	sm.Scope().SetVersion(s.version)
	if s.schema != "" {
		sm.SetSchemaUrl(s.schema)
	}
	attrs := fillAttributes(sm.Scope().Attributes(), len(s.attributes))
	for _, a := range s.attributes {
		attrs.put(a.Name, a.Value)
	}
	attrs.flush()
}

// fill puts the attributes of one of the target's resources.
func (t *Target) fill(m pcommon.Map, r *placedResource) {
	attrs := t.attrs
	if r.resource.isNamed() {
		job, instance := t.of(r.resource)
		attrs = resourceAttributes(nil, job, instance, t.common)
	}
	most := len(attrs)
	for _, p := range r.info {
		most += len(p.form.keys.names)
	}
	all := fillAttributes(m, most)
	for _, a := range attrs {
		all.put(a.Name, a.Value)
	}
	for _, p := range r.info {
		p.put(&all, t)
	}
	all.flush()
}

// fill puts the attributes of a point.
func (p *point) fill(m pcommon.Map, t *Target, slabs *slab.Slabs) {
	all := fillOnce(m, len(p.form.keys.names), slabs)
	p.put(&all, t)
	all.flush()
}

func (p *point) put(all *attributes, t *Target) {
	var v string
	at := 0
	for i, name := range p.form.keys.names {
		v, at = p.value(i, at, t)
		all.put(name, v)
	}
}

// refill puts the attributes of a point in place of another's, and tells whether the names are the same. What is the same stays,
// or is taken from a giver, if any.
func (p *point) refill(m pcommon.Map, t *Target, giver pcommon.Map) bool {
	same := p.overwrite(m, t, giver)
	if !same {
		m.RemoveIf(func(string, pcommon.Value) bool { return true })
		p.fill(m, t, nil)
	}
	return same
}

// overwrite gives a map other values, if it has the point's keys.
func (p *point) overwrite(m pcommon.Map, t *Target, giver pcommon.Map) bool {
	if m.Len() != len(p.form.keys.names) {
		return false
	}
	var v string
	i, at := 0, 0
	for name, had := range m.All() {
		if name != p.form.keys.names[i] {
			return false
		}
		if v, at = p.value(i, at, t); had.Str() != v && !give(giver, name, v, had) {
			slab.ChangeStr(had, v)
		}
		i++
	}
	return true
}

// give moves a value from a map, if that has it.
func give(giver pcommon.Map, name, value string, to pcommon.Value) bool {
	if giver == (pcommon.Map{}) {
		return false
	}
	had, ok := giver.Get(name)
	if ok = ok && had.Str() == value; ok {
		had.MoveTo(to)
	}
	return ok
}

// value returns the value of an attribute, packed at a place unless it is the target's, and where the next one is packed.
func (p *point) value(i, at int, t *Target) (v string, next int) {
	if from := p.form.keys.from[i]; from >= 0 {
		return t.value(int(from)), at
	}
	s, next := unpack(p.form.values, at)
	return p.text(s), next
}
