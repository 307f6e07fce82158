// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package delta

import "google.golang.org/protobuf/encoding/protowire"

// class is the kind of number in a hole.
type class uint8

const (
	clock   class = iota + 1 // when a point was taken
	start                    // when its counting began
	integer                  // a count, or a value that is an integer
	double                   // a value that is a float
)

// hole is the place of a number of eight bytes in a message.
type hole struct {
	at    uint32
	class class
}

// message says where the numbers of a kind of message are: in fields of its own, in fields that list them without tags between,
// or in the messages that a field has. Field numbers above those of a table are text.
type message struct {
	fixed, packed [numbers]class
	inner         [numbers]*message
}

// numbers is one more than the largest field number that matters.
const numbers = 14

// The messages are those of opentelemetry/proto/metrics/v1/metrics.proto. What is not listed is text: names, attributes, bounds
// of buckets, exemplars.
var (
	numberPoint    = &message{fixed: [numbers]class{2: start, 3: clock, 4: double, 6: integer}}
	histogramPoint = &message{
		fixed:  [numbers]class{2: start, 3: clock, 4: integer, 5: double, 6: integer, 11: double, 12: double},
		packed: [numbers]class{6: integer},
	}
	exponentialPoint = &message{fixed: [numbers]class{2: start, 3: clock, 4: integer, 5: double, 7: integer, 12: double, 13: double}}
	quantile         = &message{fixed: [numbers]class{2: double}}
	summaryPoint     = &message{
		fixed: [numbers]class{2: start, 3: clock, 4: integer, 5: double},
		inner: [numbers]*message{6: quantile},
	}
	resource = repeating(2, repeating(2, &message{inner: [numbers]*message{
		5: repeating(1, numberPoint), 7: repeating(1, numberPoint), 9: repeating(1, histogramPoint),
		10: repeating(1, exponentialPoint), 11: repeating(1, summaryPoint),
	}}))
)

func repeating(field int, inner *message) *message {
	m := &message{}
	m.inner[field] = inner
	return m
}

// split separates the resource itself, the head, from its text and numbers. The head comes first, or last, as pdata
// writes it; otherwise there is no head.
func split(content []byte) (head, text []byte, last bool) {
	const tag = 1<<3 | byte(protowire.BytesType)
	for rest := content; len(rest) > 0; {
		number, kind, n := protowire.ConsumeTag(rest)
		if n < 0 {
			break
		}
		size := protowire.ConsumeFieldValue(number, kind, rest[n:])
		if size < 0 {
			break
		}
		size += n
		if rest[0] == tag {
			switch len(rest) {
			case len(content):
				return content[:size], content[size:], false
			case size:
				at := len(content) - size
				return content[at:], content[:at], true
			}
			break
		}
		rest = rest[size:]
	}
	return nil, content, false
}

// holesOf appends the places of the numbers in the text, in order. It returns false if the text is malformed, or too
// large for places to be represented.
func holesOf(dst []hole, text []byte) ([]hole, bool) {
	const most = 1 << 31
	if len(text) > most {
		return dst, false
	}
	return resource.holes(dst, text, 0)
}

func (m *message) holes(dst []hole, b []byte, at int) ([]hole, bool) {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return dst, false
		}
		b, at = b[n:], at+n
		n = protowire.ConsumeFieldValue(number, kind, b)
		if n < 0 {
			return dst, false
		}
		if number < numbers {
			switch kind {
			case protowire.Fixed64Type:
				if c := m.fixed[number]; c != 0 {
					dst = append(dst, hole{uint32(at), c})
				}
			case protowire.BytesType:
				ok := true
				content, _ := protowire.ConsumeBytes(b[:n])
				begin := at + n - len(content)
				switch c, inner := m.packed[number], m.inner[number]; {
				case c != 0 && len(content)%8 == 0:
					for i := 0; i < len(content); i += 8 {
						dst = append(dst, hole{uint32(begin + i), c})
					}
				case inner != nil:
					dst, ok = inner.holes(dst, content, begin)
				}
				if !ok {
					return dst, false
				}
			}
		}
		b, at = b[n:], at+n
	}
	return dst, true
}
