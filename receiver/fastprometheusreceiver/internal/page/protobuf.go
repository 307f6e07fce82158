// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import "encoding/binary"

// Prometheus' parser of protobuf takes the families of a page one after the other, and calls itself for each that is empty: a
// page of nothing else would use up the stack, which ends the process. It also decodes each metric as a whole before anything
// can be said of it. So a page is given to it in sections of some families, once it is known what their metrics will come to.
const sectionFamilies = 1 << 10

const (
	// decodedBytes are those that a byte of a metric may come to: a count that is one byte is eight, and there is a copy.
	decodedBytes = 24
	// foundBytes are of a metric in the parser's list of those of a family.
	foundBytes = 48
	// metricField is the number of the metrics in a family.
	metricField = 4
)

// section returns the next few families of a page.
func (s *Scrape) section(b []byte) []byte {
	at := 0
	for n := 0; n < sectionFamilies && at < len(b); n++ {
		length, size := binary.Uvarint(b[at:])
		if size <= 0 || length > uint64(len(b)-at-size) {
			return b // the parser has words for it, when it gets there
		}
		begin := at + size
		at = begin + int(length)
		s.spendLongest(toDecode(b[begin:at]))
	}
	return b[:at]
}

// toDecode returns what it may take to decode a family: of its metrics there is one at a time.
func toDecode(family []byte) int64 {
	var found, longest int64
	for b := family; len(b) > 0; {
		tag, n := binary.Uvarint(b)
		if n <= 0 {
			return unreadable(family)
		}
		b = b[n:]
		length := -1 // unless the field has one
		switch tag & 7 {
		case 0:
			_, length = binary.Uvarint(b)
		case 1:
			length = 8
		case 2:
			size, n := binary.Uvarint(b)
			if n <= 0 || size > uint64(len(b)-n) {
				return unreadable(family)
			}
			if length = n + int(size); tag>>3 == metricField {
				found++
				longest = max(longest, int64(size))
			}
		case 5:
			length = 4
		default:
		}
		if length <= 0 || length > len(b) {
			return unreadable(family)
		}
		b = b[length:]
	}
	return foundBytes*found + decodedBytes*longest
}

// unreadable is the worst that the parser may make of a family, if it can read it at all.
func unreadable(family []byte) int64 { return (decodedBytes + foundBytes/2) * int64(len(family)) }
