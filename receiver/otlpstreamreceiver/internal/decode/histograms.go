// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

func (d *Decoder) histogram(message []byte, into pmetric.Histogram) bool {
	c := cursor{message: message}
	ok := true
	for ok && c.more() {
		switch c.tag() {
		case 1<<3 | length:
			message := c.bytes()
			ok = d.fit(message, histogramWeight) && d.histogramPoint(message, into.DataPoints().AppendEmpty())
		case 2<<3 | varint:
			into.SetAggregationTemporality(pmetric.AggregationTemporality(c.number()))
		default:
			return false
		}
	}
	return ok && !c.bad
}

func (d *Decoder) histogramPoint(message []byte, into pmetric.HistogramDataPoint) bool {
	c := cursor{message: message}
	ok := true
	for ok && c.more() {
		switch c.tag() {
		case 2<<3 | fixed64:
			into.SetStartTimestamp(c.time())
		case 3<<3 | fixed64:
			into.SetTimestamp(c.time())
		case 4<<3 | fixed64:
			into.SetCount(c.fixed64())
		case 5<<3 | fixed64:
			into.SetSum(c.double())
		case 6<<3 | length:
			ok = fixed(c.bytes(), into.BucketCounts())
		case 7<<3 | length:
			ok = doubles(c.bytes(), into.ExplicitBounds())
		case 8<<3 | length:
			message := c.bytes()
			ok = d.fit(message, partWeight) && d.exemplar(message, into.Exemplars().AppendEmpty())
		case 9<<3 | length:
			ok = d.itemAttribute(c.bytes(), into.Attributes())
		case 10<<3 | varint:
			into.SetFlags(pmetric.DataPointFlags(c.number()))
		case 11<<3 | fixed64:
			into.SetMin(c.double())
		case 12<<3 | fixed64:
			into.SetMax(c.double())
		default:
			return false
		}
	}
	return ok && !c.bad
}

func (d *Decoder) exponential(message []byte, into pmetric.ExponentialHistogram) bool {
	c := cursor{message: message}
	ok := true
	for ok && c.more() {
		switch c.tag() {
		case 1<<3 | length:
			message := c.bytes()
			ok = d.fit(message, exponentialWeight) && d.exponentialPoint(message, into.DataPoints().AppendEmpty())
		case 2<<3 | varint:
			into.SetAggregationTemporality(pmetric.AggregationTemporality(c.number()))
		default:
			return false
		}
	}
	return ok && !c.bad
}

func (d *Decoder) exponentialPoint(message []byte, into pmetric.ExponentialHistogramDataPoint) bool {
	c := cursor{message: message}
	ok := true
	for ok && c.more() {
		switch c.tag() {
		case 1<<3 | length:
			ok = d.itemAttribute(c.bytes(), into.Attributes())
		case 2<<3 | fixed64:
			into.SetStartTimestamp(c.time())
		case 3<<3 | fixed64:
			into.SetTimestamp(c.time())
		case 4<<3 | fixed64:
			into.SetCount(c.fixed64())
		case 5<<3 | fixed64:
			into.SetSum(c.double())
		case 6<<3 | varint:
			into.SetScale(c.signed())
		case 7<<3 | fixed64:
			into.SetZeroCount(c.fixed64())
		case 8<<3 | length:
			ok = buckets(c.bytes(), into.Positive())
		case 9<<3 | length:
			ok = buckets(c.bytes(), into.Negative())
		case 10<<3 | varint:
			into.SetFlags(pmetric.DataPointFlags(c.number()))
		case 11<<3 | length:
			message := c.bytes()
			ok = d.fit(message, partWeight) && d.exemplar(message, into.Exemplars().AppendEmpty())
		case 12<<3 | fixed64:
			into.SetMin(c.double())
		case 13<<3 | fixed64:
			into.SetMax(c.double())
		case 14<<3 | fixed64:
			into.SetZeroThreshold(c.double())
		default:
			return false
		}
	}
	return ok && !c.bad
}

func buckets(message []byte, into pmetric.ExponentialHistogramDataPointBuckets) bool {
	c := cursor{message: message}
	for c.more() {
		switch c.tag() {
		case 1<<3 | varint:
			into.SetOffset(c.signed())
		case 2<<3 | length:
			packed := cursor{message: c.bytes()}
			for packed.more() {
				into.BucketCounts().Append(packed.number())
			}
			if packed.bad {
				return false
			}
		default:
			return false
		}
	}
	return !c.bad
}

func (d *Decoder) summary(message []byte, into pmetric.Summary) bool {
	return each(message, func(message []byte) bool {
		return d.fit(message, summaryWeight) && d.summaryPoint(message, into.DataPoints().AppendEmpty())
	})
}

func (d *Decoder) summaryPoint(message []byte, into pmetric.SummaryDataPoint) bool {
	c := cursor{message: message}
	ok := true
	for ok && c.more() {
		switch c.tag() {
		case 2<<3 | fixed64:
			into.SetStartTimestamp(c.time())
		case 3<<3 | fixed64:
			into.SetTimestamp(c.time())
		case 4<<3 | fixed64:
			into.SetCount(c.fixed64())
		case 5<<3 | fixed64:
			into.SetSum(c.double())
		case 6<<3 | length:
			message := c.bytes()
			ok = d.fit(message, elementWeight) && quantile(message, into.QuantileValues().AppendEmpty())
		case 7<<3 | length:
			ok = d.itemAttribute(c.bytes(), into.Attributes())
		case 8<<3 | varint:
			into.SetFlags(pmetric.DataPointFlags(c.number()))
		default:
			return false
		}
	}
	return ok && !c.bad
}

func quantile(message []byte, into pmetric.SummaryDataPointValueAtQuantile) bool {
	c := cursor{message: message}
	for c.more() {
		switch c.tag() {
		case 1<<3 | fixed64:
			into.SetQuantile(c.double())
		case 2<<3 | fixed64:
			into.SetValue(c.double())
		default:
			return false
		}
	}
	return !c.bad
}

// fixed reads packed numbers of eight bytes.
func fixed(packed []byte, into pcommon.UInt64Slice) bool {
	c := cursor{message: packed}
	into.EnsureCapacity(into.Len() + len(packed)/8)
	for c.more() {
		into.Append(c.fixed64())
	}
	return !c.bad
}

func doubles(packed []byte, into pcommon.Float64Slice) bool {
	c := cursor{message: packed}
	into.EnsureCapacity(into.Len() + len(packed)/8)
	for c.more() {
		into.Append(c.double())
	}
	return !c.bad
}
