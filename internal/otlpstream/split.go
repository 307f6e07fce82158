// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstream

import (
	"iter"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// nesting describes where the items of a payload are: each level is a message that repeats the next one in one of these
// fields. Everything else in a message, such as a resource's attributes, belongs to all of the repeated ones.
type nesting [][]protowire.Number

// whole begins a level whose messages are counted, but not separated from each other.
const whole protowire.Number = 0

var nestings = [SignalCount]nesting{
	Traces: {{otlpField, fieldData}, {2}, {2}},
	// A metric has its points within the one field that determines its type.
	Metrics: {{otlpField, fieldData}, {2}, {2}, {5, 7, 9, 10, 11}, {1}},
	Logs:    {{otlpField, fieldData}, {2}, {2}},
	// A profile stays whole: its samples are under one ID. Each part has the dictionary.
	Profiles: {{otlpField, fieldData}, {1}, {2}, {2}, {whole, 2}},
}

// Split divides a payload, in either form, into parts of at most limit bytes, in order, and yields each with its
// number of items: for profiles, of samples. It divides between resources where that is enough, then between scopes, metrics and items. An item
// that is too large alone comes alone. The payload is not changed, and a malformed one ends early.
func Split(signal Signal, payload []byte, limit int) iter.Seq2[[]byte, int] {
	return func(yield func([]byte, int) bool) {
		nestings[signal].split(payload, limit, yield)
	}
}

// tagAndLength is the most that a message costs in addition to its content.
const tagAndLength = 1 + 5

// split returns false if the consumer wants no more, or the message is malformed.
func (n nesting) split(message []byte, limit int, yield func(content []byte, items int) bool) bool {
	if len(n) == 0 || n[0][0] == whole {
		return yield(message, n.count(message)) // an item cannot be divided
	}
	common, ok := n.common(message)
	if !ok {
		return false
	}
	// Only what is common to all parts is copied until a part is complete.
	part, items := append([]byte(nil), common...), 0
	flush := func() bool {
		full := part
		count := items
		part, items = append([]byte(nil), common...), 0
		return len(full) == len(common) || yield(full, count)
	}
	for rest := message; len(rest) > 0; {
		number, content, size := n.next(rest)
		entire := rest[:size]
		rest = rest[size:]
		if content == nil {
			continue
		}
		if len(common)+len(entire) > limit {
			if !flush() {
				return false
			}
			if !n[1:].split(content, limit-len(common)-tagAndLength, func(content []byte, items int) bool {
				alone := protowire.AppendTag(append([]byte(nil), common...), number, protowire.BytesType)
				return yield(protowire.AppendBytes(alone, content), items)
			}) {
				return false
			}
			continue
		}
		if len(part)+len(entire) > limit && !flush() {
			return false
		}
		part, items = append(part, entire...), items+n[1:].count(content)
	}
	return flush()
}

// next reads a field, and returns its content if it is one of those that are divided.
func (n nesting) next(rest []byte) (number protowire.Number, content []byte, size int) {
	number, kind, tag := protowire.ConsumeTag(rest)
	if tag < 0 {
		return 0, nil, tag
	}
	value := protowire.ConsumeFieldValue(number, kind, rest[tag:])
	if value < 0 {
		return 0, nil, value
	}
	if kind == protowire.BytesType && slices.Contains(n[0], number) {
		content, _ = protowire.ConsumeBytes(rest[tag:])
		content = content[:len(content):len(content)]
	}
	return number, content, tag + value
}

// common returns everything in a message except what is divided.
func (n nesting) common(message []byte) (common []byte, ok bool) {
	for rest := message; len(rest) > 0; {
		_, content, size := n.next(rest)
		if size < 0 {
			return nil, false
		}
		if content == nil {
			common = append(common, rest[:size]...)
		}
		rest = rest[size:]
	}
	return common, true
}

// count returns the number of items in a message, up to the first place where it is malformed.
func (n nesting) count(message []byte) (items int) {
	if len(n) == 0 {
		return 1
	}
	for rest := message; len(rest) > 0; {
		_, content, size := n.next(rest)
		if size < 0 {
			break
		}
		if content != nil {
			items += n[1:].count(content)
		}
		rest = rest[size:]
	}
	return items
}
