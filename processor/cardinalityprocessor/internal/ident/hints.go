// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package ident

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/slab"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
)

// Hints are the hashes of metrics that a receiver fills again and again, in the order in which a batch goes through
// them. They are stored with the memory of the metrics, see package handback, but do not rely on the receiver: a hint
// is used only for the attributes, the name and the unit that it was made of, all of which are compared. If the
// receiver uses one string for all that are equal, that compares addresses, which takes a fraction of hashing them.
// From the first mismatch on, hints are made again.
//
// Resources are not among them: similar targets share memory.
type Hints struct {
	metrics []metricHint
	Points  []pointHint
	texts   []attributeHint // of the points
	Changes uint64
	shapes  []shapeAt // made of the current hints

	bare bool // they are used once: there are no texts to compare with
}

// Reset drops all hints and prepares for others that are used once. It keeps memory for the given number of points.
func (x *Hints) Reset(points int) {
	clear(x.metrics)
	clear(x.shapes)
	if cap(x.Points) > points {
		x.Points = nil
	}
	*x = Hints{metrics: x.metrics[:0], Points: x.Points[:0], shapes: x.shapes[:0], bare: true}
}

type metricHint struct {
	name, unit     string
	ofName, ofUnit uint64
	kind           uint64
	first, points  uint32 // range in Points
}

type pointHint struct {
	Hash          uint64
	first, length uint32 // range in texts; the length is unknowable if not all values are strings, so that no attributes match
}

type attributeHint struct{ key, value string }

const unknowable = math.MaxUint32

const (
	// maxHints limits the points with hints, 16 bytes each. Larger pages come in parts, without hints.
	maxHints = 1 << 16
	// maxHintTexts limits the attributes with hints, 32 bytes each.
	maxHintTexts = 4 * maxHints
)

// Hinted goes through hints.
type Hinted struct {
	*Hints // nil if there are none

	Place
}

// A Place in hints is the index of the next metric and the next point.
type Place struct{ metric, point int }

// MetricHash is Hasher.Metric.
func (x *Hinted) MetricHash(h *Hasher, scope uint64, m pmetric.Metric) uint64 {
	if x.Hints == nil {
		return h.Metric(scope, m)
	}
	now := metricHint{name: m.Name(), unit: m.Unit(), kind: amount.KindOf(m), first: uint32(x.point), points: uint32(amount.PointCount(m))}
	if x.metric < len(x.metrics) {
		k := &x.metrics[x.metric]
		if now.ofName, now.ofUnit = k.ofName, k.ofUnit; k.name == now.name && k.unit == now.unit {
			if k.kind != now.kind || k.first != now.first || k.points != now.points {
				x.change()
				*k = now
			}
			x.metric++
			return k.hash(scope)
		}
		clear(x.metrics[x.metric:])
		x.metrics = x.metrics[:x.metric]
	}
	x.change()
	now.ofName, now.ofUnit = h.Text(now.name), h.Text(now.unit)
	if len(x.metrics) < maxHints {
		x.metrics = append(x.metrics, now)
		x.metric++
	}
	return now.hash(scope)
}

func (k *metricHint) hash(scope uint64) uint64 {
	return Mix(Mix(scope, k.ofName), Mix(k.ofUnit, k.kind))
}

// change records that hints have changed.
func (x *Hints) change() {
	x.Changes++
	clear(x.shapes)
	x.shapes = x.shapes[:0]
}

// Attributes is Hasher.Attributes.
func (x *Hinted) Attributes(r *Recall, h *Hasher, of pcommon.Map) uint64 {
	if x.Hints == nil {
		return r.attributes(h, of)
	}
	if x.point < len(x.Points) {
		p := &x.Points[x.point]
		switch {
		case x.isOf(p, of): // fast path
			x.point++
			return p.Hash
		case p.length == unknowable:
			x.point++
			return r.attributes(h, of)
		}
		clear(x.texts[p.first:])
		x.texts, x.Points = x.texts[:p.first], x.Points[:x.point]
	}
	x.change()
	sum := r.attributes(h, of)
	if len(x.Points) < maxHints && len(x.texts)+of.Len() <= maxHintTexts {
		x.Points = append(x.Points, x.note(of, sum))
		x.point++
	}
	return sum
}

// isOf reports whether a hint was made of these attributes.
func (x *Hints) isOf(p *pointHint, of pcommon.Map) bool {
	if int(p.length) != of.Len() {
		return false
	}
	texts := x.texts[p.first : p.first+p.length]
	if slab.Readable() {
		return areOf(texts, slab.Attributes(of))
	}
	i := 0
	for key, value := range of.All() {
		if t := &texts[i]; t.key != key || t.value != value.Str() { // of what is no string it is "", which no hint has
			return false
		}
		i++
	}
	return true
}

// areOf is isOf for attributes whose memory can be read directly.
func areOf(texts []attributeHint, of []slab.Attribute) bool {
	for i := range texts {
		t, a := &texts[i], &of[i]
		if key, ok := a.Key(); !ok || !slab.Same(t.key, key) {
			return false
		}
		if value, ok := a.Str(); !ok || !slab.Same(t.value, value) {
			return false
		}
	}
	return true
}

// note makes a hint.
func (x *Hints) note(of pcommon.Map, sum uint64) pointHint {
	p := pointHint{Hash: sum, first: uint32(len(x.texts)), length: uint32(of.Len())}
	if x.bare {
		return p
	}
	for key, value := range of.All() {
		s := value.Str()
		if s == "" { // it may not be a string
			p.length = unknowable
		}
		x.texts = append(x.texts, attributeHint{key, s})
	}
	return p
}
