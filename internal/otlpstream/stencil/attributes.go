// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stencil

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/xpdata/entity"

	"github.com/godwit-otel/godwit/internal/slab"
)

// Fields of opentelemetry.proto.common.v1.KeyValue and AnyValue.
const (
	keyField   = 1
	valueField = 2

	strField    = 1
	boolField   = 2
	intField    = 3
	doubleField = 4
)

// frame is how many bytes a short attribute has in addition to key and value: tags and lengths of the attribute, its
// value, the string in that, and its key.
const frame = 8

// short is the length below which all lengths of an attribute are one byte.
const short = 0x80 - frame

// attributes writes a list of attributes into a field. It returns false if one of them has a type that is not
// supported.
func (t *tail) attributes(field byte, all []slab.Attribute) bool {
	for i := range slices.Backward(all) {
		if !t.attribute(field, &all[i]) {
			return false
		}
	}
	return true
}

func (t *tail) attribute(field byte, a *slab.Attribute) bool {
	key, ok := a.Key()
	if !ok {
		return false
	}
	value, isString := a.Str()
	if isString && len(key)+len(value) < short && len(key) > 0 {
		putShort(t.take(frame+len(key)+len(value)), field, key, value)
		return true
	}
	begin := t.size()
	t.string(keyField, key)
	inner := t.size()
	if isString {
		t.bytes(strField, value)
	} else {
		switch v, kind := a.Scalar(); kind {
		case slab.Int:
			t.varint(v)
			t.tag(intField, typeVarint)
		case slab.Bool:
			t.varint(v)
			t.tag(boolField, typeVarint)
		case slab.Double:
			t.fixed(doubleField, v)
		default:
			return false
		}
	}
	t.message(valueField, inner)
	t.message(field, begin)
	return true
}

// putShort fills b with an attribute that is a string.
func putShort(b []byte, field byte, key, value string) {
	n := len(value)
	b[0], b[1] = field<<3|typeBytes, byte(len(b)-2)
	b[2], b[3] = valueField<<3|typeBytes, byte(n+2)
	b[4], b[5] = strField<<3|typeBytes, byte(n)
	copy(b[6:], value)
	b[6+n], b[7+n] = keyField<<3|typeBytes, byte(len(key))
	copy(b[8+n:], key)
}

// resource writes a Resource as the field of a ResourceMetrics. It returns false if it contains something that is not
// supported.
func (t *tail) resource(r pcommon.Resource) bool {
	if entity.ResourceEntityRefs(r).Len() > 0 {
		return false
	}
	begin := t.size()
	ok := t.attributes(1, slab.Attributes(r.Attributes()))
	t.count(2, uint64(r.DroppedAttributesCount()))
	t.message(1, begin)
	return ok
}
