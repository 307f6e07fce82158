// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package amount has the values of points, and adds them up.
package amount

import (
	"math"
	"math/bits"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Value is what points are added up in: a number, or counts in buckets. It owns its memory.
//
// Numbers stay integers as long as all are, and as long as the sum fits. Histograms have their counts in cells; before
// they are added, they are brought to the same bounds. Exponential histograms are brought to the lower scale and the
// wider zero bucket here. Values of different shapes cannot be added. The zero value is neutral.
type Value struct {
	Numeric

	Shape  Shape
	HasSum bool // at least one of the values had a sum

	Count uint64
	Sum   float64
	Cells []uint64

	exponential *exponential // only of exponential histograms; nil means empty
}

// Numeric is a number, or a sum of numbers.
type Numeric struct {
	Integer int64
	Float   float64
	carry   float64 // rounding error of float
	IsFloat bool
}

// NumberOf returns the number with these bits.
func NumberOf(bits uint64, isFloat bool) Numeric {
	if isFloat {
		return Numeric{Float: math.Float64frombits(bits), IsFloat: true}
	}
	return Numeric{Integer: int64(bits)}
}

// Shape is the kind of a value; different shapes cannot be added.
type Shape uint8

// The shapes.
const (
	ShapeNumber Shape = iota
	ShapeHistogram
	shapeExponential
	ShapeSummary
)

// ShapeOf returns the shape of a metric's values.
func ShapeOf(m pmetric.Metric) Shape {
	switch m.Type() {
	case pmetric.MetricTypeGauge, pmetric.MetricTypeSum:
		return ShapeNumber
	case pmetric.MetricTypeHistogram:
		return ShapeHistogram
	case pmetric.MetricTypeExponentialHistogram:
		return shapeExponential
	default:
		return ShapeSummary
	}
}

// MaxBuckets limits the buckets of a sum of exponential histograms, for each sign. With more, the scale is lowered.
// SDKs use the same limit of 160.
const MaxBuckets = 160

// ValueAt returns the value of a point.
func ValueAt(m pmetric.Metric, i int) Value { return ValueIn(nil, m, i) }

// ValueIn is ValueAt with the counts in an arena.
func ValueIn(arena *Arena, m pmetric.Metric, i int) Value {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return numberValue(m.Gauge().DataPoints().At(i))
	case pmetric.MetricTypeSum:
		return numberValue(m.Sum().DataPoints().At(i))
	case pmetric.MetricTypeHistogram:
		dp := m.Histogram().DataPoints().At(i)
		v := Value{Shape: ShapeHistogram, Count: dp.Count(), Sum: dp.Sum(), HasSum: dp.HasSum()}
		if dp.BucketCounts().Len() > 1 { // a single bucket has only the count
			v.Cells = arena.read(dp.BucketCounts())
		}
		return v
	case pmetric.MetricTypeExponentialHistogram:
		dp := m.ExponentialHistogram().DataPoints().At(i)
		v := Value{
			Shape: shapeExponential, Count: dp.Count(), Sum: dp.Sum(), HasSum: dp.HasSum(),
		}
		v.exponential = arena.exponential()
		*v.exponential = exponential{
			zero: dp.ZeroCount(), zeroThreshold: dp.ZeroThreshold(), scale: dp.Scale(),
			positive: bucketsIn(arena, dp.Positive()), negative: bucketsIn(arena, dp.Negative()),
		}
		v.exponential.fit(arena)
		return v
	default:
		dp := m.Summary().DataPoints().At(i)
		return Value{Shape: ShapeSummary, Count: dp.Count(), Sum: dp.Sum(), HasSum: true}
	}
}

func numberValue(dp pmetric.NumberDataPoint) Value {
	if dp.ValueType() == pmetric.NumberDataPointValueTypeInt {
		return Value{Numeric: Numeric{Integer: dp.IntValue()}}
	}
	return Value{Numeric: Numeric{Float: dp.DoubleValue(), IsFloat: true}}
}

// Number is the number.
func (v *Numeric) Number() float64 {
	if v.IsFloat {
		return v.Float + v.carry
	}
	return float64(v.Integer)
}

