// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"slices"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// About what an empty message of each kind takes once it is decoded, with the pointer to it.
const (
	resourceWeight    = 160
	scopeWeight       = 136
	metricWeight      = 80
	numberWeight      = 112
	histogramWeight   = 256
	exponentialWeight = 336
	summaryWeight     = 128
	spanWeight        = 320
	logWeight         = 240
	profileWeight     = 240
	sampleWeight      = 128
	entryWeight       = 96
	stringWeight      = 16
	// An attribute, an exemplar, an event or a link.
	partWeight = 96
	// A value in a list, an attribute in a value, or a value at a quantile.
	elementWeight = 48
)

// Weight is the memory that the messages of a payload take once they are decoded, without strings: these hardly grow,
// but an empty point is two bytes on the wire and a hundred in memory. It reads tags and lengths down to the parts of
// points, spans and records.
func Weight(signal otlpstream.Signal, data []byte) (weight int) {
	item := func([]byte) int { return 0 }
	switch signal {
	case otlpstream.Metrics:
		item = metricsWeight
	case otlpstream.Traces:
		item = func(scope []byte) int { return fields(scope, spanWeight, 2, 9, 11, 13) }
	case otlpstream.Logs:
		item = func(scope []byte) int { return fields(scope, logWeight, 2, 5, 6) }
	case otlpstream.Profiles:
		item = profilesWeight
	}
	walk(data, func(tag uint64, resource []byte) {
		if signal == otlpstream.Profiles && tag == 2<<3|length {
			weight += dictionaryWeight(resource)
		}
		if tag != 1<<3|length {
			return
		}
		weight += resourceWeight
		walk(resource, func(tag uint64, body []byte) {
			switch tag {
			case 1<<3 | length:
				weight += attributesWeight(body, 1)
			case 2<<3 | length:
				weight += scopeWeight + scopeAttributesWeight(body) + item(body)
			}
		})
	})
	return weight
}

func scopeAttributesWeight(scope []byte) (weight int) {
	walk(scope, func(tag uint64, body []byte) {
		if tag == 1<<3|length {
			weight += attributesWeight(body, 3)
		}
	})
	return weight
}

func metricsWeight(scope []byte) (weight int) {
	walk(scope, func(tag uint64, metric []byte) {
		if tag != 2<<3|length {
			return
		}
		weight += metricWeight
		walk(metric, func(tag uint64, data []byte) {
			switch tag {
			case 5<<3 | length, 7<<3 | length:
				weight += fields(data, numberWeight, 1, 5, 7)
			case 9<<3 | length:
				weight += fields(data, histogramWeight, 1, 8, 9)
			case 10<<3 | length:
				weight += fields(data, exponentialWeight, 1, 1, 11)
			case 11<<3 | length:
				weight += fields(data, summaryWeight, 1, 7)
			case 12<<3 | length:
				weight += partWeight + partsOf(data)
			}
		})
	})
	return weight
}

func profilesWeight(scope []byte) (weight int) {
	walk(scope, func(tag uint64, profile []byte) {
		if tag == 2<<3|length {
			weight += profileWeight + fields(profile, sampleWeight, 2)
		}
	})
	return weight
}

// dictionaryWeight weighs the tables of a dictionary.
func dictionaryWeight(dictionary []byte) (weight int) {
	walk(dictionary, func(tag uint64, entry []byte) {
		if tag == 5<<3|length { // a string
			weight += stringWeight
			return
		}
		weight += entryWeight
		walk(entry, func(uint64, []byte) { weight += partWeight })
	})
	return weight
}

// fields weighs the items in one field of a message, and their parts. Those in some fields have parts of their own.
func fields(message []byte, each int, number uint64, deep ...uint64) (weight int) {
	walk(message, func(tag uint64, item []byte) {
		if tag != number<<3|length {
			return
		}
		weight += each
		walk(item, func(tag uint64, part []byte) {
			weight += partWeight
			if slices.Contains(deep, tag>>3) {
				weight += partsOf(part)
			}
		})
	})
	return weight
}

// attributesWeight weighs the attributes in one field of a message.
func attributesWeight(message []byte, number uint64) (weight int) {
	walk(message, func(tag uint64, attribute []byte) {
		if tag == number<<3|length {
			weight += partWeight + partsOf(attribute)
		}
	})
	return weight
}

// partsOf weighs the content of an attribute, an exemplar, an event, a link, or the body of a record. It need not know
// which: what one of them has in a field, others lack, or it is short there.
func partsOf(part []byte) (weight int) {
	weight = elementsOf(part) // of a body
	walk(part, func(tag uint64, body []byte) {
		switch tag {
		case 2<<3 | length: // the value of an attribute
			weight += elementsOf(body)
		case 3<<3 | length, 4<<3 | length, 7<<3 | length: // an attribute of an event, a link, an exemplar
			weight += partWeight
			walk(body, func(tag uint64, value []byte) {
				if tag == 2<<3|length {
					weight += elementsOf(value)
				}
			})
		}
	})
	return weight
}

// elementsOf weighs the values in a value, and those in them. None is nested too deeply: see Nested.
func elementsOf(value []byte) (weight int) {
	walk(value, func(tag uint64, list []byte) {
		if tag != 5<<3|length && tag != 6<<3|length {
			return
		}
		walk(list, func(_ uint64, element []byte) {
			weight += elementWeight
			if tag == 5<<3|length {
				weight += elementsOf(element)
				return
			}
			walk(element, func(tag uint64, value []byte) {
				if tag == 2<<3|length {
					weight += elementsOf(value)
				}
			})
		})
	})
	return weight
}

// WeightOfJSON approximates Weight for JSON: whatever has braces counts as a point, a span or a record.
func WeightOfJSON(signal otlpstream.Signal, text []byte) int {
	each := numberWeight
	switch signal {
	case otlpstream.Traces:
		each = spanWeight
	case otlpstream.Logs:
		each = logWeight
	case otlpstream.Metrics, otlpstream.Profiles:
	}
	return each * bytes.Count(text, []byte("{"))
}

// walk calls f with each length-delimited field, as far as the message is well-formed.
func walk(message []byte, f func(tag uint64, body []byte)) {
	for c := (cursor{message: message}); c.more(); {
		tag := c.number()
		switch tag & 7 {
		case varint:
			c.number()
		case fixed64:
			c.fixed64()
		case length:
			if body := c.bytes(); !c.bad {
				f(tag, body)
			}
		case fixed32:
			c.fixed32()
		default:
			return
		}
	}
}

// Nested reports whether messages are nested deeper than limit. It takes every length-delimited field for a message, as
// far as it reads like one; no text reads like one that is nested as deep. Each byte is read once.
func Nested(data []byte, limit int) bool {
	ends := []int{len(data)} // ends of the messages around the current position
	for at := 0; ; {
		end := ends[len(ends)-1]
		if at == end {
			if ends = ends[:len(ends)-1]; len(ends) == 0 {
				return false
			}
			continue
		}
		c := cursor{message: data[:end], at: at}
		switch c.number() & 7 {
		case varint:
			c.number()
		case fixed64:
			c.fixed64()
		case fixed32:
			c.fixed32()
		case length:
			body := c.bytes()
			if c.bad {
				break
			}
			if len(ends) == limit {
				return true
			}
			ends = append(ends, c.at)
			c.at -= len(body)
		default:
			c.fail() // not a message
		}
		at = c.at
	}
}

// Depth is how deep JSON is nested, up to limit.
func Depth(text []byte, limit int) (deepest int) {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > deepest {
				if deepest = depth; deepest >= limit {
					return deepest
				}
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}
