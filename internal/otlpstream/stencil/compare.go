// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stencil

import (
	"encoding/binary"

	"github.com/godwit-otel/godwit/internal/slab"
)

// number writes eight bytes after a tag.
func (f *filling) number(tag byte, v uint64) bool {
	b := f.text[f.at:]
	if len(b) < 9 || b[0] != tag {
		return false
	}
	binary.LittleEndian.PutUint64(f.out[f.at+1:], v&f.mask)
	f.at += 9
	return true
}

// nonzero writes a number that is absent if it is zero.
func (f *filling) nonzero(tag byte, v uint64) bool { return v == 0 || f.number(tag, v) }

// constant compares eight bytes, which are absent if they are zero.
func (f *filling) constant(tag byte, v uint64) bool {
	if v == 0 {
		return true
	}
	b := f.text[f.at:]
	if len(b) < 9 || b[0] != tag || binary.LittleEndian.Uint64(b[1:9]) != v {
		return false
	}
	f.at += 9
	return true
}

// begin reads the tag and the length of a message, and returns where it ends.
func (f *filling) begin(field byte) (end int, ok bool) {
	b := f.text[f.at:]
	if len(b) < 2 || b[0] != field<<3|typeBytes {
		return 0, false
	}
	if n := b[1]; n < 0x80 {
		f.at += 2
		return f.at + int(n), int(n) <= len(b)-2
	}
	n, size := binary.Uvarint(b[1:])
	if size <= 0 || n > uint64(len(b)-1-size) {
		return 0, false
	}
	f.at += 1 + size
	return f.at + int(n), true
}

// count compares a number that is absent if it is zero.
func (f *filling) count(field byte, v uint64) bool {
	if v == 0 {
		return true
	}
	b := f.text[f.at:]
	if len(b) < 2 || b[0] != field<<3|typeVarint {
		return false
	}
	was, size := binary.Uvarint(b[1:])
	f.at += 1 + size
	return size > 0 && was == v
}

// same compares a string that is absent if it is empty.
func (f *filling) same(field byte, s string) bool {
	if s == "" {
		return true
	}
	if b := f.text[f.at:]; len(s) < 0x80 { // the usual case
		if len(b) < 2+len(s) || b[0] != field<<3|typeBytes || int(b[1]) != len(s) || string(b[2:2+len(s)]) != s {
			return false
		}
		f.at += 2 + len(s)
		return true
	}
	end, ok := f.begin(field)
	if !ok || string(f.text[f.at:end]) != s {
		return false
	}
	f.at = end
	return true
}

// attributes compares a list of attributes.
func (f *filling) attributes(field byte, all []slab.Attribute) bool {
	for i := range all {
		key, ok := all[i].Key()
		value, isString := all[i].Str()
		if !ok || !isString || len(key)+len(value) >= short || key == "" {
			if !f.attribute(field, &all[i]) {
				return false
			}
			continue
		}
		b, n, end := f.text[f.at:], len(value), frame+len(key)+len(value)
		if len(b) < end ||
			binary.LittleEndian.Uint32(b) != uint32(field<<3|typeBytes)|uint32(end-2)<<8|(valueField<<3|typeBytes)<<16|uint32(n+2)<<24 ||
			binary.LittleEndian.Uint16(b[4:]) != uint16(strField<<3|typeBytes|n<<8) ||
			string(b[6:6+n]) != value ||
			b[6+n] != keyField<<3|typeBytes || int(b[7+n]) != len(key) || string(b[8+n:end]) != key {
			return false
		}
		f.at += end
	}
	return true
}

// attribute compares an attribute in its encoded form.
func (f *filling) attribute(field byte, a *slab.Attribute) bool {
	f.aside.reset()
	if !f.aside.attribute(field, a) {
		return false
	}
	b, want := f.text[f.at:], f.aside.written()
	if len(b) < len(want) || string(b[:len(want)]) != string(want) {
		return false
	}
	f.at += len(want)
	return true
}
