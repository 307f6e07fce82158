// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package wire appends protobuf fields to byte slices that the caller owns. It has what the two Remote Write
// messages have in common, so that each field number is in one place. Zero values are left out, as in proto3,
// except the negative zero of a double, which is a different value, and what AppendNumber writes.
package wire

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

// Tag is a field number and its wire type in the one byte that both take up below field 16.
type Tag byte

// Wire types.
const (
	varint  = 0
	fixed64 = 1
	length  = 2
)

// Tags of the two requests.
const (
	SymbolV2 Tag = 4<<3 | length
	SeriesV2 Tag = 5<<3 | length
	SeriesV1 Tag = 1<<3 | length
	MetaV1   Tag = 3<<3 | length
)

// Tags of the parts of a series.
const (
	LabelV1     Tag = 1<<3 | length
	RefsV2      Tag = 1<<3 | length
	Sample      Tag = 2<<3 | length
	HistogramV2 Tag = 3<<3 | length
	HistogramV1 Tag = 4<<3 | length
	ExemplarV2  Tag = 4<<3 | length
	ExemplarV1  Tag = 3<<3 | length
	MetaV2      Tag = 5<<3 | length
)

// Tags of a series' metadata in 2.0.
const (
	MetaType Tag = 1<<3 | varint
	MetaHelp Tag = 3<<3 | varint
	MetaUnit Tag = 4<<3 | varint
)

