// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// value is what points add up: a number, or counts in buckets. It owns its memory.
//
// Numbers stay integers as long as all are, and as long as they fit. Histograms have their counts in cells; those that come
// together have been brought to the same bounds before. Exponential ones are brought to the lower scale and the wider zero
// bucket here. Values of different shapes do not come together. The zero value is neutral.
type value struct {
	numeric

	shape  shape
	hasSum bool // of at least one of those that were added

	count, zero        uint64
	sum                float64
	cells              []uint64
	scale              int32
	zeroThreshold      float64
	positive, negative buckets
}

// numeric is a number, or what numbers add up to.
type numeric struct {
	integer int64
	float   float64
	carry   float64 // what rounding has left out of float
	isFloat bool
}

// numberOf is the number with some bits.
func numberOf(bits uint64, isFloat bool) numeric {
	if isFloat {
		return numeric{float: math.Float64frombits(bits), isFloat: true}
	}
	return numeric{integer: int64(bits)}
}

// shape tells apart what cannot be added.
type shape uint8

const (
	shapeNumber shape = iota
	shapeHistogram
	shapeExponential
	shapeSummary
)

func shapeOf(m pmetric.Metric) shape {
	switch m.Type() {
	case pmetric.MetricTypeGauge, pmetric.MetricTypeSum:
		return shapeNumber
	case pmetric.MetricTypeHistogram:
		return shapeHistogram
	case pmetric.MetricTypeExponentialHistogram:
		return shapeExponential
	default:
		return shapeSummary
	}
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
		v := value{shape: shapeHistogram, count: dp.Count(), sum: dp.Sum(), hasSum: dp.HasSum()}
		if dp.BucketCounts().Len() > 1 { // a single one says no more than the count
			v.cells = dp.BucketCounts().AsRaw()
		}
		return v
	case pmetric.MetricTypeExponentialHistogram:
		dp := m.ExponentialHistogram().DataPoints().At(i)
		v := value{
			shape: shapeExponential, count: dp.Count(), sum: dp.Sum(), hasSum: dp.HasSum(),
			zero: dp.ZeroCount(), zeroThreshold: dp.ZeroThreshold(), scale: dp.Scale(),
			positive: bucketsOf(dp.Positive()), negative: bucketsOf(dp.Negative()),
		}
		v.fit()
		return v
	default:
		dp := m.Summary().DataPoints().At(i)
		return value{shape: shapeSummary, count: dp.Count(), sum: dp.Sum(), hasSum: true}
	}
}

func numberValue(dp pmetric.NumberDataPoint) value {
	if dp.ValueType() == pmetric.NumberDataPointValueTypeInt {
		return value{numeric: numeric{integer: dp.IntValue()}}
	}
	return value{numeric: numeric{float: dp.DoubleValue(), isFloat: true}}
}

func bucketsOf(from pmetric.ExponentialHistogramDataPointBuckets) buckets {
	return buckets{offset: int64(from.Offset()), counts: from.BucketCounts().AsRaw()}
}

func (v *numeric) number() float64 {
	if v.isFloat {
		return v.float + v.carry
	}
	return float64(v.integer)
}

// nothing says whether it is the zero value, which may be added to any shape.
func (v *value) nothing() bool { return v.shape == shapeNumber && !v.isFloat && v.integer == 0 }

// joins says whether o is of the same shape, with as many cells.
func (v *value) joins(o *value) bool {
	return v.shape == o.shape && (len(v.cells) == len(o.cells) || v.shape == shapeHistogram && v.count == 0 && v.cells == nil)
}

// add adds o, which it may change, and says whether all of it could be: a number that would make the sum infinite cannot,
// nor such a sum of a histogram, whose counts are added then. Of another shape nothing is.
func (v *value) add(o value) (whole bool) {
	if o.nothing() {
		return true
	}
	if v.nothing() {
		v.shape = o.shape
	}
	if !v.joins(&o) {
		return false
	}
	if v.shape == shapeNumber {
		return v.addNumber(&o.numeric)
	}
	v.count += o.count
	whole = !o.hasSum || finite(v.sum+o.sum)
	if o.hasSum && whole {
		v.sum += o.sum
		v.hasSum = true
	}
	if v.cells == nil {
		v.cells = slices.Clone(o.cells)
	} else {
		for i, n := range o.cells {
			v.cells[i] += n
		}
	}
	if v.shape == shapeExponential {
		v.align(&o)
		for v.positive.width(&o.positive) > maxBuckets || v.negative.width(&o.negative) > maxBuckets {
			v.downscale(1)
			o.downscale(1)
		}
		v.level(&o)
		v.zero += o.zero
		v.positive.add(&o.positive)
		v.negative.add(&o.negative)
	}
	return whole
}

