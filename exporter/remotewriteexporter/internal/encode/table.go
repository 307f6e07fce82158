// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"math"
	"strings"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/promwrite"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/attribute"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/histogram"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/loss"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/names"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/store"
)

// family is a metric: all that its points have in common, translated.
type family struct {
	schema      *schema
	scope       *scope
	scraped     bool
	name        string
	unit        string
	help        string
	typeHint    string
	kind        pmetric.MetricType
	monotonic   bool
	temporality pmetric.AggregationTemporality

	reason loss.Reason   // why its points cannot be sent, if they cannot
	prom   string        // the name
	typed  []names.Label // of type and unit, if these are wanted
	meta   *meta

	first   atomic.Uint32          // its first point last time
	next    atomic.Pointer[family] // the metric that followed last time
	forms   []uint32               // under tableMu
	id      uint64
	dead    bool // not, or no longer, in the table; changes under Encoder.mu
	sibling *family
	marked  mark
}

// point is a data point's identity: what it looks like, and the series it becomes.
type point struct {
	form   uint32 // 0 if the point is not in the table
	values uint32 // its values, in those of its form's keys
	one    uint32 // the series of a number or a native histogram
	parts  uint32 // the series of a classic histogram or a summary: sum, count, then one for each bound
	next   atomic.Uint32
	seen   atomic.Uint32
}

// is says whether p is the point of a family with these attributes and bounds. text is that of the symbols.
func (e *Encoder) is(p *point, f *family, m pcommon.Map, bounds []float64, text []string) bool {
	o := e.forms.One(p.form)
	return o.family == f && o.keys.match(m, o.keys.valuesOf(p.values), text) && histogram.SameBounds(o.bounds, bounds)
}

type metaKey struct {
	kind             promwrite.MetricType
	name, help, unit string
}

// meta is the metadata of a metric under its translated name.
type meta struct {
	metaKey

	helpRef, unitRef uint32
	sent             atomic.Int64 // in a metadata list of 1.0, by the time of the points
	marked           mark
}

// weight is how many bytes a message may take up without its labels.
func (m *meta) weight() int {
	const head = 64
	if m == nil {
		return head
	}
	return head + len(m.help) + len(m.unit) + len(m.name)
}

func (e *Encoder) see(seen *atomic.Uint32) {
	if g := e.generation.Load(); seen.Load() != g {
		seen.Store(g)
	}
}

// shape is what decides the translation of a metric, beside its name.
type shape struct {
	kind        pmetric.MetricType
	typeHint    string
	monotonic   bool
	temporality pmetric.AggregationTemporality
}

func shapeOf(m pmetric.Metric) shape {
	s := shape{kind: m.Type(), temporality: pmetric.AggregationTemporalityCumulative}
	switch s.kind {
	case pmetric.MetricTypeSum:
		s.monotonic, s.temporality = m.Sum().IsMonotonic(), m.Sum().AggregationTemporality()
	case pmetric.MetricTypeHistogram:
		s.temporality = m.Histogram().AggregationTemporality()
	case pmetric.MetricTypeExponentialHistogram:
		s.temporality = m.ExponentialHistogram().AggregationTemporality()
	default:
	}
	if m.Metadata().Len() > 0 {
		if v, ok := m.Metadata().Get("prometheus.type"); ok {
			s.typeHint = v.Str()
		}
	}
	return s
}

func (f *family) match(m pmetric.Metric, s shape, schema *schema, scope *scope, scraped bool) bool {
	return !f.dead && f.name == m.Name() && f.kind == s.kind && f.schema == schema && f.scope == scope &&
		f.scraped == scraped && f.monotonic == s.monotonic && f.temporality == s.temporality &&
		f.unit == m.Unit() && f.help == m.Description() && f.typeHint == s.typeHint
}

// ended is when a point was seen whose last word was a stale marker: no Expire leaves it.
const ended = 0

func (e *Encoder) end(seen *atomic.Uint32) {
	if seen.Swap(ended) != ended {
		e.endings.Add(1)
		e.allEndings.Add(1)
	}
}

// family finds or makes the family of m.
func (e *Encoder) family(t *tenant, m pmetric.Metric, s shape, schema *schema, scope *scope, scraped bool) *family {
	h := e.hashString(e.hashString(store.Mix(schema.id, uint64(s.kind)), m.Name()), m.Description()) & e.hashMask
	e.tableMu.Lock()
	defer e.tableMu.Unlock()
	for f := t.families[h]; f != nil; f = f.sibling {
		if f.match(m, s, schema, scope, scraped) {
			return f
		}
	}
	e.familyIDs++
	f := &family{
		schema: schema, scope: scope, scraped: scraped, id: e.familyIDs, sibling: t.families[h],
		name: strings.Clone(m.Name()), unit: strings.Clone(m.Unit()), help: strings.Clone(m.Description()),
		typeHint: strings.Clone(s.typeHint), kind: s.kind, monotonic: s.monotonic, temporality: s.temporality,
	}
	e.translate(t, f)
	if f.dead = e.listed >= e.cfg.MaxSeries; !f.dead {
		t.families[h] = f
	}
	return f
}

