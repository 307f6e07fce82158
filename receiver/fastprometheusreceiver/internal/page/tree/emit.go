// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"math"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/slab"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

// A View is the samples of a scrape, in the order of a layout.
type View struct {
	*plan.Variation // nil if the page matches the layout

	Owner        *Owner
	Before       *Owner // the owner with its previous values, used by the points that a variation adds; nil if they are unchanged
	At           pcommon.Timestamp
	Values       []float64
	Times        []int64 // nil if no sample has a timestamp of its own
	Natives      map[int32]plan.NativeValue
	Exemplars    []plan.PlacedExemplar // by point
	hasExemplars bool                  // metrics have exemplars, or had some before
}

// change returns what the variation, if any, changes in a metric. It must be called in the order of metrics.
func (v *View) change(metric, next int) (plan.Change, int) {
	if v.Variation != nil && next < len(v.Changes) && int(v.Changes[next].Metric) == metric {
		return v.Changes[next], next + 1
	}
	return plan.Change{}, next
}

// value returns sample i, NaN if there is none.
func (v *View) value(i int32) float64 {
	if i < 0 {
		return math.NaN()
	}
	return v.Values[i]
}

func (v *View) time(i int32) pcommon.Timestamp {
	if v.Times == nil || i < 0 || int(i) >= len(v.Times) || v.Times[i] == plan.NoTime {
		return v.At
	}
	return pcommon.Timestamp(v.Times[i] * 1e6)
}

// started returns the start time given by a sample of a _created series, 0 if there is none.
func (v *View) started(i int32) pcommon.Timestamp {
	s := v.value(i)
	if math.IsNaN(s) || s == 0 {
		return 0
	}
	whole := int64(s)
	return pcommon.Timestamp(whole*1e9 + int64((s-float64(whole))*1e9))
}

// slabs are the memory of metrics that are made anew and not kept. Points of kept metrics come and go one by one: a few
// of them would then hold a whole slab.
var slabs = sync.Pool{New: func() any { return new(slab.Slabs) }}

// emit makes new metrics, and records them in memory, if given. whole is false if a histogram had to be left out.
func emit(l *plan.Layout, v *View, memory *recycled) (md pmetric.Metrics, whole bool) {
	md = pmetric.NewMetrics()
	c := cursor{View: v, Layout: l}
	if memory != nil {
		c.slabs = memory.slabs
	} else {
		c.slabs = slabs.Get().(*slab.Slabs)
		defer slabs.Put(c.slabs)
	}
	f := newFrame(l, md, v.Owner)
	if len(l.Scopes) == 1 && len(l.Metrics) > 0 {
		f.scope(0).EnsureCapacity(len(l.Metrics))
	}
	var (
		ch   plan.Change
		next int
	)
	for i := range l.Metrics {
		m := &l.Metrics[i]
		k := allOf(m, false)
		if ch, next = v.change(i, next); ch != (plan.Change{}) {
			k = c.choose(m, ch, nil, false)
		}
		scope := f.scope(m.Scope)
		out := c.append(scope, m.Family.Base.Kind, k.count)
		c.metric(m, out, k, false)
		if memory != nil {
			memory.add(out, m.Scope, scope)
		}
	}
	if memory != nil {
		memory.scopes = append(memory.scopes, f.scopes...)
	}
	if c.broken.count > 0 {
		removeEmpty(md)
	}
	c.broken.report(v.Owner, true)
	return md, c.broken.count == 0
}

// A frame has the resources and scopes of metrics that are being made, in the order of their first metrics.
type frame struct {
	*plan.Layout

	metrics   pmetric.Metrics
	owner     *Owner
	resources []pmetric.ResourceMetrics
	scopes    []pmetric.ScopeMetrics
}

func newFrame(l *plan.Layout, md pmetric.Metrics, o *Owner) frame {
	return frame{
		Layout: l, metrics: md, owner: o,
		resources: make([]pmetric.ResourceMetrics, len(l.Resources)), scopes: make([]pmetric.ScopeMetrics, len(l.Scopes)),
	}
}

