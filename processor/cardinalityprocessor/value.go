// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// value is what points add up: a number, or counts in buckets. It owns its memory.
//
// Numbers stay integers as long as all are. Histograms have their counts in cells, and only those with the same bounds
// come together. Exponential ones are brought to the lower scale first.
type value struct {
	integer int64
	float   float64
	isFloat bool

	count, zero        uint64
	sum                float64
	noSum              bool
	cells              []uint64
	scale              int32
	zeroThreshold      float64
	positive, negative buckets
}

// buckets are the counts from the bucket at offset on.
type buckets struct {
	offset int64
	counts []uint64
}

// maxBuckets bounds what exponential histograms of different ranges may add up to, for each sign. With more, the scale
// is lowered: 160 is also where the SDKs stop.
const maxBuckets = 160

func valueAt(m pmetric.Metric, i int) value {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return numberValue(m.Gauge().DataPoints().At(i))
	case pmetric.MetricTypeSum:
		return numberValue(m.Sum().DataPoints().At(i))
	case pmetric.MetricTypeHistogram:
		dp := m.Histogram().DataPoints().At(i)
		v := value{count: dp.Count(), sum: dp.Sum(), noSum: !dp.HasSum()}
		if dp.BucketCounts().Len() > 1 { // a single one says no more than the count
			v.cells = dp.BucketCounts().AsRaw()
		}
		return v
	case pmetric.MetricTypeExponentialHistogram:
		dp := m.ExponentialHistogram().DataPoints().At(i)
		v := value{
			count: dp.Count(), sum: dp.Sum(), noSum: !dp.HasSum(),
			zero: dp.ZeroCount(), zeroThreshold: dp.ZeroThreshold(), scale: dp.Scale(),
			positive: bucketsOf(dp.Positive()), negative: bucketsOf(dp.Negative()),
		}
		v.fit()
		return v
	default:
		dp := m.Summary().DataPoints().At(i)
		return value{count: dp.Count(), sum: dp.Sum()}
	}
}

func numberValue(dp pmetric.NumberDataPoint) value {
	if dp.ValueType() == pmetric.NumberDataPointValueTypeInt {
		return value{integer: dp.IntValue()}
	}
	return value{float: dp.DoubleValue(), isFloat: true}
}

func bucketsOf(from pmetric.ExponentialHistogramDataPointBuckets) buckets {
	return buckets{offset: int64(from.Offset()), counts: from.BucketCounts().AsRaw()}
}

func (v *value) number() float64 {
	if v.isFloat {
		return v.float
	}
	return float64(v.integer)
}

// add adds o, which it may change.
func (v *value) add(o value) {
	if v.isFloat || o.isFloat {
		v.float, v.isFloat = v.number()+o.number(), true
	} else {
		v.integer += o.integer
	}
	v.count += o.count
	v.zero += o.zero
	v.sum += o.sum
	v.noSum = v.noSum || o.noSum
	v.zeroThreshold = max(v.zeroThreshold, o.zeroThreshold)
	if v.cells == nil {
		v.cells = slices.Clone(o.cells)
	} else {
		for i, n := range o.cells {
			v.cells[i] += n
		}
	}
	v.align(&o)
	for v.positive.width(&o.positive) > maxBuckets || v.negative.width(&o.negative) > maxBuckets {
		v.downscale(1)
		o.downscale(1)
	}
	v.positive.add(&o.positive)
	v.negative.add(&o.negative)
}

// minus returns v less o, and whether v is at least as large: all that counts up must not have gone down.
func (v *value) minus(o value) (value, bool) {
	w := v.clone()
	w.align(&o)
	grown := w.count >= o.count && w.zero >= o.zero && w.number() >= o.number()
	if w.isFloat || o.isFloat {
		w.float, w.isFloat = w.number()-o.number(), true
	} else {
		w.integer -= o.integer
	}
	w.count -= o.count
	w.zero -= o.zero
	w.sum -= o.sum
	w.noSum = w.noSum || o.noSum
	for i, n := range o.cells {
		grown = grown && w.cells[i] >= n
		w.cells[i] -= n
	}
	grown = w.positive.sub(&o.positive) && grown
	grown = w.negative.sub(&o.negative) && grown
	return w, grown
}

func (v *value) clone() value {
	w := *v
	w.cells = slices.Clone(w.cells)
	w.positive.counts, w.negative.counts = slices.Clone(w.positive.counts), slices.Clone(w.negative.counts)
	return w
}

// align brings two exponential histograms to the lower one of their scales.
func (v *value) align(o *value) {
	if v.empty() {
		v.scale = o.scale
	}
	if o.empty() {
		o.scale = v.scale
	}
	v.downscale(int64(v.scale) - int64(o.scale))
	o.downscale(int64(o.scale) - int64(v.scale))
}

func (v *value) empty() bool { return len(v.positive.counts) == 0 && len(v.negative.counts) == 0 }

// fit trims what is empty and lowers the scale until no more than maxBuckets are left.
func (v *value) fit() {
	v.positive.trim()
	v.negative.trim()
	for len(v.positive.counts) > maxBuckets || len(v.negative.counts) > maxBuckets {
		v.downscale(1)
	}
}

