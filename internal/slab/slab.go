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

// Slabs are used by one goroutine at a time. What is left of them is used for the next message.
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

// Kept returns slabs whose memory can all be used again.
func Kept() *Slabs {
	s := new(Slabs)
	s.points.keeps, s.attributes.keeps, s.strings.keeps, s.numbers.keeps = true, true, true, true
	s.gauges.keeps, s.sums.keeps, s.lists.keeps, s.exemplars.keeps = true, true, true, true
	s.histograms.keep()
	s.summaries.keep()
	return s
}

// Again records that nobody uses anything made of kept slabs any more: their memory is used again.
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

// size is the number of pieces in a slab: enough to make allocations cheap, and few enough that a piece which is kept
// does not hold much other memory.
const size = 64

// stock is a supply of pieces of one type.
type stock[T any] struct {
	left  []T
	keeps bool
	given [][]T // slabs, if they are kept
	spare [][]T // those of which no piece is in use
}

// piece takes a piece.
func (of *stock[T]) piece() *T {
	if len(of.left) == 0 {
		of.refill(size)
	}
	p := &of.left[0]
	of.left = of.left[1:]
	return p
}

// list takes a list for n elements. A long one is allocated separately.
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

// refill starts the next slab. All slabs have the same size.
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
		clear(slab) // so that the garbage collector can free what it refers to
	}
	of.spare = append(of.spare, of.given...)
	clear(of.given)
	of.given, of.left = of.given[:0], nil
}

// Reserve reserves capacity for n attributes in an empty map.
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

// Text is a string that is the value of many attributes, which share pdata's memory for it. Nobody modifies that:
// setting an attribute's value gives it new memory. It must not be used if the Collector frees data piece by piece
// (handback.Pooled).
type Text stringValue

// NewText returns one.
func NewText(s string) *Text { return &Text{stringValue: s} }

// String returns the string.
func (t *Text) String() string { return t.stringValue }

// PutText is PutStr for a shared string.
func (s *Slabs) PutText(into pcommon.Map, key string, value *Text) {
	if !known {
		into.PutStr(key, value.stringValue)
		return
	}
	put(into, key, box(kinds.str, unsafe.Pointer(value)))
}

// PutAll puts many strings under different keys into an empty map, in their order if possible: pcommon.Map compares
// each key that is put singly with all before it.
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

// ReserveExemplars reserves capacity for n exemplars in an empty slice.
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

// ChangeStr sets a string value in its existing memory.
func ChangeStr(of pcommon.Value, value string) {
	if known {
		if v := (*boxed)(unsafe.Pointer(&valueOf(of).value)); v.kind == kinds.str {
			(*stringValue)(v.data).stringValue = value
			return
		}
	}
	of.SetStr(value)
}

// ChangeDouble sets the float of a point in its existing memory.
func ChangeDouble(of pmetric.NumberDataPoint, value float64) {
	if known {
		if v := (*boxed)(unsafe.Pointer(&pointOf(of).value)); v.kind == kinds.asDouble {
			(*asDouble)(v.data).asDouble = value
			return
		}
	}
	of.SetDoubleValue(value)
}

// ChangeInt sets the integer of a point in its existing memory.
func ChangeInt(of pmetric.NumberDataPoint, value int64) {
	if known {
		if v := (*boxed)(unsafe.Pointer(&pointOf(of).value)); v.kind == kinds.asInt {
			(*asInt)(v.data).asInt = value
			return
		}
	}
	of.SetIntValue(value)
}

// box makes an interface of a value of eight bytes.
func (s *Slabs) box(kind unsafe.Pointer, bits uint64) any {
	v := s.numbers.piece()
	*v = bits
	return box(kind, unsafe.Pointer(v))
}
