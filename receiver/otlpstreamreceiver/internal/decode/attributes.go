// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/internal/slab"
)

// pair is an attribute: its value only if that is a short string, else nil.
type pair struct {
	key   string
	value *slab.Text
}

// maxAttributes is the most attributes of a map that is decoded here: each insertion compares with all others.
const maxAttributes = 128

// keyValue splits a KeyValue.
func keyValue(message []byte) (key, value []byte, ok bool) {
	if len(message) > 1 && message[0] == 1<<3|length && message[1] < 0x80 {
		at := 2 + int(message[1])
		if value, ok = alone(message[min(at, len(message)):], 2<<3|length); ok { // fast path: a key and a value, both short
			return message[2:at], value, true
		}
	}
	return longKeyValue(message)
}

// alone returns the content of a field that is all of a message, if it is short.
func alone(message []byte, tag byte) ([]byte, bool) {
	if len(message) > 1 && message[0] == tag && message[1] < 0x80 && int(message[1]) == len(message)-2 {
		return message[2:], true
	}
	return nil, false
}

func longKeyValue(message []byte) (key, value []byte, ok bool) {
	c := cursor{message: message}
	found := false
	for c.more() {
		switch c.tag() {
		case 1<<3 | length:
			key = c.bytes()
		case 2<<3 | length:
			if found {
				return nil, nil, false
			}
			value, found = c.bytes(), true
		default:
			return nil, nil, false
		}
	}
	return key, value, !c.bad
}

// attribute decodes a KeyValue into a map. It fails if the key is there already.
func (d *Decoder) attribute(message []byte, into pcommon.Map) bool {
	key, value, ok := keyValue(message)
	p := pair{key: d.names.get(key)}
	if _, twice := into.Get(p.key); twice {
		return false
	}
	return ok && into.Len() < maxAttributes && d.put(&p, value, into)
}

// itemAttribute is attribute for items, of which there are many.
func (d *Decoder) itemAttribute(message []byte, into pcommon.Map) bool {
	key, value, ok := keyValue(message)
	at := into.Len()
	if !ok || at >= maxAttributes {
		return false
	}
	if at == 0 {
		d.slabs.Reserve(into, max(1, d.attributes))
	}
	d.attributes = at + 1
	if at < len(d.before) && d.before[at].key == string(key) { // fast path: same key as in the last item
		return d.put(&d.before[at], value, into)
	}
	p := pair{key: d.names.get(key)}
	if _, twice := into.Get(p.key); twice {
		return false
	}
	d.before = d.before[:min(at, len(d.before))]
	if len(d.before) < at || len(p.key) > maxInterned {
		return d.put(&p, value, into)
	}
	d.before = append(d.before, p)
	return d.put(&d.before[at], value, into)
}

// put puts an AnyValue under the key of a pair, which is not in the map. Strings and numbers come first, since most
// values are.
func (d *Decoder) put(p *pair, message []byte, into pcommon.Map) bool {
	if text, ok := alone(message, 1<<3|length); ok { // fast path
		d.text(p, text, into)
		return true
	}
	if len(message) == 0 || message[0] != 3<<3|varint {
		return d.value(message, into.PutEmpty(p.key), 0)
	}
	c := cursor{message: message, at: 1}
	d.slabs.PutInt(into, p.key, int64(c.number()))
	return !c.bad && !c.more()
}

// text puts a string under the key of a pair, whose value it may be.
func (d *Decoder) text(p *pair, b []byte, into pcommon.Map) {
	if p.value == nil || p.value.String() != string(b) {
		p.value = nil
		if len(b) > 0 {
			p.value = d.values.get(b)
		}
	}
	switch {
	case p.value == nil:
		d.slabs.PutStr(into, p.key, string(b))
	case d.pooled:
		d.slabs.PutStr(into, p.key, p.value.String())
	default:
		d.slabs.PutText(into, p.key, p.value)
	}
}

// maxDepth is how deep values may be nested here.
const maxDepth = 8

// value reads an AnyValue.
func (d *Decoder) value(message []byte, into pcommon.Value, depth int) bool {
	if len(message) == 0 {
		return true
	}
	c := cursor{message: message}
	ok := true
	switch c.tag() {
	case 1<<3 | length:
		into.SetStr(d.values.string(c.bytes()))
	case 2<<3 | varint:
		into.SetBool(c.number() != 0)
	case 3<<3 | varint:
		into.SetInt(int64(c.number()))
	case 4<<3 | fixed64:
		into.SetDouble(c.double())
	case 5<<3 | length:
		list := into.SetEmptySlice()
		ok = depth < maxDepth && each(c.bytes(), func(message []byte) bool {
			return d.fit(message, elementWeight) && d.value(message, list.AppendEmpty(), depth+1)
		})
	case 6<<3 | length:
		m := into.SetEmptyMap()
		ok = depth < maxDepth && each(c.bytes(), func(message []byte) bool {
			return d.fit(message, elementWeight) && d.nested(message, m, depth+1)
		})
	case 7<<3 | length:
		into.SetEmptyBytes().FromRaw(c.bytes())
	default:
		return false
	}
	return ok && !c.bad && !c.more()
}

// nested is attribute for a map within a value.
func (d *Decoder) nested(message []byte, into pcommon.Map, depth int) bool {
	key, value, ok := keyValue(message)
	before := into.Len()
	return ok && before < maxAttributes && d.value(value, into.PutEmpty(d.names.get(key)), depth) && into.Len() > before
}

// each decodes a message with only field 1.
func each(message []byte, f func([]byte) bool) bool {
	c := cursor{message: message}
	for c.more() {
		if c.tag() != 1<<3|length {
			return false
		}
		if b := c.bytes(); c.bad || !f(b) {
			return false
		}
	}
	return !c.bad
}
