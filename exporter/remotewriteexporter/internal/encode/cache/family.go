// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/promwrite"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/loss"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/names"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/store"
)

// Family is a metric: what its points have in common, translated.
type Family struct {
	Schema      *Schema
	Scope       *Scope
	Scraped     bool
	Name        string
	unit        string
	help        string
	typeHint    string
	Kind        pmetric.MetricType
	Monotonic   bool
	Temporality pmetric.AggregationTemporality

	Reason loss.Reason   // why its points cannot be sent; empty if they can
	prom   string        // the metric name
	typed  []names.Label // labels of type and unit, if configured
	meta   *Meta

	First   atomic.Uint32          // the point that came first last time
	Next    atomic.Pointer[Family] // the metric that followed last time
	forms   []uint32               // under Cache.mu
	id      uint64
	Dead    bool // not, or no longer, in the table; changes during an Expiry
	sibling *Family
	marked  Mark
}

type metaKey struct {
	Kind             promwrite.MetricType
	Name, help, unit string
}

// Meta is the metadata of a metric under its translated name.
type Meta struct {
	metaKey

	HelpRef, UnitRef uint32
	Sent             sentAt // in a metadata list of 1.0
	marked           Mark
}

// weight is the most bytes that a message takes without its labels.
func (m *Meta) weight() int {
	const head = 64
	if m == nil {
		return head
	}
	return head + len(m.help) + len(m.unit) + len(m.Name)
}

// Shape is what determines the translation of a metric, besides its name.
type Shape struct {
	Kind        pmetric.MetricType
	typeHint    string
	monotonic   bool
	temporality pmetric.AggregationTemporality
}

// ShapeOf returns the shape of a metric.
func ShapeOf(m pmetric.Metric) Shape {
	s := Shape{Kind: m.Type(), temporality: pmetric.AggregationTemporalityCumulative}
	switch s.Kind {
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

// Match reports whether f is the family of a metric of this shape, in this resource and scope.
func (f *Family) Match(m pmetric.Metric, s Shape, schema *Schema, scope *Scope, scraped bool) bool {
	return !f.Dead && f.Name == m.Name() && f.Kind == s.Kind && f.Schema == schema && f.Scope == scope &&
		f.Scraped == scraped && f.Monotonic == s.monotonic && f.Temporality == s.temporality &&
		f.unit == m.Unit() && f.help == m.Description() && f.typeHint == s.typeHint
}

// Family returns the family of m, which it makes if needed.
func (c *Cache) Family(t *Tenant, m pmetric.Metric, s Shape, schema *Schema, scope *Scope, scraped bool) *Family {
	h := c.hashString(c.hashString(store.Mix(schema.id, uint64(s.Kind)), m.Name()), m.Description()) & c.HashMask
	c.mu.Lock()
	defer c.mu.Unlock()
	for f := t.families[h]; f != nil; f = f.sibling {
		if f.Match(m, s, schema, scope, scraped) {
			return f
		}
	}
	c.familyIDs++
	f := &Family{
		Schema: schema, Scope: scope, Scraped: scraped, id: c.familyIDs, sibling: t.families[h],
		Name: c.keep(m.Name()), unit: c.keep(m.Unit()), help: c.keep(m.Description()),
		typeHint: c.keep(s.typeHint), Kind: s.Kind, Monotonic: s.monotonic, Temporality: s.temporality,
	}
	c.translate(t, f)
	if f.Dead = c.room.isFull(); !f.Dead {
		t.families[h] = f
	}
	return f
}

// translate names a family and decides whether it can be sent.
func (c *Cache) translate(t *Tenant, f *Family) {
	kind, mtype, ok := names.KindsOf(f.Kind, f.Monotonic, f.typeHint)
	if !ok {
		f.Reason = loss.Empty
		return
	}
	switch f.Temporality {
	case pmetric.AggregationTemporalityCumulative:
	case pmetric.AggregationTemporalityDelta:
		if c.cfg.Delta == DeltaDrop {
			f.Reason = loss.Temporality
			return
		}
	default:
		f.Reason = loss.Temporality
		return
	}
	if f.Scraped {
		f.prom = c.names.Scraped(f.Name, f.unit, kind, mtype)
	} else {
		f.prom = c.names.Metric(f.Name, f.unit, kind)
	}
	if f.prom == "" {
		f.Reason = loss.Name
		return
	}
	f.prom = c.keep(f.prom)
	unit := c.names.Unit(f.unit)
	f.meta = c.meta(t, metaKey{mtype, f.prom, f.help, unit})
	f.typed = c.names.TypeAndUnit(mtype, unit)
}

// meta returns the metadata for k, which it makes if needed; nil if metadata is off. The table must be locked.
func (c *Cache) meta(t *Tenant, k metaKey) *Meta {
	if !c.cfg.Metadata {
		return nil
	}
	if m := t.metas[k]; m != nil {
		return m
	}
	k.Name, k.help, k.unit = c.keep(k.Name), c.keep(k.help), c.keep(k.unit)
	m := &Meta{metaKey: k, HelpRef: c.Symbols.Intern(k.help), UnitRef: c.Symbols.Intern(k.unit)}
	if !c.room.isFull() {
		t.metas[k] = m
	}
	return m
}
