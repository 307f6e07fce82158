// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package sink

import "google.golang.org/protobuf/encoding/protowire"

// The depths of messages from a resource down to the points.
const (
	atResource = iota
	atScope
	atMetric
	atData
	atPoint
)

// pointNumbers has, for the points in each field of a metric, the fields that are numbers of eight bytes.
var pointNumbers = map[protowire.Number]map[protowire.Number]int{
	metricGauge: {2: startNumber, 3: clockNumber, 4: doubleNumber, 6: integerNumber},
	metricSum:   {2: startNumber, 3: clockNumber, 4: doubleNumber, 6: integerNumber},
	metricHistogram: {
		2: startNumber, 3: clockNumber, 4: integerNumber, 5: doubleNumber, 6: integerNumber, 11: doubleNumber, 12: doubleNumber,
	},
	10:            {2: startNumber, 3: clockNumber, 4: integerNumber, 5: doubleNumber, 7: integerNumber, 12: doubleNumber, 13: doubleNumber},
	metricSummary: {2: startNumber, 3: clockNumber, 4: integerNumber, 5: doubleNumber},
}

// findNumbers records the offsets of numbers in a message, which is at this depth in a resource and in this field of a
// metric.
func findNumbers(message []byte, at, depth int, metric protowire.Number, s *shape) bool {
	for len(message) > 0 {
		id, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return false
		}
		message, at = message[n:], at+n
		n = protowire.ConsumeFieldValue(id, kind, message)
		if n < 0 {
			return false
		}
		ok := true
		switch {
		case kind == protowire.Fixed64Type && depth == atPoint:
			if number := pointNumbers[metric][id]; number != 0 {
				s.places = append(s.places, place{at, number})
			}
		case kind == protowire.BytesType:
			content, _ := protowire.ConsumeBytes(message)
			ok = inside(content, at+n-len(content), depth, id, metric, s)
		}
		if !ok {
			return false
		}
		message, at = message[n:], at+n
	}
	return true
}

// inside records the numbers in a length-delimited field of a message.
func inside(content []byte, at, depth int, id, metric protowire.Number, s *shape) bool {
	switch {
	case depth <= atScope && id == 2:
		return findNumbers(content, at, depth+1, 0, s)
	case depth == atMetric && pointNumbers[id] != nil:
		return findNumbers(content, at, atData, id, s)
	case depth == atData && id == 1:
		return findNumbers(content, at, atPoint, metric, s)
	case depth == atPoint && metric == metricHistogram && id == 6 && len(content)%8 == 0:
		for i := 0; i < len(content); i += 8 {
			s.places = append(s.places, place{at + i, integerNumber})
		}
	case depth == atPoint && metric == metricSummary && id == 6:
		return quantiles(content, at, s)
	}
	return true
}

func quantiles(message []byte, at int, s *shape) bool {
	for len(message) > 0 {
		id, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return false
		}
		size := protowire.ConsumeFieldValue(id, kind, message[n:])
		if size < 0 {
			return false
		}
		if id == 2 && kind == protowire.Fixed64Type {
			s.places = append(s.places, place{at + n, doubleNumber})
		}
		message, at = message[n+size:], at+n+size
	}
	return true
}

// partResource splits off field 1 of a message, if it is the first or the last field.
func partResource(message []byte) (head, text []byte, last bool) {
	for at := 0; at < len(message); {
		id, kind, n := protowire.ConsumeTag(message[at:])
		if n < 0 {
			break
		}
		size := protowire.ConsumeFieldValue(id, kind, message[at+n:])
		if size < 0 {
			break
		}
		size += n
		if id == 1 && kind == protowire.BytesType && n == 1 {
			switch {
			case at == 0:
				return message[:size], message[size:], false
			case at+size == len(message):
				return message[at:], message[:at], true
			}
			break
		}
		at += size
	}
	return nil, message, false
}