// translate names a family and decides whether it can be sent at all.
func (e *Encoder) translate(t *tenant, f *family) {
	kind, mtype, ok := names.KindsOf(f.kind, f.monotonic, f.typeHint)
	if !ok {
		f.reason = loss.Empty
		return
	}
	switch f.temporality {
	case pmetric.AggregationTemporalityCumulative:
	case pmetric.AggregationTemporalityDelta:
		if e.cfg.Delta == DeltaDrop {
			f.reason = loss.Temporality
			return
		}
	default:
		f.reason = loss.Temporality
		return
	}
	if f.scraped {
		f.prom = e.names.Scraped(f.name, f.unit, kind, mtype)
	} else {
		f.prom = e.names.Metric(f.name, f.unit, kind)
	}
	if f.prom == "" {
		f.reason = loss.Name
		return
	}
	unit := e.names.Unit(f.unit)
	f.meta = e.meta(t, metaKey{mtype, f.prom, f.help, unit})
	f.typed = e.names.TypeAndUnit(mtype, unit)
}

// meta finds or makes metadata; nil if none is wanted. The table is locked.
func (e *Encoder) meta(t *tenant, k metaKey) *meta {
	if !e.cfg.Metadata {
		return nil
	}
	if m := t.metas[k]; m != nil {
		return m
	}
	k.name, k.help, k.unit = e.keep(k.name), e.keep(k.help), e.keep(k.unit)
	m := &meta{metaKey: k, helpRef: e.symbols.Intern(k.help), unitRef: e.symbols.Intern(k.unit)}
	if e.listed < e.cfg.MaxSeries {
		t.metas[k] = m
	}
	return m
}

// manyAttributes is from how many attributes on a point takes more than one place, one for each placeAttributes: whoever sends the same
// tens of thousands in another order each time would have as many copies of them kept as there are places. Such points together
// have one of wideShare places: the others are those of series as destinations take them.
const (
	manyAttributes  = 64
	placeAttributes = 8
	wideShare       = 8
)

// placesOf returns how many places a point of n attributes takes.
func placesOf(n int) int {
	if n < manyAttributes {
		return 1
	}
	return n / placeAttributes
}

// find finds or makes a point that did not stand where it was expected. Its number is 0 if the cache is full.
func (e *Encoder) find(t *tenant, f *family, m pcommon.Map, bounds []float64) (p *point, n uint32, known bool) {
	h := f.id
	for k, v := range m.All() { // keys mostly are the family's, but whoever chooses them may choose others each time
		h = e.hashString(e.hashString(h, k), attribute.Text(v))
	}
	for _, b := range bounds {
		h = store.Mix(h, math.Float64bits(b))
	}
	hash := store.Fold(h & e.hashMask)
	e.tableMu.Lock()
	defer e.tableMu.Unlock()
	text := e.symbols.Snapshot()
	for at := range t.points.Of(hash) {
		if p := e.points.One(at); e.is(p, f, m, bounds, text) {
			return p, at, true
		}
	}
	n = e.points.Add()
	p = e.points.One(n)
	form := e.form(t, f, m, bounds)
	e.fill(t, p, e.forms.One(form), m)
	places := placesOf(m.Len())
	wide := 0
	if places > 1 {
		wide = places
	}
	if e.listed+places > e.cfg.MaxSeries || wide > 0 && e.wide+wide > e.cfg.MaxSeries/wideShare {
		e.overflow.Add(int64(places))
		return p, 0, false // the next Expire frees it
	}
	e.listed, e.wide = e.listed+places, e.wide+wide
	p.form = form
	p.seen.Store(e.generation.Load())
	t.points.Insert(hash, n)
	return p, n, false
}

// fill makes the series of a new point. The table is locked.
func (e *Encoder) fill(t *tenant, p *point, f *form, m pcommon.Map) {
	p.values = e.pack(f.keys, m)
	if e.rules != nil {
		e.fillByRules(t, p, f)
		return
	}
	layouts := f.layouts
	if f.single {
		p.one, layouts = e.seriesOf(t, layouts[0], p.values), layouts[1:]
	}
	if len(layouts) == 0 {
		return
	}
	parts := make([]*series, 0, len(layouts))
	for _, l := range layouts {
		parts = append(parts, e.series.One(e.seriesOf(t, l, p.values)))
	}
	p.parts = e.parts.Add()
	*e.parts.One(p.parts) = parts
}
