// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/binary"
	"errors"

	dto "github.com/prometheus/prometheus/prompb/io/prometheus/client"
)

// Prometheus' protobuf parser takes the families of a page one after the other, and calls itself for each empty family:
// a page of nothing else would exhaust the stack, which ends the process. It also decodes each metric as a whole before
// its size can be checked. So the parser is given sections of a few families, after an estimate of what their metrics
// will take.
const sectionFamilies = 1 << 10

const (
	// decodedBytes is the most that one byte of a metric decodes to: a count of one byte becomes eight, and there is a
	// copy.
	decodedBytes = 24
	// foundBytes is what each metric takes in the parser's list of a family's metrics.
	foundBytes = 48
	// typeField and metricField are field numbers of a family.
	typeField   = 3
	metricField = 4
	metricTag   = metricField<<3 | 2
)

// section returns the next few families of a page. isAmended reports whether the parser must be given amended copies of
// them.
func (s *Scrape) section(b []byte) (section []byte, isAmended bool, err error) {
	at := 0
	for n := 0; n < sectionFamilies && at < len(b); n++ {
		length, size := binary.Uvarint(b[at:])
		if size <= 0 || length > uint64(len(b)-at-size) {
			return b, false, nil // the parser reports the error when it gets there
		}
		begin := at + size
		at = begin + int(length)
		f := readFamily(b[begin:at])
		s.spendLongest(f.cost)
		if !f.isReadable && length > largeMetric {
			return nil, false, errUnreadable
		}
		isAmended = isAmended || f.isAmended()
	}
	return b[:at], isAmended, nil
}

// A familyReading is what is known about a family before it is decoded, one metric at a time.
type familyReading struct {
	cost       int64 // memory that it may take
	longest    int   // metric, in bytes
	isUntyped  bool
	isReadable bool
}

// isAmended reports whether the parser must be given an amended copy of the family.
func (f familyReading) isAmended() bool {
	return f.isReadable && (f.longest > largeMetric || f.isUntyped)
}

func readFamily(family []byte) (f familyReading) {
	found := int64(0)
	for b := family; len(b) > 0; {
		number, value, length := field(b)
		if length <= 0 {
			// The most that the parser may decode it to, if it can read it at all.
			return familyReading{cost: (decodedBytes + foundBytes/2) * int64(len(family))}
		}
		switch number {
		case metricField:
			found++
			f.longest = max(f.longest, len(value))
		case typeField:
			f.isUntyped = string(b[length-1:length]) == "\x03"
		default:
		}
		b = b[length:]
	}
	f.cost, f.isReadable = foundBytes*found+decodedBytes*int64(f.longest), true
	return f
}

// field reads the field at the start of b, and returns its number, its value if it is length-delimited, and its total
// length: 0 if it cannot be read.
func field(b []byte) (number uint64, value []byte, length int) {
	tag, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil, 0
	}
	rest := b[n:]
	size := 0
	switch tag & 7 {
	case 0:
		_, size = binary.Uvarint(rest)
	case 1:
		size = 8
	case 2:
		bytes, n := binary.Uvarint(rest)
		if n <= 0 || bytes > uint64(len(rest)-n) {
			return 0, nil, 0
		}
		size = n + int(bytes)
		value = rest[n:size]
	case 5:
		size = 4
	default:
	}
	if size <= 0 || size > len(rest) {
		return 0, nil, 0
	}
	return tag >> 3, value, n + size
}

var errUnreadable = errors.New("cannot read page: a family has a field that is cut off or of an unknown kind")

// largeMetric is the size in bytes from which on empty buckets are removed from a metric before Prometheus' parser sees
// it. The parser removes them one by one, moving all buckets after each: that takes minutes for a hostile histogram of
// a megabyte.
const largeMetric = 1 << 12

// untypedZero is the field of a metric that is untyped and zero. It is put in front of each such metric: zero may be
// left out, and Prometheus' decoder then uses the value of the previous metric.
const untypedZero = "\x2a\x09\x09\x00\x00\x00\x00\x00\x00\x00\x00"

