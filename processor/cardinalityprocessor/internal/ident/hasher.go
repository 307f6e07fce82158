// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package ident identifies series, their parts and their tenants by fingerprints of 64 bits.
package ident

import (
	"math"
	"math/bits"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/siphash"
)

// A series is identified by a fingerprint of 64 bits over everything that distinguishes it: resource, scope, metric
// name, unit, type, temporality, monotonicity and the attributes of the point, of any value type, at any depth and in
// any order.
//
// All of that is foreign data. Whoever could make the fingerprints of two series equal would get places for free, or
// have his values added to those of others. So every name and every value is hashed by SipHash with a secret key, and
// only the results are combined, by Mix. Nobody can predict a fingerprint without the key, and two of n series share
// one with a probability of about n²/2⁶⁵: 3e-8 for a million series. They are then taken for one.

// Arbitrary odd constants: as tags they keep "1", 1, 1.0 and true apart.
const (
	mixA      = 0x9e3779b97f4a7c15
	MixB      = 0xd1b54a32d192ed03
	TagEmpty  = 0x8cb92ba72f3d8dd7
	tagString = 0xa0761d6478bd642f
	tagInt    = 0xe7037ed1a0b428db
	tagDouble = 0x8ebc6af09c88c6e3
	tagBool   = 0x589965cc75374cc3
	tagBytes  = 0x1d8e4e27c47d124f
	TagSlice  = 0xeb44accab455d165
	TagMap    = 0x2f7dbb8b2d1e5c4b
)

// Mix combines two words such that every bit of the result depends on all bits. It does not commute. It has no key, and
// some words cancel the other one: foreign data must be hashed before it comes here.
func Mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^mixA, bits.RotateLeft64(b, 32)^MixB)
	return hi ^ lo
}

// Hasher computes fingerprints with a key.
type Hasher struct {
	Key siphash.Key

	empty       uint64    // of a value without a type
	bools       [2]uint64 // false and true
	Overflowing uint64    // the attribute of overflow series
	collapsed   uint64    // the value of collapsed labels
}

// NewHasher returns a hasher with this key.
func NewHasher(key siphash.Key) Hasher {
	h := Hasher{Key: key, empty: key.Word(0) ^ TagEmpty, bools: [2]uint64{key.Word(0) ^ tagBool, key.Word(1) ^ tagBool}}
	h.Overflowing = Mix(h.Text(OverflowKey), h.bools[1])
	h.collapsed = h.Text(CollapsedValue) ^ tagString
	return h
}

// Text hashes a name.
func (h *Hasher) Text(s string) uint64 { return h.Key.String(s) }

// Attributes hashes attributes, whatever their order. It adds, rather than xors, so that a repeated attribute does not
// vanish.
func (h *Hasher) Attributes(attributes pcommon.Map) uint64 {
	var sum uint64
	for key, value := range attributes.All() {
		sum += h.Attribute(h.Text(key), value)
	}
	return Mix(sum, uint64(attributes.Len()))
}

// Attribute is the hash of one attribute. The key is given hashed.
func (h *Hasher) Attribute(key uint64, value pcommon.Value) uint64 {
	return Mix(key, h.Value(value))
}

// Kept is Attributes of those that are kept and one more, if that is not 0.
func (h *Hasher) Kept(attributes pcommon.Map, keep []string, more uint64) uint64 {
	sum, n := more, uint64(0)
	if more != 0 {
		n++
	}
	for key, value := range attributes.All() {
		if slices.Contains(keep, key) {
			sum += h.Attribute(h.Text(key), value)
			n++
		}
	}
	return Mix(sum, n)
}

// Without is Attributes with the values of the labels on this side replaced.
func (h *Hasher) Without(attributes pcommon.Map, labels []LabelAt, on Side) uint64 {
	var sum uint64
	for key, value := range attributes.All() {
		if slices.Contains(labels, LabelAt{key, on}) {
			sum += Mix(h.Text(key), h.collapsed)
		} else {
			sum += h.Attribute(h.Text(key), value)
		}
	}
	return Mix(sum, uint64(attributes.Len()))
}

