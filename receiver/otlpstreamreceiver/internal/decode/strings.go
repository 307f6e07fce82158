// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"encoding/binary"

	"github.com/godwit-otel/godwit/internal/slab"
)

// table remembers strings, each in the single place that its hash selects. Its length is a power of two.
type table []string

// maxInterned is the longest string that is remembered: longer ones hardly come twice.
const maxInterned = 64

// maxHeaders is how many headers are remembered, and maxHeader the longest of them: descriptions are sentences.
const maxHeaders, maxHeader = 2 << 10, 256

// header returns a string that describes a metric.
func (d *Decoder) header(b []byte) string {
	at := d.next
	if at == maxHeaders || len(b) > maxHeader {
		return d.names.get(b)
	}
	d.next++
	if at == len(d.headers) {
		d.headers = append(d.headers, d.names.get(b))
	} else if d.headers[at] != string(b) {
		d.headers[at] = d.names.get(b)
	}
	return d.headers[at]
}

func (t table) get(b []byte) string {
	if len(b) == 0 || len(b) > maxInterned {
		return string(b)
	}
	s := &t[hash(b)&uint32(len(t)-1)]
	if *s != string(b) {
		*s = string(b)
	}
	return *s
}

// texts is a table of attribute values.
type texts []*slab.Text

// get returns what is remembered of a string, or remembers it; nil if it is too long. The string must not be empty.
func (t texts) get(b []byte) *slab.Text {
	if len(b) > maxInterned {
		return nil
	}
	s := &t[hash(b)&uint32(len(t)-1)]
	if *s == nil || (*s).String() != string(b) {
		*s = slab.NewText(string(b))
	}
	return *s
}

// string is get for the string alone, of any length.
func (t texts) string(b []byte) string {
	if len(b) == 0 || len(b) > maxInterned {
		return string(b)
	}
	return t.get(b).String()
}

// hash mixes the length and up to three words of eight bytes. Strings that collide cost time, not correctness.
func hash(b []byte) uint32 {
	const prime = 0x9e3779b97f4a7c15
	h := uint64(len(b)) * prime
	if n := len(b); n >= 8 {
		h ^= binary.LittleEndian.Uint64(b)
		h = h*prime ^ binary.LittleEndian.Uint64(b[n/2-4:])
		h = h*prime ^ binary.LittleEndian.Uint64(b[n-8:])
	} else {
		for _, c := range b {
			h = h*31 + uint64(c)
		}
	}
	h = (h ^ h>>32) * prime // differences in high bits must reach the low ones
	return uint32(h >> 40)
}
