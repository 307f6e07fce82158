// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package promwrite

import "math"

// SeriesAt returns the series at the start of a message, if its length takes one or two bytes, and what follows.
func SeriesAt(version Version, msg string) (series, rest string, ok bool) {
	tag := byte(1<<3 | wireBytes)
	if version == V2 {
		tag = 5<<3 | wireBytes
	}
	if len(msg) < 3 || msg[0] != tag {
		return "", "", false
	}
	n, at := int(msg[1]), 2
	if n >= 0x80 {
		if msg[2] >= 0x80 {
			return "", "", false
		}
		n, at = n&0x7f|int(msg[2])<<7, 3
	}
	if len(msg)-at < n {
		return "", "", false
	}
	return msg[at : at+n], msg[at+n:], true
}

// Sizes of samples with their field, when their times take six bytes: those between 1971 and 2109.
const (
	usualSample  = 18
	startedField = 7 // additional size with a start time
	zeroSample   = usualSample - 9
)

// SampleAt decodes the sample at the start of a message, if its times take six bytes each, and returns what follows.
// Some senders leave out a value of zero.
func SampleAt(version Version, msg string) (s Sample, rest string, ok bool) {
	size := usualSample // without a start
	switch {
	case len(msg) >= usualSample && msg[2] == 1<<3|wireFixed64 && msg[11] == 2<<3|wireVarint: // fast path
		s.Value = math.Float64frombits(fixed64(msg[3:]))
	case len(msg) >= zeroSample && msg[2] == 2<<3|wireVarint:
		size = zeroSample
	default:
		return s, "", false
	}
	if s.Timestamp, ok = time6(fixed64(msg[size-8:]) >> 16); !ok || msg[0] != samplesTag {
		return s, "", false
	}
	switch n := int(msg[1]); {
	case n == size-2:
		return s, msg[size:], true
	case n == size-2+startedField && version == V2 && len(msg) >= size+startedField && msg[size] == 3<<3|wireVarint:
		s.StartTimestamp, ok = time6(fixed64(msg[size-1:]) >> 16)
		return s, msg[size+startedField:], ok
	}
	return s, "", false
}

// SampleReader decodes consecutive samples, most of which have the same time as the one before: those of a scrape.
type SampleReader struct {
	Version Version

	encoded uint64 // the last time as encoded, and timeIsKnown
	time    int64
}

// usualHead is the start of a sample with only a value and a time: its field, its length, and the tag of its value.
const usualHead = samplesTag | (usualSample-2)<<8 | (1<<3|wireFixed64)<<16

// timeIsKnown is a bit above the seven bytes of a time with its tag.
const timeIsKnown = 1 << 56

// Next is [SampleAt].
func (r *SampleReader) Next(msg string) (s Sample, rest string, ok bool) {
	if len(msg) < usualSample || fixed64(msg)&0xff_ffff != usualHead {
		return SampleAt(r.Version, msg)
	}
	time := fixed64(msg[usualSample-8:])>>8 | timeIsKnown
	if time == r.encoded { // fast path
		return Sample{Value: math.Float64frombits(fixed64(msg[3:])), Timestamp: r.time}, msg[usualSample:], true
	}
	if s, rest, ok = SampleAt(r.Version, msg); ok {
		r.encoded, r.time = time, s.Timestamp
	}
	return s, rest, ok
}

// time6 decodes a varint of six bytes.
func time6(b uint64) (v int64, ok bool) {
	if b&0x8080_8080_8080 != 0x0080_8080_8080 {
		return 0, false
	}
	return int64(b&0x7f | b>>1&(0x7f<<7) | b>>2&(0x7f<<14) | b>>3&(0x7f<<21) | b>>4&(0x7f<<28) | b>>5&(0x7f<<35)), true
}

// RefsAt returns the packed label references at the start of a 2.0 series, if their length takes one byte, and what
// follows.
func RefsAt(msg string) (refs, rest string, ok bool) {
	if !isShort(msg, labelsTag) {
		return "", "", false
	}
	end := 2 + int(msg[1])
	return msg[2:end], msg[end:], true
}

// MetadataOf decodes the rest of a 2.0 series, after its samples, into a series without metadata.
func (d *Decoder) MetadataOf(msg string, s *Series) bool {
	if msg == "" {
		return true
	}
	return isShort(msg, metadataTag) && 2+int(msg[1]) == len(msg) && d.metadataV2(&field{wire: wireBytes, data: msg[2:]}, s) == nil
}

// RefAt returns the size of the reference at the start of encoded labels, 0 if it is invalid, and its symbol.
func (d *Decoder) RefAt(encoded string) (n int, symbol string) {
	ref, n, err := uvarint(encoded)
	if err != nil || ref >= uint64(len(d.symbols)) {
		return 0, ""
	}
	return n, d.symbols[ref]
}

// RefOf returns the reference at the start of encoded labels, and its size, 0 if it is invalid.
func RefOf(encoded string) (ref uint64, n int) {
	ref, n, err := uvarint(encoded)
	if err != nil {
		return 0, 0
	}
	return ref, n
}

// Says reports whether a reference stands for a text.
func (d *Decoder) Says(ref uint64, text string) bool {
	return ref < uint64(len(d.symbols)) && d.symbols[ref] == text
}

// MetadataRefs returns the references to help and unit in the rest of a 2.0 series, after its samples, if each field is
// there at most once.
func MetadataRefs(msg string) (help, unit uint64, ok bool) {
	if msg == "" {
		return 0, 0, true
	}
	if !isShort(msg, metadataTag) || 2+int(msg[1]) != len(msg) {
		return 0, 0, false
	}
	var f field
	var err error
	seen := uint32(0)
	for rest := msg[2:]; rest != ""; {
		if rest, err = f.next(rest); err != nil || f.wire != wireVarint || f.number > 4 || seen&(1<<f.number) != 0 {
			return 0, 0, false
		}
		seen |= 1 << f.number
		switch f.number {
		case 3:
			help = f.value
		case 4:
			unit = f.value
		}
	}
	return help, unit, true
}