// Value hashes a value of any type.
func (h *Hasher) Value(value pcommon.Value) uint64 {
	if s := value.Str(); s != "" { // fast path for nearly all
		return h.Text(s) ^ tagString
	}
	switch value.Type() {
	case pcommon.ValueTypeStr:
		return h.Text("") ^ tagString
	case pcommon.ValueTypeInt:
		return h.Key.Word(uint64(value.Int())) ^ tagInt
	case pcommon.ValueTypeDouble:
		return h.Key.Word(math.Float64bits(value.Double())) ^ tagDouble
	case pcommon.ValueTypeBool:
		if value.Bool() {
			return h.bools[1]
		}
		return h.bools[0]
	case pcommon.ValueTypeBytes:
		return siphash.OfBytes(h.Key, value.Bytes()) ^ tagBytes
	case pcommon.ValueTypeSlice, pcommon.ValueTypeMap:
		return h.nested(value)
	default:
		return h.empty
	}
}

// opened is a list or map that is being hashed. What it adds to its parent depends on its key or position there.
type opened struct {
	value  pcommon.Value
	place  uint64
	listed bool // its elements have been added, or are on the stack
}

// nested hashes lists and maps. It uses a stack of its own, as high as needed, instead of recursion: a request of a few
// megabytes can nest a million of them.
func (h *Hasher) nested(root pcommon.Value) uint64 {
	var few [8]opened // enough for usual data, without an allocation
	var fewSums [len(few) + 1]uint64
	open, sums := append(few[:0], opened{value: root}), append(fewSums[:0], 0)
	for len(open) > 0 {
		top := &open[len(open)-1]
		value, place := top.value, top.place
		inner := len(sums) - 1
		if top.listed {
			open = open[:len(open)-1]
			sum := closed(value, sums[inner])
			if sums = sums[:inner]; len(open) == 0 {
				return sum
			}
			sums[inner-1] += Mix(place, sum)
			continue
		}
		top.listed = true
		sums = append(sums, 0)
		inner++
		if value.Type() == pcommon.ValueTypeMap {
			for key, element := range value.Map().All() {
				if place := h.Text(key); nests(element) {
					open = append(open, opened{value: element, place: place})
				} else {
					sums[inner] += h.Attribute(place, element)
				}
			}
			continue
		}
		elements := value.Slice()
		for i := range elements.Len() {
			element := elements.At(i)
			if place := h.Key.Word(uint64(i)); nests(element) {
				open = append(open, opened{value: element, place: place})
			} else {
				sums[inner] += h.Attribute(place, element)
			}
		}
	}
	return sums[0]
}

func nests(value pcommon.Value) bool {
	return value.Type() == pcommon.ValueTypeSlice || value.Type() == pcommon.ValueTypeMap
}

// closed is the hash of a list or map, given the sum of its elements.
func closed(value pcommon.Value, sum uint64) uint64 {
	if value.Type() == pcommon.ValueTypeMap {
		return Mix(sum, uint64(value.Map().Len())) ^ TagMap
	}
	return Mix(sum, uint64(value.Slice().Len())) ^ TagSlice
}

// Scope hashes a scope in a resource.
func (h *Hasher) Scope(resource uint64, scope pcommon.InstrumentationScope) uint64 {
	name := Mix(h.Text(scope.Name()), h.Text(scope.Version()))
	return Mix(Mix(resource, name), h.Attributes(scope.Attributes()))
}

// Metric hashes a metric in a scope.
func (h *Hasher) Metric(scope uint64, m pmetric.Metric) uint64 {
	return h.MetricOfKind(scope, m, amount.KindOf(m))
}

// MetricOfKind is Metric for a metric of another type.
func (h *Hasher) MetricOfKind(scope uint64, m pmetric.Metric, kind uint64) uint64 {
	return Mix(Mix(scope, h.Text(m.Name())), Mix(h.Text(m.Unit()), kind))
}

// Settled avoids 0 and 1, which have a special meaning in a table.
func Settled(fp uint64) uint64 {
	if fp < 2 {
		return fp + 2
	}
	return fp
}

// AttributeOf hashes an attribute, or its absence: series without it are a group.
func (h *Hasher) AttributeOf(attributes pcommon.Map, key string) uint64 {
	if value, ok := attributes.Get(key); ok {
		return h.Value(value)
	}
	return 0
}

// Side is where an attribute is: on the point, or on its resource.
type Side uint8

// The sides.
const (
	OfPoint Side = iota
	OfResource
	Sides
)

// LabelAt is one attribute of a series.
type LabelAt struct {
	Key  string
	Side Side
}

// Marks of series that are made here.
const (
	OverflowKey    = "otel.metric.overflow" // by the specification, with the value true
	CollapsedValue = "__collapsed__"        // replaces a label's value
)

// Keys identify the scope and the metric of an output.
type Keys struct{ Scope, Metric uint64 }
