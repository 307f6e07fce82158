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
	points     []numberDataPoint
	attributes []keyValue
	strings    []stringValue
	numbers    []uint64
}

// size is how many pieces a slab has: enough that allocations do not matter any more, and few enough that little else is
// kept with a piece that is kept.
const size = 64

// piece cuts one off.
func piece[T any](slab *[]T) *T {
	if len(*slab) == 0 {
		*slab = make([]T, size)
	}
	p := &(*slab)[0]
	*slab = (*slab)[1:]
	return p
}

// Reserve makes room for n attributes in a map that is empty.
func (s *Slabs) Reserve(into pcommon.Map, n int) {
	if !known || n > size/2 {
		into.EnsureCapacity(n)
		return
	}
	if len(s.attributes) < n {
		s.attributes = make([]keyValue, 2*size)
	}
	*attributesOf(into) = s.attributes[:0:n]
	s.attributes = s.attributes[n:]
}

// PutStr puts a string under a key that is not in the map, and PutInt a number.
func (s *Slabs) PutStr(into pcommon.Map, key, value string) {
	if !known {
		into.PutStr(key, value)
		return
	}
	v := piece(&s.strings)
	v.stringValue = value
	put(into, key, box(kinds.str, unsafe.Pointer(v)))
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
	*all = append(*all, piece(&s.points))
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

// box returns a value of eight bytes.
func (s *Slabs) box(kind unsafe.Pointer, bits uint64) any {
	v := piece(&s.numbers)
	*v = bits
	return box(kind, unsafe.Pointer(v))
}