// Size is how many bytes AppendUvarint takes for v.
func Size(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// AppendBytes appends a field of bytes, empty or not.
func AppendBytes[T []byte | string](dst []byte, tag Tag, data T) []byte {
	dst = append(dst, byte(tag))
	dst = binary.AppendUvarint(dst, uint64(len(data)))
	return append(dst, data...)
}

// Begin appends the tag of a field of bytes and one byte for its length. The content is appended next; End, given
// where it begins, sets the length.
func Begin(dst []byte, tag Tag) (field []byte, content int) {
	dst = append(dst, byte(tag), 0)
	return dst, len(dst)
}

// End closes what Begin began. Contents of 128 bytes and more move to make room for their length.
func End(dst []byte, content int) []byte {
	n := len(dst) - content
	if n < 0x80 { // fast path: most of what this package writes is short
		dst[content-1] = byte(n)
		return dst
	}
	more := Size(uint64(n)) - 1
	dst = append(dst, "\x00\x00\x00\x00\x00\x00\x00\x00\x00"[:more]...)
	copy(dst[content+more:], dst[content:content+n])
	binary.PutUvarint(dst[content-1:], uint64(n))
	return dst
}

// AppendText appends a string field unless it is empty.
func AppendText(dst []byte, number int, s string) []byte {
	if s == "" {
		return dst
	}
	return AppendBytes(dst, Tag(number<<3|length), s)
}

// AppendVarint appends an integer field of a number below 16 unless it is zero.
func AppendVarint(dst []byte, number int, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return binary.AppendUvarint(append(dst, byte(number<<3|varint)), v)
}

// AppendDouble appends a double field of a number below 16, given by its bits, unless it is positive zero.
func AppendDouble(dst []byte, number int, value uint64) []byte {
	if value == 0 {
		return dst
	}
	return binary.LittleEndian.AppendUint64(append(dst, byte(number<<3|fixed64)), value)
}

// AppendLabel appends one label of 1.0 as a field of its series.
func AppendLabel(dst []byte, name, value string) []byte {
	dst = append(dst, byte(LabelV1))
	n := 1 + Size(uint64(len(name))) + len(name)
	if value != "" {
		n += 1 + Size(uint64(len(value))) + len(value)
	}
	dst = binary.AppendUvarint(dst, uint64(n))
	dst = AppendBytes(dst, 1<<3|length, name)
	return AppendText(dst, 2, value)
}

// AppendMetaV2 appends the metadata of a series of 2.0 as its field.
func AppendMetaV2(dst []byte, typ promwrite.MetricType, help, unit uint32) []byte {
	at := len(dst)
	dst = append(dst, byte(MetaV2), 0)
	dst = AppendVarint(dst, 1, uint64(typ))
	dst = AppendVarint(dst, 3, uint64(help))
	dst = AppendVarint(dst, 4, uint64(unit))
	dst[at+1] = byte(len(dst) - at - 2) // 23 at most
	return dst
}

// AppendMetaV1 appends one entry of the metadata list of a 1.0 request as its field.
func AppendMetaV1(dst []byte, m promwrite.Metadata) []byte {
	n := 0
	for _, s := range []string{m.Family, m.Help, m.Unit} {
		if s != "" {
			n += 1 + Size(uint64(len(s))) + len(s)
		}
	}
	if m.Type != 0 {
		n += 1 + Size(uint64(m.Type))
	}
	dst = binary.AppendUvarint(append(dst, byte(MetaV1)), uint64(n))
	dst = AppendVarint(dst, 1, uint64(m.Type))
	dst = AppendText(dst, 2, m.Family)
	dst = AppendText(dst, 4, m.Help)
	return AppendText(dst, 5, m.Unit)
}

// AppendHistogram appends the fields of a native histogram, without the start timestamp, which only 2.0 has and
// which AppendHistogramStart adds.
func AppendHistogram(dst []byte, h *promwrite.Histogram) []byte {
	if h.Count.IsFloat {
		dst = appendOneofDouble(dst, 2, h.Count.Float)
	} else {
		dst = binary.AppendUvarint(append(dst, 1<<3|varint), h.Count.Int)
	}
	dst = AppendDouble(dst, 3, math.Float64bits(h.Sum))
	dst = AppendVarint(dst, 4, zigzag(int64(h.Schema)))
	dst = AppendDouble(dst, 5, math.Float64bits(h.ZeroThreshold))
	if h.ZeroCount.IsFloat {
		dst = appendOneofDouble(dst, 7, h.ZeroCount.Float)
	} else {
		dst = binary.AppendUvarint(append(dst, 6<<3|varint), h.ZeroCount.Int)
	}
	dst = appendBuckets(dst, 8, h.NegativeSpans, h.NegativeDeltas, h.NegativeCounts)
	dst = appendBuckets(dst, 11, h.PositiveSpans, h.PositiveDeltas, h.PositiveCounts)
	dst = AppendVarint(dst, 14, uint64(h.ResetHint))
	dst = AppendVarint(dst, 15, uint64(h.Timestamp))
	if len(h.CustomValues) > 0 {
		dst = binary.AppendUvarint(dst, 16<<3|length)
		dst = appendDoubles(dst, h.CustomValues)
	}
	return dst
}

// AppendHistogramStart appends the start timestamp of a histogram of 2.0 unless it is unknown.
func AppendHistogramStart(dst []byte, start int64) []byte {
	if start == 0 {
		return dst
	}
	return binary.AppendUvarint(binary.AppendUvarint(dst, 17<<3|varint), uint64(start))
}

// appendBuckets appends one side of a histogram: spans, deltas and counts have consecutive numbers.
func appendBuckets(dst []byte, number int, spans []promwrite.Span, deltas []int64, counts []float64) []byte {
	for _, s := range spans {
		at := len(dst)
		dst = append(dst, byte(number<<3|length), 0)
		dst = AppendVarint(dst, 1, zigzag(int64(s.Offset)))
		dst = AppendVarint(dst, 2, uint64(s.Length))
		dst[at+1] = byte(len(dst) - at - 2) // 12 at most
	}
	if len(deltas) > 0 {
		n := 0
		for _, d := range deltas {
			n += Size(zigzag(d))
		}
		dst = binary.AppendUvarint(append(dst, byte((number+1)<<3|length)), uint64(n))
		for _, d := range deltas {
			dst = binary.AppendUvarint(dst, zigzag(d))
		}
	}
	if len(counts) > 0 {
		dst = appendDoubles(append(dst, byte((number+2)<<3|length)), counts)
	}
	return dst
}

// appendOneofDouble also writes zero: the presence of a oneof field has a meaning.
func appendOneofDouble(dst []byte, number int, v float64) []byte {
	return binary.LittleEndian.AppendUint64(append(dst, byte(number<<3|fixed64)), math.Float64bits(v))
}

func appendDoubles(dst []byte, values []float64) []byte {
	dst = binary.AppendUvarint(dst, uint64(8*len(values)))
	for _, v := range values {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
	}
	return dst
}

func zigzag(v int64) uint64 { return uint64(v<<1) ^ uint64(v>>63) }