func (v *value) downscale(by int64) {
	if by <= 0 {
		return
	}
	v.scale -= int32(by)
	v.positive.downscale(by)
	v.negative.downscale(by)
}

func (b *buckets) downscale(by int64) {
	if len(b.counts) == 0 {
		return
	}
	by = min(by, 63)
	first, last := b.offset>>by, (b.offset+int64(len(b.counts))-1)>>by
	counts := make([]uint64, last-first+1)
	for i, n := range b.counts {
		counts[(b.offset+int64(i))>>by-first] += n
	}
	b.offset, b.counts = first, counts
}

// trim cuts off the empty buckets at both ends.
func (b *buckets) trim() {
	for len(b.counts) > 0 && b.counts[len(b.counts)-1] == 0 {
		b.counts = b.counts[:len(b.counts)-1]
	}
	for len(b.counts) > 0 && b.counts[0] == 0 {
		b.counts = b.counts[1:]
		b.offset++
	}
}

// width is how many buckets both together span.
func (b *buckets) width(o *buckets) int64 {
	switch {
	case len(o.counts) == 0:
		return int64(len(b.counts))
	case len(b.counts) == 0:
		return int64(len(o.counts))
	}
	return max(b.end(), o.end()) - min(b.offset, o.offset)
}

func (b *buckets) end() int64 { return b.offset + int64(len(b.counts)) }

// add adds buckets of the same scale.
func (b *buckets) add(o *buckets) {
	if len(o.counts) == 0 {
		return
	}
	if len(b.counts) == 0 {
		b.offset, b.counts = o.offset, slices.Clone(o.counts)
		return
	}
	if first, n := min(b.offset, o.offset), b.width(o); n > int64(len(b.counts)) {
		counts := make([]uint64, n)
		copy(counts[b.offset-first:], b.counts)
		b.offset, b.counts = first, counts
	}
	for i, n := range o.counts {
		b.counts[o.offset-b.offset+int64(i)] += n
	}
}

// sub takes buckets of the same scale away, and says whether they were all there.
func (b *buckets) sub(o *buckets) bool {
	for i, n := range o.counts {
		if n == 0 {
			continue
		}
		at := o.offset - b.offset + int64(i)
		if at < 0 || at >= int64(len(b.counts)) || b.counts[at] < n {
			return false
		}
		b.counts[at] -= n
	}
	return true
}

// writeTo sets a point's value.
func (v *value) writeTo(m pmetric.Metric, i int) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		v.writeNumber(m.Gauge().DataPoints().At(i))
	case pmetric.MetricTypeSum:
		v.writeNumber(m.Sum().DataPoints().At(i))
	case pmetric.MetricTypeHistogram:
		dp := m.Histogram().DataPoints().At(i)
		dp.SetCount(v.count)
		if !v.noSum {
			dp.SetSum(v.sum)
		}
		dp.BucketCounts().FromRaw(v.cells)
	case pmetric.MetricTypeExponentialHistogram:
		dp := m.ExponentialHistogram().DataPoints().At(i)
		dp.SetCount(v.count)
		if !v.noSum {
			dp.SetSum(v.sum)
		}
		dp.SetZeroCount(v.zero)
		dp.SetZeroThreshold(v.zeroThreshold)
		dp.SetScale(v.scale)
		for _, side := range []struct {
			to   pmetric.ExponentialHistogramDataPointBuckets
			from buckets
		}{{dp.Positive(), v.positive}, {dp.Negative(), v.negative}} {
			side.to.SetOffset(int32(side.from.offset))
			side.to.BucketCounts().FromRaw(side.from.counts)
		}
	default:
		dp := m.Summary().DataPoints().At(i)
		dp.SetCount(v.count)
		dp.SetSum(v.sum)
	}
}

func (v *value) writeNumber(dp pmetric.NumberDataPoint) {
	if v.isFloat {
		dp.SetDoubleValue(v.float)
	} else {
		dp.SetIntValue(v.integer)
	}
}

// when is what a point says beside its value.
type when struct {
	start, time pcommon.Timestamp
	noValue     bool
}

func whenAt(m pmetric.Metric, i int) when {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		dp := m.Gauge().DataPoints().At(i)
		return when{dp.StartTimestamp(), dp.Timestamp(), dp.Flags().NoRecordedValue()}
	case pmetric.MetricTypeSum:
		dp := m.Sum().DataPoints().At(i)
		return when{dp.StartTimestamp(), dp.Timestamp(), dp.Flags().NoRecordedValue()}
	case pmetric.MetricTypeHistogram:
		dp := m.Histogram().DataPoints().At(i)
		return when{dp.StartTimestamp(), dp.Timestamp(), dp.Flags().NoRecordedValue()}
	case pmetric.MetricTypeExponentialHistogram:
		dp := m.ExponentialHistogram().DataPoints().At(i)
		return when{dp.StartTimestamp(), dp.Timestamp(), dp.Flags().NoRecordedValue()}
	default:
		dp := m.Summary().DataPoints().At(i)
		return when{dp.StartTimestamp(), dp.Timestamp(), dp.Flags().NoRecordedValue()}
	}
}