// Nothing reports whether it is the zero value, which may be added to any shape.
func (v *Value) Nothing() bool { return v.Shape == ShapeNumber && !v.IsFloat && v.Integer == 0 }

// joins reports whether o is of the same shape, with as many cells.
func (v *Value) joins(o *Value) bool {
	return v.Shape == o.Shape && (len(v.Cells) == len(o.Cells) || v.Shape == ShapeHistogram && v.Count == 0 && v.Cells == nil)
}

// Add adds o, which it may change together with its copies, and reports whether it could do so completely. It does not add a
// number that would make the sum infinite; if that is the sum of a histogram, it adds only the counts. It adds nothing if the
// shapes differ, or if counts would overflow.
func (v *Value) Add(o Value) (whole bool) {
	if o.Nothing() {
		return true
	}
	if v.Nothing() {
		v.Shape = o.Shape
	}
	if !v.joins(&o) {
		return false
	}
	if v.Shape == ShapeNumber {
		return v.AddNumber(&o.Numeric)
	}
	if v.Shape == shapeExponential && !v.Holds(&o) || !v.addCells(&o) {
		return false
	}
	whole = !o.HasSum || Finite(v.Sum+o.Sum)
	if o.HasSum && whole {
		v.Sum += o.Sum
		v.HasSum = true
	}
	if v.Shape == shapeExponential && o.exponential != nil {
		if v.exponential == nil {
			v.exponential = new(exponential)
		}
		v.exponential.add(o.exponential)
	}
	return whole
}

// addCells adds the count and those of cells, unless any would exceed 2^63: a single addition is far less.
func (v *Value) addCells(o *Value) bool {
	all := v.Count + o.Count
	if all > math.MaxInt64 {
		return false
	}
	v.Count = all
	if v.Cells == nil {
		v.Cells = append(alone(len(o.Cells)), o.Cells...)
		return true
	}
	for i, n := range o.Cells {
		v.Cells[i] += n
		all |= v.Cells[i]
	}
	if all <= math.MaxInt64 {
		return true
	}
	v.Count -= o.Count
	for i, n := range o.Cells {
		v.Cells[i] -= n
	}
	return false
}

// Holds reports whether another value's counts can be added without an overflow.
func (v *Value) Holds(o *Value) bool {
	a, b := v.buckets(), o.buckets()
	all, full := bits.Add64(a.zero, b.zero, 0)
	for _, counts := range [...][]uint64{v.Cells, o.Cells, a.positive.Counts, b.positive.Counts, a.negative.Counts, b.negative.Counts} {
		for _, n := range counts {
			var carry uint64
			all, carry = bits.Add64(all, n, 0)
			full |= carry
		}
	}
	return full == 0 && all <= math.MaxInt64 && v.Count+o.Count <= math.MaxInt64
}

// AddNumber adds a number, and reports whether it could: not if the sum would be infinite.
func (v *Numeric) AddNumber(o *Numeric) bool {
	if !v.IsFloat && !o.IsFloat {
		if sum := v.Integer + o.Integer; (sum > v.Integer) == (o.Integer > 0) {
			v.Integer = sum
			return true
		}
	}
	if !v.IsFloat {
		v.Float, v.IsFloat = float64(v.Integer), true
	}
	with := o.Number()
	sum := v.Float + with
	if !Finite(sum) {
		return false
	}
	if math.Abs(v.Float) >= math.Abs(with) { // a value that goes up and down may vanish at once
		v.carry += v.Float - sum + with
	} else {
		v.carry += with - sum + v.Float
	}
	v.Float = sum
	return true
}

// Opposite is the value whose addition subtracts v.
func (v *Value) Opposite() Value {
	if v.IsFloat || v.Integer == math.MinInt64 {
		return Value{Numeric: Numeric{Float: -v.Number(), IsFloat: true}}
	}
	return Value{Numeric: Numeric{Integer: -v.Integer}}
}

// Minus returns v less o, and whether v is at least as large: nothing that only counts up may have gone down. If the
// shapes differ, it returns v, which has then restarted.
func (v *Value) Minus(o Value) (Value, bool) { return v.MinusIn(nil, o) }

