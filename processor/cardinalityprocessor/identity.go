// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"math"
	"math/bits"

	"github.com/zeebo/xxh3"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// A series is known by a fingerprint of 64 bits over everything that tells it from others: resource, scope, metric
// name, unit, type, temporality, monotonicity and the attributes of the point, of any value type and in any order.
//
// Two of n series share a fingerprint with a probability of about n²/2⁶⁵: 3e-8 for a million series. They are then taken
// for one, so that the second passes without a place of its own. The hash is not keyed: whoever chooses attribute values
// could make series collide on purpose, which gains him nothing but these free places.

// maxDepth bounds the recursion into nested values. Values are not told apart by what lies deeper.
const maxDepth = 16

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

// mix folds two words into one such that every bit depends on all bits. It does not commute.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^mixA, bits.RotateLeft64(b, 32)^mixB)
	return hi ^ lo
}

// hashAttributes does not depend on the order of the attributes. It adds, and does not xor, so that an attribute that
// is there twice does not vanish.
func hashAttributes(attributes pcommon.Map, depth int) uint64 {
	var sum uint64
	for key, value := range attributes.All() {
		sum += hashAttribute(xxh3.HashString(key), value, depth)
	}
	return mix(sum, uint64(attributes.Len()))
}

// hashAttribute is what one attribute adds. The key comes hashed.
func hashAttribute(key uint64, value pcommon.Value, depth int) uint64 {
	return mix(key, hashValue(value, depth))
}

func hashValue(value pcommon.Value, depth int) uint64 {
	if s := value.Str(); s != "" { // fast path: nearly all are
		return xxh3.HashString(s) ^ tagString
	}
	switch value.Type() {
	case pcommon.ValueTypeStr:
		return xxh3.HashString(value.Str()) ^ tagString
	case pcommon.ValueTypeInt:
		return mix(uint64(value.Int()), tagInt)
	case pcommon.ValueTypeDouble:
		return mix(math.Float64bits(value.Double()), tagDouble)
	case pcommon.ValueTypeBool:
		if value.Bool() {
			return mix(1, tagBool)
		}
		return mix(0, tagBool)
	default:
		return hashComposite(value, depth)
	}
}

func hashComposite(value pcommon.Value, depth int) uint64 {
	switch value.Type() {
	case pcommon.ValueTypeBytes:
		return hashBytes(value.Bytes())
	case pcommon.ValueTypeSlice:
		elements := value.Slice()
		sum := mix(uint64(elements.Len()), tagSlice)
		for i := 0; i < elements.Len() && depth < maxDepth; i++ {
			sum = mix(sum, hashValue(elements.At(i), depth+1))
		}
		return sum
	case pcommon.ValueTypeMap:
		if depth == maxDepth {
			return tagMap
		}
		return mix(hashAttributes(value.Map(), depth+1), tagMap)
	default:
		return tagEmpty
	}
}

// hashBytes goes by words, because the bytes cannot be borrowed as a whole.
func hashBytes(b pcommon.ByteSlice) uint64 {
	sum := mix(uint64(b.Len()), tagBytes)
	var word uint64
	for i := range b.Len() {
		word = word<<8 | uint64(b.At(i))
		if i%8 == 7 {
			sum, word = mix(sum, word), 0
		}
	}
	return mix(sum, word)
}

func hashScope(resource uint64, scope pcommon.InstrumentationScope) uint64 {
	name := mix(xxh3.HashString(scope.Name()), xxh3.HashString(scope.Version()))
	return mix(mix(resource, name), hashAttributes(scope.Attributes(), 0))
}

func hashMetric(scope uint64, m pmetric.Metric) uint64 {
	return mix(mix(scope, xxh3.HashString(m.Name())), mix(xxh3.HashString(m.Unit()), kindOf(m)))
}

// kindOf packs type, temporality and monotonicity.
func kindOf(m pmetric.Metric) uint64 {
	kind := uint64(m.Type())
	switch m.Type() {
	case pmetric.MetricTypeSum:
		kind |= uint64(m.Sum().AggregationTemporality()) << 8
		if m.Sum().IsMonotonic() {
			kind |= 1 << 16
		}
	case pmetric.MetricTypeHistogram:
		kind |= uint64(m.Histogram().AggregationTemporality()) << 8
	case pmetric.MetricTypeExponentialHistogram:
		kind |= uint64(m.ExponentialHistogram().AggregationTemporality()) << 8
	default:
	}
	return kind
}

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
