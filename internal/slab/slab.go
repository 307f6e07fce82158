// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !purego

//nolint:gosec // look makes sure of what is assumed here
package slab

import (
	"iter"
	"math"
	"unsafe"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Slabs are used by one at a time. What is left of them serves the next message.
type Slabs struct {
	points     stock[numberDataPoint]
	attributes stock[keyValue]
	strings    stock[stringValue]
	numbers    stock[uint64]
	gauges     stock[gaugePiece]
	sums       stock[sumPiece]
	lists      stock[*numberDataPoint]
	exemplars  stock[exemplar]
	histograms histogramStocks
	summaries  summaryStocks
}

// Kept returns slabs of which all can be used again.
func Kept() *Slabs {
	s := new(Slabs)
	s.points.keeps, s.attributes.keeps, s.strings.keeps, s.numbers.keeps = true, true, true, true
	s.gauges.keeps, s.sums.keeps, s.lists.keeps, s.exemplars.keeps = true, true, true, true
	s.histograms.keep()
	s.summaries.keep()
	return s
}

// Again says that nobody has anything any more that was made of kept slabs: what comes next is made of the same memory.
func (s *Slabs) Again() {
	s.points.again()
	s.attributes.again()
	s.strings.again()
	s.numbers.again()
	s.gauges.again()
	s.sums.again()
	s.lists.again()
	s.exemplars.again()
	s.histograms.again()
	s.summaries.again()
}

// size is how many pieces a slab has: enough that allocations do not matter any more, and few enough that little else is
// kept with a piece that is kept.
const size = 64

// stock is what pieces of one kind are cut off.
type stock[T any] struct {
	left  []T
	keeps bool
	given [][]T // slabs, if they are kept
	spare [][]T // and those of which nobody has a piece
}

// piece cuts one off.
func (of *stock[T]) piece() *T {
	if len(of.left) == 0 {
		of.refill(size)
	}
	p := &of.left[0]
	of.left = of.left[1:]
	return p
}

// list cuts off room for n. That for many is made by itself.
func (of *stock[T]) list(n int) []T {
	if n > size {
		return make([]T, 0, n)
	}
	if len(of.left) < n {
		of.refill(2 * size)
	}
	l := of.left[:0:n]
	of.left = of.left[n:]
	return l
}

// refill begins the next slab, which are all of one size.
func (of *stock[T]) refill(size int) {
	if last := len(of.spare) - 1; last >= 0 {
		of.left, of.spare = of.spare[last], of.spare[:last]
	} else {
		of.left = make([]T, size)
	}
	if of.keeps {
		of.given = append(of.given, of.left)
	}
}

func (of *stock[T]) again() {
	for _, slab := range of.given {
		clear(slab) // so that what it refers to can be freed
	}
	of.spare = append(of.spare, of.given...)
	clear(of.given)
	of.given, of.left = of.given[:0], nil
}

// Reserve makes room for n attributes in a map that is empty.
func (s *Slabs) Reserve(into pcommon.Map, n int) {
	if !known || n > size/2 {
		into.EnsureCapacity(n)
		return
	}
	*attributesOf(into) = s.attributes.list(n)
}

// PutStr puts a string under a key that is not in the map, and PutInt a number.
func (s *Slabs) PutStr(into pcommon.Map, key, value string) {
	if !known {
		into.PutStr(key, value)
		return
	}
	v := s.strings.piece()
	v.stringValue = value
	put(into, key, box(kinds.str, unsafe.Pointer(v)))
}

// Text is a string that is the value of many attributes, which share the memory of it that pdata has for each. Nobody changes that: pdata gives an
// attribute whose value is set another one. It must not be used where the Collector frees data piece by piece (handback.Pooled).
type Text stringValue

// NewText returns one.
func NewText(s string) *Text { return &Text{stringValue: s} }

// String is what it says.
func (t *Text) String() string { return t.stringValue }

// PutText is PutStr of a string that others have, too.
func (s *Slabs) PutText(into pcommon.Map, key string, value *Text) {
	if !known {
		into.PutStr(key, value.stringValue)
		return
	}
	put(into, key, box(kinds.str, unsafe.Pointer(value)))
}

// PutAll puts many strings under keys that differ into a map that is empty, in their order where that can be had: pcommon.Map
// compares each key that it is given one by one with all it has.
func (s *Slabs) PutAll(into pcommon.Map, n int, all iter.Seq2[string, string]) {
	if !known {
		putRaw(into, n, all)
		return
	}
	into.EnsureCapacity(n)
	for key, value := range all {
		s.PutStr(into, key, value)
	}
}

// PutInt is described at PutStr.
func (s *Slabs) PutInt(into pcommon.Map, key string, value int64) {
	if !known {
		into.PutInt(key, value)
		return
	}
	put(into, key, s.box(kinds.integer, uint64(value)))
}

func put(into pcommon.Map, key string, value any) {
	all := attributesOf(into)
	*all = append(*all, keyValue{value: anyValue{value}, key: key})
}

// AppendNumber appends an empty point.
func (s *Slabs) AppendNumber(to pmetric.NumberDataPointSlice) pmetric.NumberDataPoint {
	if !known {
		return to.AppendEmpty()
	}
	all := (*numberDataPointSlice)(unsafe.Pointer(&to)).orig
	*all = append(*all, s.points.piece())
	return to.At(to.Len() - 1)
}

// SetInt and SetDouble set the value of a point.
func (s *Slabs) SetInt(of pmetric.NumberDataPoint, value int64) {
	if !known {
		of.SetIntValue(value)
		return
	}
	pointOf(of).value = s.box(kinds.asInt, uint64(value))
}

// SetDouble is described at SetInt.
func (s *Slabs) SetDouble(of pmetric.NumberDataPoint, value float64) {
	if !known {
		of.SetDoubleValue(value)
		return
	}
	pointOf(of).value = s.box(kinds.asDouble, math.Float64bits(value))
}

// ReserveExemplars makes room for n exemplars in a slice that is empty.
func (s *Slabs) ReserveExemplars(into pmetric.ExemplarSlice, n int) {
	if !known {
		into.EnsureCapacity(n)
		return
	}
	*(*exemplarSlice)(unsafe.Pointer(&into)).orig = s.exemplars.list(n)
}

// SetExemplar sets the value of an exemplar.
func (s *Slabs) SetExemplar(of pmetric.Exemplar, value float64) {
	if !known {
		of.SetDoubleValue(value)
		return
	}
	(*exemplarPoint)(unsafe.Pointer(&of)).orig.value = s.box(kinds.exemplar, math.Float64bits(value))
}

// ChangeStr sets a value, in the memory of the string that it is.
func ChangeStr(of pcommon.Value, value string) {
	if known {
		if v := (*boxed)(unsafe.Pointer(&valueOf(of).value)); v.kind == kinds.str {
			(*stringValue)(v.data).stringValue = value
			return
		}
	}
	of.SetStr(value)
}

// ChangeDouble sets the value of a point, in the memory of the float that it is.
func ChangeDouble(of pmetric.NumberDataPoint, value float64) {
	if known {
		if v := (*boxed)(unsafe.Pointer(&pointOf(of).value)); v.kind == kinds.asDouble {
			(*asDouble)(v.data).asDouble = value
			return
		}
	}
	of.SetDoubleValue(value)
}

// ChangeInt sets the value of a point, in the memory of the integer that it is.
func ChangeInt(of pmetric.NumberDataPoint, value int64) {
	if known {
		if v := (*boxed)(unsafe.Pointer(&pointOf(of).value)); v.kind == kinds.asInt {
			(*asInt)(v.data).asInt = value
			return
		}
	}
	of.SetIntValue(value)
}

// box returns a value of eight bytes.
func (s *Slabs) box(kind unsafe.Pointer, bits uint64) any {
	v := s.numbers.piece()
	*v = bits
	return box(kind, unsafe.Pointer(v))
}
