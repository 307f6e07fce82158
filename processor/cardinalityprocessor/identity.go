// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"math"
	"math/bits"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/siphash"
)

// A series is known by a fingerprint of 64 bits over everything that tells it from others: resource, scope, metric
// name, unit, type, temporality, monotonicity and the attributes of the point, of any value type, at any depth and in any
// order.
//
// All of it is foreign data, and whoever could make two series agree in their fingerprint would have places for free, or
// his values added to those of others. So every name and every value is hashed by SipHash with a secret key, and only what
// comes out of that is put together, by mix. Nobody can foresee a fingerprint without the key, and two of n series share
// one with a probability of about n²/2⁶⁵: 3e-8 for a million series. They are then taken for one.

// Arbitrary odd constants: the tags keep "1", 1, 1.0 and true apart.
const (
	mixA      = 0x9e3779b97f4a7c15
	mixB      = 0xd1b54a32d192ed03
	tagEmpty  = 0x8cb92ba72f3d8dd7
	tagString = 0xa0761d6478bd642f
	tagInt    = 0xe7037ed1a0b428db
	tagDouble = 0x8ebc6af09c88c6e3
	tagBool   = 0x589965cc75374cc3
	tagBytes  = 0x1d8e4e27c47d124f
	tagSlice  = 0xeb44accab455d165
	tagMap    = 0x2f7dbb8b2d1e5c4b
)

// mix folds two words into one such that every bit depends on all bits. It does not commute. It has no key, and there are
// words that make it forget the other one: what foreign data says must not come here before it was hashed.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^mixA, bits.RotateLeft64(b, 32)^mixB)
	return hi ^ lo
}

// hasher makes fingerprints with a key.
type hasher struct {
	key siphash.Key

	empty       uint64    // the value that is none
	bools       [2]uint64 // false and true
	overflowing uint64    // the attribute that marks what overflows
	collapsed   uint64    // the value of labels that were collapsed
}

func newHasher(key siphash.Key) hasher {
	h := hasher{key: key, empty: key.Word(0) ^ tagEmpty, bools: [2]uint64{key.Word(0) ^ tagBool, key.Word(1) ^ tagBool}}
	h.overflowing = mix(h.text(overflowKey), h.bools[1])
	h.collapsed = h.text(collapsedValue) ^ tagString
	return h
}

// text hashes a name.
func (h *hasher) text(s string) uint64 { return h.key.String(s) }

// attributes does not depend on the order of the attributes. It adds, and does not xor, so that an attribute that is there
// twice does not vanish.
func (h *hasher) attributes(attributes pcommon.Map) uint64 {
	var sum uint64
	for key, value := range attributes.All() {
		sum += h.attribute(h.text(key), value)
	}
	return mix(sum, uint64(attributes.Len()))
}

// attribute is what one attribute adds. The key comes hashed.
func (h *hasher) attribute(key uint64, value pcommon.Value) uint64 {
	return mix(key, h.value(value))
}

// kept is attributes of those that are kept and one more, if that is not 0.
func (h *hasher) kept(attributes pcommon.Map, keep []string, more uint64) uint64 {
	sum, n := more, uint64(0)
	if more != 0 {
		n++
	}
	for key, value := range attributes.All() {
		if slices.Contains(keep, key) {
			sum += h.attribute(h.text(key), value)
			n++
		}
	}
	return mix(sum, n)
}

// without is attributes with the values of the labels replaced that are on their side.
func (h *hasher) without(attributes pcommon.Map, labels []labelAt, on side) uint64 {
	var sum uint64
	for key, value := range attributes.All() {
		if slices.Contains(labels, labelAt{key, on}) {
			sum += mix(h.text(key), h.collapsed)
		} else {
			sum += h.attribute(h.text(key), value)
		}
	}
	return mix(sum, uint64(attributes.Len()))
}

