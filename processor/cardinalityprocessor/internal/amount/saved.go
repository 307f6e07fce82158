// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package amount

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/store"
)

// ValueFields is the least size of a saved value.
const ValueFields = 12

// Append appends a value for ReadValue.
func (v *Value) Append(dst []byte) []byte {
	dst = binary.AppendVarint(store.AppendFlags(dst, v.IsFloat, !v.HasSum), v.Integer)
	in := v.buckets()
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, v.Count), in.zero)
	for _, f := range []float64{v.Float + v.carry, v.Sum, in.zeroThreshold} {
		dst = binary.AppendUvarint(dst, bits.ReverseBytes64(math.Float64bits(f))) // short for a small integer
	}
	dst = binary.AppendVarint(dst, int64(in.scale))
	dst = binary.AppendVarint(binary.AppendVarint(dst, in.positive.offset), in.negative.offset)
	for _, counts := range [][]uint64{v.Cells, in.positive.Counts, in.negative.Counts} {
		dst = binary.AppendUvarint(dst, uint64(len(counts)))
		for _, n := range counts {
			dst = binary.AppendUvarint(dst, n)
		}
	}
	return dst
}

// ReadValue reads what Append wrote.
func ReadValue(r *store.Reader) Value {
	var v Value
	var in exponential
	flags := r.Byte()
	v.IsFloat, v.HasSum = flags&1 != 0, flags&2 == 0
	v.Integer, v.Count, in.zero = r.Varint(), r.Uvarint(), r.Uvarint()
	for _, f := range []*float64{&v.Float, &v.Sum, &in.zeroThreshold} {
		*f = math.Float64frombits(bits.ReverseBytes64(r.Uvarint()))
	}
	scale := r.Varint()
	in.positive.offset, in.negative.offset = r.Varint(), r.Varint()
	in.scale = int32(scale)
	v.Cells, in.positive.Counts, in.negative.Counts = r.Counts(), r.Counts(), r.Counts()
	for _, b := range []buckets{in.positive, in.negative} {
		if b.offset != int64(int32(b.offset)) || len(b.Counts) > MaxBuckets || scale != int64(in.scale) {
			r.Fail()
		}
	}
	if !in.empty() || in.zero > 0 || in.zeroThreshold > 0 || in.scale != 0 {
		v.exponential = &in
	}
	return v
}

// AppendBounds appends bounds for ReadBounds.
func AppendBounds(dst []byte, b *Bounds) []byte {
	var upper []float64
	if b != nil {
		upper = b.Upper
	}
	dst = binary.AppendUvarint(dst, uint64(len(upper)))
	for _, at := range upper {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(at))
	}
	return dst
}

// ReadBounds reads what AppendBounds wrote.
func ReadBounds(r *store.Reader) *Bounds {
	n := r.Count(8)
	if n == 0 {
		return nil
	}
	b := &Bounds{Upper: make([]float64, n)}
	for i := range b.Upper {
		b.Upper[i] = math.Float64frombits(r.Word())
	}
	return b
}

// FitsBounds reports whether a value has the right number of cells for its bounds.
func FitsBounds(v *Value, b *Bounds) bool {
	return len(v.Cells) == 0 || b != nil && len(v.Cells) == len(b.Upper)+1
}