// scope returns the metrics of a scope, which it adds if needed.
func (f *frame) scope(at int32) pmetric.MetricSlice {
	if f.scopes[at] == (pmetric.ScopeMetrics{}) {
		s := f.Scopes[at]
		if f.resources[s.Resource] == (pmetric.ResourceMetrics{}) {
			f.resources[s.Resource] = f.metrics.ResourceMetrics().AppendEmpty()
			f.owner.fill(f.resources[s.Resource].Resource().Attributes(), &f.Resources[s.Resource])
		}
		f.scopes[at] = f.resources[s.Resource].ScopeMetrics().AppendEmpty()
		fillScope(s.Scope, f.scopes[at])
	}
	return f.scopes[at].Metrics()
}

// removeEmpty removes metrics whose points were all left out.
func removeEmpty(md pmetric.Metrics) {
	md.ResourceMetrics().RemoveIf(func(rm pmetric.ResourceMetrics) bool {
		rm.ScopeMetrics().RemoveIf(func(sm pmetric.ScopeMetrics) bool {
			sm.Metrics().RemoveIf(func(m pmetric.Metric) bool {
				return m.Type() == pmetric.MetricTypeHistogram && m.Histogram().DataPoints().Len() == 0 ||
					m.Type() == pmetric.MetricTypeExponentialHistogram && m.ExponentialHistogram().DataPoints().Len() == 0
			})
			return sm.Metrics().Len() == 0
		})
		return rm.ScopeMetrics().Len() == 0
	})
}

func fillScope(s *catalog.Scope, sm pmetric.ScopeMetrics) {
	sm.Scope().SetName(s.Name)
	sm.Scope().SetVersion(s.Version)
	if s.Schema != "" {
		sm.SetSchemaUrl(s.Schema)
	}
	attrs := fillAttributes(sm.Scope().Attributes(), len(s.Attributes))
	for _, a := range s.Attributes {
		attrs.put(a.Name, a.Value)
	}
	attrs.flush()
}

// fillPoint sets the attributes of a point.
func fillPoint(m pcommon.Map, p *catalog.Point, o *Owner, slabs *slab.Slabs) {
	room := len(p.Form.Keys.Names)
	if slabs != nil && !o.Tree.Reuse || o.Tree.Changes.Points {
		room++ // spare, for consumers that add an attribute: otherwise the list would be copied
	}
	all := fillOnce(m, room, slabs)
	putPoint(&all, p, o)
	all.flush()
}

func putPoint(all *attributes, p *catalog.Point, o *Owner) {
	var v string
	at := 0
	for i, name := range p.Form.Keys.Names {
		v, at = p.Value(i, at, o.Identity)
		all.put(name, v)
	}
}

// refillPoint replaces the attributes of a point by another point's, and reports whether the names are the same. Equal
// values are left alone.
func refillPoint(m pcommon.Map, p *catalog.Point, o *Owner) bool {
	same := overwrite(m, p, o)
	if !same {
		m.RemoveIf(func(string, pcommon.Value) bool { return true })
		fillPoint(m, p, o, nil)
	}
	return same
}

// overwrite gives a map other values, if it has the point's keys. It does not compare them: the map is another
// target's, and no longer in the CPU's cache.
func overwrite(m pcommon.Map, p *catalog.Point, o *Owner) bool {
	if m.Len() != len(p.Form.Keys.Names) {
		return false
	}
	var v string
	i, at := 0, 0
	for name, had := range m.All() {
		if name != p.Form.Keys.Names[i] {
			return false
		}
		v, at = p.Value(i, at, o.Identity)
		slab.ChangeStr(had, v)
		i++
	}
	return true
}

// pointAttributes is how many attributes weigh as much as a point: few real points have more.
const pointAttributes = 16

// Weight returns the size of a view of the layout, or more if its points have many attributes. Metrics are made in parts,
// and not kept, because of the memory that they take, and that is mostly of attributes.
func (v *View) Weight(l *plan.Layout) int {
	attributes := l.Attributes
	if v.Variation != nil && v.Extra != nil {
		attributes += v.Extra.Attributes
	}
	return max(v.Size(l), attributes/pointAttributes)
}

// Size returns how many points a view of the layout has.
func (v *View) Size(l *plan.Layout) int {
	n := len(l.Points)
	if v.Variation != nil {
		for _, ch := range v.Changes {
			n += int(ch.Count - ch.Absent)
		}
	}
	return n
}
