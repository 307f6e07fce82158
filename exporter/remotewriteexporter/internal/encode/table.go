// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/prometheus/otlptranslator"
	"github.com/zeebo/xxh3"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/promwrite"
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

	reason Reason // why its points cannot be sent, if they cannot
	prom   string // the name
	meta   *meta

	first   atomic.Pointer[point]  // its first point last time
	next    atomic.Pointer[family] // the metric that followed last time
	keys    *keys                  // of the point made last; under tableMu
	id      uint64
	dead    bool // not, or no longer, in the table; changes under Encoder.mu
	sibling *family
	marked  uint32
}

// point is a data point's identity: what it looks like, and the series it becomes.
type point struct {
	family     *family
	attributes attributes
	bounds     []float64 // of its buckets or quantiles
	reason     Reason    // why it cannot be sent, if it cannot
	one        *series   // a number, a native histogram
	parts      []*series // of a classic histogram or a summary: sum, count, then one for each bound
	next       atomic.Pointer[point]
	seen       atomic.Uint32
	dead       bool // not, or no longer, in the table, so that neighbours must not lead to it; changes under Encoder.mu
	sibling    *point
}

// series is a set of labels, less the values that the resource contributes.
type series struct {
	schema  *schema
	refs    []uint32 // symbols of names and values, sorted by name; a value of the resource is its place|fromResource
	meta    *meta
	weight  int // bytes the labels and metadata may take up in a request
	shard   uint32
	marked  uint32
	sibling *series

	// Its place in the open buffer of its column, if epoch is the column's. Under column.mu.
	epoch uint64
	slot  uint32
}

const fromResource = 1 << 31

type metaKey struct {
	kind             promwrite.MetricType
	name, help, unit string
}

// meta is the metadata of a metric under its translated name.
type meta struct {
	metaKey

	helpRef, unitRef uint32
	sent             atomic.Int64 // in a metadata list of 1.0, by the time of the points
	marked           uint32
}

func (e *Encoder) see(seen *atomic.Uint32) {
	if g := e.generation.Load(); seen.Load() != g {
		seen.Store(g)
	}
}

// shape is what decides the translation of a metric, beside its name.
type shape struct {
	typeHint    string
	monotonic   bool
	temporality pmetric.AggregationTemporality
}

func shapeOf(m pmetric.Metric) shape {
	s := shape{temporality: pmetric.AggregationTemporalityCumulative}
	switch m.Type() {
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
	return !f.dead && f.name == m.Name() && f.kind == m.Type() && f.schema == schema && f.scope == scope &&
		f.scraped == scraped && f.monotonic == s.monotonic && f.temporality == s.temporality &&
		f.unit == m.Unit() && f.help == m.Description() && f.typeHint == s.typeHint
}

// family finds or makes the family of m.
func (e *Encoder) family(t *tenant, m pmetric.Metric, s shape, schema *schema, scope *scope, scraped bool) *family {
	h := e.hashString(e.hashString(mix(schema.id, uint64(m.Type())), m.Name()), m.Description()) & e.hashMask
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
		typeHint: strings.Clone(s.typeHint), kind: m.Type(), monotonic: s.monotonic, temporality: s.temporality,
	}
	e.translate(t, f)
	if f.dead = e.points >= e.cfg.MaxSeries; !f.dead {
		t.families[h] = f
	}
	return f
}