func (h *hasher) value(value pcommon.Value) uint64 {
	if s := value.Str(); s != "" { // fast path: nearly all are
		return h.text(s) ^ tagString
	}
	switch value.Type() {
	case pcommon.ValueTypeStr:
		return h.text("") ^ tagString
	case pcommon.ValueTypeInt:
		return h.key.Word(uint64(value.Int())) ^ tagInt
	case pcommon.ValueTypeDouble:
		return h.key.Word(math.Float64bits(value.Double())) ^ tagDouble
	case pcommon.ValueTypeBool:
		if value.Bool() {
			return h.bools[1]
		}
		return h.bools[0]
	case pcommon.ValueTypeBytes:
		return siphash.OfBytes(h.key, value.Bytes()) ^ tagBytes
	case pcommon.ValueTypeSlice, pcommon.ValueTypeMap:
		return h.nested(value)
	default:
		return h.empty
	}
}

// opened is a list or map that is being gone through. What it adds to the one that it is in depends on where it is there:
// under a key, or at a position.
type opened struct {
	value  pcommon.Value
	place  uint64
	listed bool // what is in it has been added, or lies above it
}

// nested hashes lists and maps. It keeps those that it is in on a stack of its own, which is as high as they need and not
// bounded by that of the goroutine: a request of a few megabytes can nest a million of them.
func (h *hasher) nested(root pcommon.Value) uint64 {
	var few [8]opened // enough for what people nest, without an allocation
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
			sums[inner-1] += mix(place, sum)
			continue
		}
		top.listed = true
		sums = append(sums, 0)
		inner++
		if value.Type() == pcommon.ValueTypeMap {
			for key, element := range value.Map().All() {
				if place := h.text(key); nests(element) {
					open = append(open, opened{value: element, place: place})
				} else {
					sums[inner] += h.attribute(place, element)
				}
			}
			continue
		}
		elements := value.Slice()
		for i := range elements.Len() {
			element := elements.At(i)
			if place := h.key.Word(uint64(i)); nests(element) {
				open = append(open, opened{value: element, place: place})
			} else {
				sums[inner] += h.attribute(place, element)
			}
		}
	}
	return sums[0]
}

func nests(value pcommon.Value) bool {
	return value.Type() == pcommon.ValueTypeSlice || value.Type() == pcommon.ValueTypeMap
}

// closed is the hash of a list or map with the sum of what is in it.
func closed(value pcommon.Value, sum uint64) uint64 {
	if value.Type() == pcommon.ValueTypeMap {
		return mix(sum, uint64(value.Map().Len())) ^ tagMap
	}
	return mix(sum, uint64(value.Slice().Len())) ^ tagSlice
}

func (h *hasher) scope(resource uint64, scope pcommon.InstrumentationScope) uint64 {
	name := mix(h.text(scope.Name()), h.text(scope.Version()))
	return mix(mix(resource, name), h.attributes(scope.Attributes()))
}

func (h *hasher) metric(scope uint64, m pmetric.Metric) uint64 {
	return mix(mix(scope, h.text(m.Name())), mix(h.text(m.Unit()), kindOf(m)))
}

// kindOf packs type, monotonicity and temporality, which may be any number of 32 bits.
func kindOf(m pmetric.Metric) uint64 {
	kind := uint64(m.Type())
	switch m.Type() {
	case pmetric.MetricTypeSum:
		kind |= kindTemporality(m.Sum().AggregationTemporality())
		if m.Sum().IsMonotonic() {
			kind |= 1 << 8
		}
	case pmetric.MetricTypeHistogram:
		kind |= kindTemporality(m.Histogram().AggregationTemporality())
	case pmetric.MetricTypeExponentialHistogram:
		kind |= kindTemporality(m.ExponentialHistogram().AggregationTemporality())
	default:
	}
	return kind
}

func kindTemporality(t pmetric.AggregationTemporality) uint64 { return uint64(uint32(t)) << 32 }

// settled keeps clear of 0 and 1, which mean something else in a table.
func settled(fp uint64) uint64 {
	if fp < 2 {
		return fp + 2
	}
	return fp
}

// attributesAt returns the attributes of one point.
func attributesAt(m pmetric.Metric, i int) pcommon.Map {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return m.Gauge().DataPoints().At(i).Attributes()
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints().At(i).Attributes()
	case pmetric.MetricTypeHistogram:
		return m.Histogram().DataPoints().At(i).Attributes()
	case pmetric.MetricTypeExponentialHistogram:
		return m.ExponentialHistogram().DataPoints().At(i).Attributes()
	default:
		return m.Summary().DataPoints().At(i).Attributes()
	}
}
