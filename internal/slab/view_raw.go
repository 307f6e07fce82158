// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !purego

//nolint:gosec // look makes sure of what is assumed here
package slab

import (
	"math"
	"unsafe"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Readable reports whether pdata's memory can be read directly. If not, nothing else in this file may be used.
func Readable() bool { return known }

// Attribute is an attribute of a map, in pdata's memory. It is read-only.
type Attribute keyValue

// Number is a point with one number, in pdata's memory. It is read-only.
type Number numberDataPoint

// Metric is a metric in pdata's memory. It is read-only.
type Metric metric

// Metrics returns those of a slice, in their order.
func Metrics(of pmetric.MetricSlice) []*Metric {
	return *(*[]*Metric)(unsafe.Pointer((*metricSlice)(unsafe.Pointer(&of)).orig))
}

// Texts returns the texts of a metric.
func (m *Metric) Texts() (name, unit, description string) { return m.name, m.unit, m.description }

// Metadata returns the metadata of a metric, in its order.
func (m *Metric) Metadata() []Attribute { return *(*[]Attribute)(unsafe.Pointer(&m.metadata)) }

// Sums returns whether a sum is monotonic, and its temporality as a number. For a gauge both are zero.
func (m *Metric) Sums() (monotonic bool, temporality int32) {
	if v := (*boxed)(unsafe.Pointer(&m.data)); v.kind == kinds.sum && v.data != nil {
		s := (*metricSum)(v.data).sum
		return s.isMonotonic, s.aggregationTemporality
	}
	return false, 0
}

// Numbers returns the points of a gauge or of a sum. It returns false for other types.
func (m *Metric) Numbers() (points []*Number, ok bool) {
	var all *[]*numberDataPoint
	switch v := (*boxed)(unsafe.Pointer(&m.data)); {
	case v.data == nil:
		return nil, false
	case v.kind == kinds.gauge:
		all = &(*metricGauge)(v.data).gauge.dataPoints
	case v.kind == kinds.sum:
		all = &(*metricSum)(v.data).sum.dataPoints
	default:
		return nil, false
	}
	return *(*[]*Number)(unsafe.Pointer(all)), true
}

// Attributes returns those of a map, in their order.
func Attributes(of pcommon.Map) []Attribute {
	return *(*[]Attribute)(unsafe.Pointer(attributesOf(of)))
}

// Numbers returns the points of a slice, in their order.
func Numbers(of pmetric.NumberDataPointSlice) []*Number {
	return *(*[]*Number)(unsafe.Pointer((*numberDataPointSlice)(unsafe.Pointer(&of)).orig))
}

// Key is the attribute's name. It returns false if the name is an index of a table elsewhere.
func (a *Attribute) Key() (key string, ok bool) { return a.key, a.keyStrindex == 0 }

// Str is the value if it is a string.
func (a *Attribute) Str() (value string, ok bool) {
	v := (*boxed)(unsafe.Pointer(&a.value))
	if v.kind != kinds.str || v.data == nil {
		return "", false
	}
	return (*stringValue)(v.data).stringValue, true
}

// A Spot is the address of a string value. Two values with the same spot are one string, as long as somebody uses it.
// The zero value stands for values that are not strings.
type Spot struct{ at *stringValue }

// Spot is the address of the value.
func (a *Attribute) Spot() Spot {
	v := (*boxed)(unsafe.Pointer(&a.value))
	if v.kind != kinds.str {
		return Spot{}
	}
	return Spot{(*stringValue)(v.data)}
}

// Str is the string at a spot, which must not be the zero value.
func (p Spot) Str() string { return p.at.stringValue }

// Number identifies most spots: for look-ups that also compare.
func (p Spot) Number() uint64 { return uint64(uintptr(unsafe.Pointer(p.at))) }

// Same reports whether two strings are equal, quickly if they are one string in memory.
func Same(a, b string) bool {
	return len(a) == len(b) && (unsafe.StringData(a) == unsafe.StringData(b) || a == b)
}

// Alike reports whether lists of attributes are surely the same: strings, numbers and bools under the same names, in the
// same order. Where both are the same memory, it does not read texts.
func Alike(a, b []Attribute) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := &a[i], &b[i]
		if x.keyStrindex != y.keyStrindex || !Same(x.key, y.key) {
			return false
		}
		if at, other := x.Spot(), y.Spot(); at.at != nil && other.at != nil {
			if at != other && !Same(at.Str(), other.Str()) {
				return false
			}
			continue
		}
		bits, kind := x.Scalar()
		if other, same := y.Scalar(); kind == NoScalar || kind != same || bits != other {
			return false
		}
	}
	return true
}