// MinusIn is Minus with the counts in an arena.
func (v *Value) MinusIn(arena *Arena, o Value) (Value, bool) {
	w := v.cloneIn(arena)
	if o.Nothing() && v.Shape != ShapeNumber {
		return w, true
	}
	if v.Shape != o.Shape || len(v.Cells) != len(o.Cells) {
		return w, false
	}
	if v.Shape == ShapeNumber {
		grown := !w.Below(&o.Numeric)
		w.SubNumber(&o.Numeric)
		return w, grown
	}
	grown := w.Count >= o.Count
	w.Count -= o.Count
	if w.Sum -= o.Sum; !v.HasSum || !o.HasSum { // known from here on, or no longer
		w.Sum = 0
	}
	for i, n := range o.Cells {
		grown = grown && w.Cells[i] >= n
		w.Cells[i] -= n
	}
	if o.exponential != nil {
		if w.exponential == nil {
			w.exponential = new(exponential)
		}
		grown = w.exponential.sub(*o.exponential) && grown
	}
	return w, grown
}

// Below reports whether a number is less than another one.
func (v *Numeric) Below(o *Numeric) bool {
	if !v.IsFloat && !o.IsFloat {
		return v.Integer < o.Integer
	}
	return v.Number() < o.Number()
}

// SubNumber subtracts a number.
func (v *Numeric) SubNumber(o *Numeric) {
	if !v.IsFloat && !o.IsFloat {
		if less := v.Integer - o.Integer; (less < v.Integer) == (o.Integer > 0) {
			v.Integer = less
			return
		}
	}
	v.Float, v.carry, v.IsFloat = v.Number()-o.Number(), 0, true
}

// Finite reports whether f is neither NaN nor infinite.
func Finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// Clone returns a value with memory of its own.
func (v *Value) Clone() Value { return v.cloneIn(nil) }

func (v *Value) cloneIn(arena *Arena) Value {
	w := *v
	w.Cells = arena.clone(w.Cells)
	if v.exponential != nil {
		w.exponential = arena.exponential()
		*w.exponential = *v.exponential
		w.exponential.positive.Counts, w.exponential.negative.Counts = arena.clone(w.exponential.positive.Counts), arena.clone(w.exponential.negative.Counts)
	}
	return w
}

// WriteTo sets a point's value.
func (v *Value) WriteTo(m pmetric.Metric, i int) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		v.writeNumber(m.Gauge().DataPoints().At(i))
	case pmetric.MetricTypeSum:
		v.writeNumber(m.Sum().DataPoints().At(i))
	case pmetric.MetricTypeHistogram:
		dp := m.Histogram().DataPoints().At(i)
		dp.SetCount(v.Count)
		if v.HasSum {
			dp.SetSum(v.Sum)
		}
		cells := v.Cells
		if n := dp.ExplicitBounds().Len(); n > 0 && len(cells) == 0 { // nothing was added yet
			cells = make([]uint64, n+1)
		}
		dp.BucketCounts().FromRaw(cells)
	case pmetric.MetricTypeExponentialHistogram:
		dp := m.ExponentialHistogram().DataPoints().At(i)
		dp.SetCount(v.Count)
		if v.HasSum {
			dp.SetSum(v.Sum)
		}
		from := v.buckets()
		dp.SetZeroCount(from.zero)
		dp.SetZeroThreshold(from.zeroThreshold)
		dp.SetScale(from.scale)
		for _, side := range []struct {
			to   pmetric.ExponentialHistogramDataPointBuckets
			from buckets
		}{{dp.Positive(), from.positive}, {dp.Negative(), from.negative}} {
			side.to.SetOffset(int32(side.from.offset))
			side.to.BucketCounts().FromRaw(side.from.Counts)
		}
	default:
		dp := m.Summary().DataPoints().At(i)
		dp.SetCount(v.Count)
		dp.SetSum(v.Sum)
	}
}

func (v *Numeric) writeNumber(dp pmetric.NumberDataPoint) {
	if v.IsFloat {
		dp.SetDoubleValue(v.Number())
	} else {
		dp.SetIntValue(v.Integer)
	}
}