func (v *numeric) addNumber(o *numeric) bool {
	if !v.isFloat && !o.isFloat {
		if sum := v.integer + o.integer; (sum > v.integer) == (o.integer > 0) {
			v.integer = sum
			return true
		}
	}
	if !v.isFloat {
		v.float, v.isFloat = float64(v.integer), true
	}
	with := o.number()
	sum := v.float + with
	if !finite(sum) {
		return false
	}
	if math.Abs(v.float) >= math.Abs(with) { // what goes up and down may be gone from one moment to the next
		v.carry += v.float - sum + with
	} else {
		v.carry += with - sum + v.float
	}
	v.float = sum
	return true
}

// opposite is what takes a number away when it is added.
func (v *value) opposite() value {
	if v.isFloat || v.integer == math.MinInt64 {
		return value{numeric: numeric{float: -v.number(), isFloat: true}}
	}
	return value{numeric: numeric{integer: -v.integer}}
}

// minus returns v less o, and whether v is at least as large: all that counts up must not have gone down. If they are of
// different shapes it is v, which has begun anew then.
func (v *value) minus(o value) (value, bool) {
	w := v.clone()
	if o.nothing() && v.shape != shapeNumber {
		return w, true
	}
	if v.shape != o.shape || len(v.cells) != len(o.cells) {
		return w, false
	}
	if v.shape == shapeNumber {
		grown := !w.below(&o.numeric)
		w.subNumber(&o.numeric)
		return w, grown
	}
	if v.shape == shapeExponential {
		w.align(&o)
		w.level(&o)
	}
	grown := w.count >= o.count && w.zero >= o.zero
	w.count -= o.count
	w.zero -= o.zero
	if w.sum -= o.sum; !v.hasSum || !o.hasSum { // known from here on, or not any more
		w.sum = 0
	}
	for i, n := range o.cells {
		grown = grown && w.cells[i] >= n
		w.cells[i] -= n
	}
	grown = w.positive.sub(&o.positive) && grown
	grown = w.negative.sub(&o.negative) && grown
	return w, grown
}

// below says whether a number is less than another one.
func (v *numeric) below(o *numeric) bool {
	if !v.isFloat && !o.isFloat {
		return v.integer < o.integer
	}
	return v.number() < o.number()
}

func (v *numeric) subNumber(o *numeric) {
	if !v.isFloat && !o.isFloat {
		if less := v.integer - o.integer; (less < v.integer) == (o.integer > 0) {
			v.integer = less
			return
		}
	}
	v.float, v.carry, v.isFloat = v.number()-o.number(), 0, true
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

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
	v.widen(v.zeroThreshold)
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

// trim cuts off the empty buckets at both ends, and keeps no memory of them.
func (b *buckets) trim() {
	first, last := 0, len(b.counts)
	for last > 0 && b.counts[last-1] == 0 {
		last--
	}
	for first < last && b.counts[first] == 0 {
		first++
	}
	if last-first < len(b.counts) {
		b.offset, b.counts = b.offset+int64(first), slices.Clone(b.counts[first:last])
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
		if v.hasSum {
			dp.SetSum(v.sum)
		}
		cells := v.cells
		if n := dp.ExplicitBounds().Len(); n > 0 && len(cells) == 0 { // nothing was added yet
			cells = make([]uint64, n+1)
		}
		dp.BucketCounts().FromRaw(cells)
	case pmetric.MetricTypeExponentialHistogram:
		dp := m.ExponentialHistogram().DataPoints().At(i)
		dp.SetCount(v.count)
		if v.hasSum {
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

func (v *numeric) writeNumber(dp pmetric.NumberDataPoint) {
	if v.isFloat {
		dp.SetDoubleValue(v.number())
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
		return when{dp.StartTimestamp(), dp.Timestamp(), ends(dp)}
	case pmetric.MetricTypeSum:
		dp := m.Sum().DataPoints().At(i)
		return when{dp.StartTimestamp(), dp.Timestamp(), ends(dp)}
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

// ends says whether a point is a stale marker: it has the flag, or only the value that Prometheus marks the end with.
func ends(dp pmetric.NumberDataPoint) bool {
	return dp.Flags().NoRecordedValue() ||
		dp.ValueType() == pmetric.NumberDataPointValueTypeDouble && math.Float64bits(dp.DoubleValue()) == staleBits
}

// staleBits are those of the NaN by which Prometheus marks the end of a series.
const staleBits = 0x7ff0000000000002