// Scalar is the value if it is a number or a bool.
func (a *Attribute) Scalar() (bits uint64, kind Scalar) {
	v := (*boxed)(unsafe.Pointer(&a.value))
	switch {
	case v.data == nil:
		return 0, NoScalar
	case v.kind == kinds.integer:
		return uint64((*intValue)(v.data).intValue), Int
	case v.kind == kinds.double:
		return math.Float64bits((*doubleValue)(v.data).doubleValue), Double
	case v.kind == kinds.boolean && (*boolValue)(v.data).boolValue:
		return 1, Bool
	case v.kind == kinds.boolean:
		return 0, Bool
	}
	return 0, NoScalar
}

// Value is the point's number: NoScalar with true if it has none, NoScalar with false if it cannot be read.
func (p *Number) Value() (bits uint64, kind Scalar, ok bool) {
	v := (*boxed)(unsafe.Pointer(&p.value))
	switch {
	case v.kind == nil:
		return 0, NoScalar, true
	case v.data == nil:
		return 0, NoScalar, false
	case v.kind == kinds.asDouble:
		return *(*uint64)(v.data), Double, true
	case v.kind == kinds.asInt:
		return *(*uint64)(v.data), Int, true
	}
	return 0, NoScalar, false
}

// Double is the point's number if it is a float. Only the type of other numbers is read.
func (p *Number) Double() (bits uint64, ok bool) {
	v := (*boxed)(unsafe.Pointer(&p.value))
	if v.kind != kinds.asDouble || v.data == nil {
		return 0, false
	}
	return *(*uint64)(v.data), true
}

// Refill sets the float of a point in its memory, and its times. Only the maker of the point may call it.
func (p *Number) Refill(value float64, at, start uint64) {
	if v := (*boxed)(unsafe.Pointer(&p.value)); v.kind == kinds.asDouble {
		(*asDouble)(v.data).asDouble = value
	}
	p.timeUnixNano, p.startTimeUnixNano = at, start
}

// Float returns the bits, time and start of a point with a float, no flags and no exemplars. It returns false for other
// points.
func (p *Number) Float() (bits, at, start uint64, ok bool) {
	v := (*boxed)(unsafe.Pointer(&p.value))
	if v.kind != kinds.asDouble || v.data == nil || p.flags != 0 || len(p.exemplars) > 0 {
		return 0, 0, 0, false
	}
	return *(*uint64)(v.data), p.timeUnixNano, p.startTimeUnixNano, true
}

// IsPlain reports whether the point has a float, no flags and no exemplars. IsEmpty reports whether it has nothing,
// like a removed one.
func (p *Number) IsPlain() bool {
	return (*boxed)(unsafe.Pointer(&p.value)).kind == kinds.asDouble && p.flags == 0 && len(p.exemplars) == 0
}

// IsEmpty is described at IsPlain.
func (p *Number) IsEmpty() bool { return p.value == nil && len(p.attributes) == 0 }

// Times returns the time of the point and its start, in nanoseconds.
func (p *Number) Times() (at, start uint64) { return p.timeUnixNano, p.startTimeUnixNano }

// Flags returns the flags of the point.
func (p *Number) Flags() uint32 { return p.flags }

// Exemplars returns the number of the point's exemplars.
func (p *Number) Exemplars() int { return len(p.exemplars) }

// Attributes returns the attributes of the point, in their order.
func (p *Number) Attributes() []Attribute {
	return *(*[]Attribute)(unsafe.Pointer(&p.attributes))
}
