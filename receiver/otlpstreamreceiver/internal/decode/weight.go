// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import "github.com/godwit-otel/godwit/internal/otlpstream"

// What an empty message of each kind takes of memory once it is decoded, with the pointer to it, about.
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
	// An attribute, an exemplar, an event, a link, or a value at a quantile.
	partWeight = 96
)

// Weight is what the messages of a payload take of memory once they are decoded, strings aside: these are not much larger
// then, but an empty point is two bytes on the wire and a hundred here. It looks at tags and lengths down to what points,
// spans and records are made of.
func Weight(signal otlpstream.Signal, data []byte) (weight int) {
	item := func([]byte) int { return 0 }
	switch signal {
	case otlpstream.Metrics:
		item = metricsWeight
	case otlpstream.Traces:
		item = func(scope []byte) int { return fields(scope, spanWeight, 2) }
	case otlpstream.Logs:
		item = func(scope []byte) int { return fields(scope, logWeight, 2) }
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
		walk(resource, func(tag uint64, scope []byte) {
			if tag == 2<<3|length {
				weight += scopeWeight + item(scope)
			}
		})
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
				weight += fields(data, numberWeight, 1)
			case 9<<3 | length:
				weight += fields(data, histogramWeight, 1)
			case 10<<3 | length:
				weight += fields(data, exponentialWeight, 1)
			case 11<<3 | length:
				weight += fields(data, summaryWeight, 1)
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

// fields weighs the items in one field of a message, and their parts.
func fields(message []byte, each int, number uint64) (weight int) {
	walk(message, func(tag uint64, item []byte) {
		if tag == number<<3|length {
			weight += each
			walk(item, func(uint64, []byte) { weight += partWeight })
		}
	})
	return weight
}

// walk calls f with each field that has a length, as far as the message is well-formed.
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

// Nested tells whether messages are nested deeper than limit. It takes whatever has a length for a message, as far as it
// reads like one; no text reads like one that is as deep as that. Each byte is looked at once.
func Nested(data []byte, limit int) bool {
	ends := []int{len(data)} // of the messages that at is in
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
			c.fail() // no message after all
		}
		at = c.at
	}
}

// Depth is how deep JSON is nested, as far as limit.
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