// amendSection returns families as the parser must see them.
func amendSection(section []byte) []byte {
	out := make([]byte, 0, len(section))
	for b := section; len(b) > 0; {
		length, size := binary.Uvarint(b)
		if size <= 0 || length > uint64(len(b)-size) {
			return append(out, b...)
		}
		end := size + int(length)
		if f := readFamily(b[size:end]); f.isAmended() {
			family := amendFamily(b[size:end], f.isUntyped)
			out = append(binary.AppendUvarint(out, uint64(len(family))), family...)
		} else {
			out = append(out, b[:end]...)
		}
		b = b[end:]
	}
	return out
}

func amendFamily(family []byte, isUntyped bool) []byte {
	out := make([]byte, 0, len(family))
	for b := family; len(b) > 0; {
		number, value, length := field(b)
		switch {
		case number != metricField || value == nil:
			out = append(out, b[:length]...)
		case isUntyped:
			out = binary.AppendUvarint(append(out, metricTag), uint64(len(untypedZero)+len(value)))
			out = append(append(out, untypedZero...), value...)
		case len(value) > largeMetric:
			value = compactMetric(value)
			fallthrough
		default:
			out = append(binary.AppendUvarint(append(out, metricTag), uint64(len(value))), value...)
		}
		b = b[length:]
	}
	return out
}

// compactMetric returns a metric without the empty buckets of its native histogram. A metric that cannot be read is
// left to the parser.
func compactMetric(b []byte) []byte {
	var m dto.Metric
	if m.Unmarshal(b) != nil || m.Histogram == nil {
		return b
	}
	h := m.Histogram
	if isFloat := h.SampleCountFloat > 0 || h.ZeroCountFloat > 0; isFloat { // the parser's own rule; it ignores the other kind of bucket
		h.PositiveDelta, h.NegativeDelta = nil, nil
		h.PositiveSpan, h.PositiveCount = compactFloats(h.PositiveSpan, h.PositiveCount)
		h.NegativeSpan, h.NegativeCount = compactFloats(h.NegativeSpan, h.NegativeCount)
	} else {
		h.PositiveCount, h.NegativeCount = nil, nil
		h.PositiveSpan, h.PositiveDelta = compactDeltas(h.PositiveSpan, h.PositiveDelta)
		h.NegativeSpan, h.NegativeDelta = compactDeltas(h.NegativeSpan, h.NegativeDelta)
	}
	out, err := m.Marshal()
	if err != nil {
		return b
	}
	return out
}

// compactFloats removes empty buckets.
func compactFloats(spans []dto.BucketSpan, counts []float64) ([]dto.BucketSpan, []float64) {
	kept := 0
	compact, ok := compactSpans(spans, len(counts), func(i int) bool {
		if counts[i] == 0 {
			return false
		}
		counts[kept] = counts[i]
		kept++
		return true
	})
	if !ok {
		return spans, counts
	}
	return compact, counts[:kept]
}

// compactDeltas removes empty buckets from counts that are each given as the difference from the one before.
func compactDeltas(spans []dto.BucketSpan, deltas []int64) ([]dto.BucketSpan, []int64) {
	kept, count, last := 0, int64(0), int64(0)
	compact, ok := compactSpans(spans, len(deltas), func(i int) bool {
		if count += deltas[i]; count == 0 {
			return false
		}
		deltas[kept], last = count-last, count
		kept++
		return true
	})
	if !ok {
		return spans, deltas
	}
	return compact, deltas[:kept]
}

// compactSpans returns the spans of the buckets to keep. ok is false, and keep was not called, when the number of
// buckets differs from that of the spans, which is an error.
func compactSpans(spans []dto.BucketSpan, buckets int, keep func(i int) bool) (compact []dto.BucketSpan, ok bool) {
	sum := uint64(0)
	for _, s := range spans {
		sum += uint64(s.Length)
	}
	if sum != uint64(buckets) {
		return nil, false
	}
	at, end := int64(0), int64(0) // the position of the bucket, and the one after the last that was kept
	i := 0
	for _, s := range spans {
		at += int64(s.Offset)
		for range s.Length {
			if keep(i) {
				if gap := int32(at - end); len(compact) == 0 || gap != 0 {
					compact = append(compact, dto.BucketSpan{Offset: gap})
				}
				compact[len(compact)-1].Length++
				end = at + 1
			}
			i++
			at++
		}
	}
	return compact, true
}