// translate names a family and decides whether it can be sent at all.
func (e *Encoder) translate(t *tenant, f *family) {
	var kind otlptranslator.MetricType
	var mtype promwrite.MetricType
	switch f.kind {
	case pmetric.MetricTypeGauge:
		kind, mtype = otlptranslator.MetricTypeGauge, promwrite.Gauge
		if f.typeHint == "unknown" {
			mtype = promwrite.Unknown
		}
	case pmetric.MetricTypeSum:
		switch {
		case f.monotonic:
			kind, mtype = otlptranslator.MetricTypeMonotonicCounter, promwrite.Counter
		default:
			kind, mtype = otlptranslator.MetricTypeNonMonotonicCounter, promwrite.Gauge
			switch f.typeHint {
			case "info":
				mtype = promwrite.Info
			case "stateset":
				mtype = promwrite.Stateset
			}
		}
	case pmetric.MetricTypeHistogram:
		kind, mtype = otlptranslator.MetricTypeHistogram, promwrite.ClassicHistogram
	case pmetric.MetricTypeExponentialHistogram:
		kind, mtype = otlptranslator.MetricTypeExponentialHistogram, promwrite.ClassicHistogram
	case pmetric.MetricTypeSummary:
		kind, mtype = otlptranslator.MetricTypeSummary, promwrite.Summary
	default:
		f.reason = ReasonEmpty
		return
	}
	switch f.temporality {
	case pmetric.AggregationTemporalityCumulative:
	case pmetric.AggregationTemporalityDelta:
		if e.cfg.Delta == DeltaDrop {
			f.reason = ReasonTemporality
			return
		}
	default:
		f.reason = ReasonTemporality
		return
	}
	if e.cfg.ScrapedNames && f.scraped && e.cfg.Namespace == "" && isLegacyName(f.name) {
		f.prom = f.name
	} else {
		name, err := e.metricNamer.Build(otlptranslator.Metric{Name: f.name, Unit: f.unit, Type: kind})
		if err != nil || name == "" {
			f.reason = ReasonName
			return
		}
		f.prom = name
	}
	f.meta = e.meta(t, metaKey{mtype, f.prom, f.help, e.unitNamer.Build(f.unit)})
}

func isLegacyName(s string) bool {
	return s != "" && legacyName(s) == s && (s[0] < '0' || s[0] > '9')
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
	m := &meta{metaKey: k, helpRef: e.symbols.intern(k.help), unitRef: e.symbols.intern(k.unit)}
	if e.points < e.cfg.MaxSeries {
		t.metas[k] = m
	}
	return m
}

// find finds or makes a point that did not stand where it was expected.
func (e *Encoder) find(t *tenant, f *family, m pcommon.Map, bounds []float64) (p *point, known bool) {
	h := e.hashMap(f.id, m)
	for _, b := range bounds {
		h = mix(h, math.Float64bits(b))
	}
	h &= e.hashMask
	e.tableMu.Lock()
	defer e.tableMu.Unlock()
	for p = t.points[h]; p != nil; p = p.sibling {
		if p.family == f && p.attributes.match(m) && sameBounds(p.bounds, bounds) {
			return p, true
		}
	}
	p = &point{family: f, attributes: e.remember(m, f.keys), bounds: slices.Clone(bounds)}
	f.keys = p.attributes.keys
	if f.reason == "" {
		e.makeSeries(t, p, m)
	}
	if p.dead = e.points >= e.cfg.MaxSeries; p.dead {
		e.overflow.Add(1)
		return p, false
	}
	e.points++
	p.sibling = t.points[h]
	t.points[h] = p
	return p, false
}

// sameBounds compares bits: a bound that is no number is still the same bound.
func sameBounds(a, b []float64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if math.Float64bits(a[i]) != math.Float64bits(b[i]) {
			return false
		}
	}
	return true
}

// series finds or makes the series of a set of labels, in any order. The table is locked.
func (e *Encoder) series(t *tenant, schema *schema, list []seriesLabel, m *meta) *series {
	slices.SortFunc(list, func(a, b seriesLabel) int { return byName(a.label, b.label) })
	s := &series{schema: schema, meta: m, weight: 64}
	if m != nil {
		s.weight += len(m.help) + len(m.unit) + len(m.name)
	}
	var text []byte // what is hashed
	for _, l := range list {
		text = append(append(text, l.name...), 0xff)
		s.weight += len(l.name) + len(l.value) + 16
		value := uint32(l.from-1) | fromResource
		if l.from == 0 {
			text = append(append(text, l.value...), 0xff)
			value = e.symbols.intern(l.value)
		}
		s.refs = append(s.refs, e.symbols.intern(l.name), value)
	}
	s.refs = slices.Clip(s.refs)
	// The shard must be the same after a restart, when blocks of before may still be in a queue.
	s.shard = uint32(xxh3.Hash(text) % uint64(e.cfg.Shards))
	h := mix(maphash.Bytes(e.seed, text), schema.id) & e.hashMask
	for o := t.series[h]; o != nil; o = o.sibling {
		if o.schema == schema && slices.Equal(o.refs, s.refs) {
			return o
		}
	}
	if e.points < e.cfg.MaxSeries {
		s.sibling = t.series[h]
		t.series[h] = s
	}
	return s
}
