// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"hash/maphash"
	"strings"
)

// rawLabels is the encoded labels of a series of Remote Write 1.0, without job and instance, which differ between
// targets.
type rawLabels struct {
	parts [len(holeNames) + 1]string // what comes before, between and after these
	holes [len(holeNames)]hole       // which of them follows a part
	n     int                        // number of holes
}

// hole is a label that is left out.
type hole uint8

const (
	holeJob hole = iota
	holeInstance
)

var holeNames = [...]string{holeJob: labelJob, holeInstance: labelInstance}

// targetFields are the encoded labels job and instance of a target, and their values.
type targetFields struct {
	fields, values [len(holeNames)]string
	n              int // number of those present
}

// cutLabels divides labels that a decoder has left encoded, whose lengths take one byte each. It returns false if job
// or instance is there twice, or in an unusual form.
func cutLabels(encoded string) (r rawLabels, of targetFields, ok bool) {
	begin, at := 0, 0
	for at < len(encoded) {
		end := at + 2 + int(encoded[at+1])
		for h := range hole(len(holeNames)) {
			if !strings.HasPrefix(encoded[at+2:end], holeHeads[h]) {
				continue
			}
			value, usual := holeValue(encoded[at:end], h)
			if !usual || of.fields[h] != "" {
				return r, of, false
			}
			of.fields[h], of.values[h] = encoded[at:end], value
			of.n++
			r.parts[r.n], r.holes[r.n] = encoded[begin:at], h
			r.n++
			begin = end
		}
		at = end
	}
	r.parts[r.n] = encoded[begin:]
	return r, of, true
}

// holeHeads are the encoded beginnings of these labels, with their names.
var holeHeads = func() (all [len(holeNames)]string) {
	for h, name := range holeNames {
		all[h] = string([]byte{1<<3 | 2, byte(len(name))}) + name
	}
	return all
}()

// holeValue is the value of a label, given its field. It returns false if that is another label, or unusual.
func holeValue(field string, h hole) (value string, ok bool) {
	at := 2 + len(holeHeads[h])
	if len(field) < at+2 || !strings.HasPrefix(field[2:], holeHeads[h]) || field[at] != 2<<3|2 || field[at+1] >= 0x80 {
		return "", false
	}
	value = field[at+2:]
	return value, len(value) == int(field[at+1])
}

// hash is a hash of everything but the target.
func (r *rawLabels) hash(seed maphash.Seed) uint64 {
	h := uint64(r.n)
	for i, part := range r.parts[:r.n+1] {
		h = mix(h, maphash.String(seed, part))
		if i < r.n {
			h = mix(h, uint64(r.holes[i]))
		}
	}
	return h
}

// match reports whether encoded labels are these and those of some target. It compares with the target near first, and
// reports whether it is that one.
func (r *rawLabels) match(encoded string, near *targetFields) (of targetFields, same, ok bool) {
	others := near.n
	for i := range r.n {
		if !strings.HasPrefix(encoded, r.parts[i]) {
			return of, false, false
		}
		encoded = encoded[len(r.parts[i]):]
		h := r.holes[i]
		field, value := near.fields[h], near.values[h]
		if field != "" && strings.HasPrefix(encoded, field) { // fast path
			others--
		} else {
			if !isField(encoded) {
				return of, false, false
			}
			field = encoded[:2+int(encoded[1])]
			if value, ok = holeValue(field, h); !ok {
				return of, false, false
			}
			others = len(holeNames) + 1
		}
		of.fields[h], of.values[h] = field, value
		of.n++
		encoded = encoded[len(field):]
	}
	return of, others == 0, encoded == r.parts[r.n]
}

// comes reports whether a series begins with these labels and those of a target, and where they end.
func (r *rawLabels) comes(series string, of *targetFields) (end int, ok bool) {
	if r.n != of.n {
		return 0, false
	}
	for i, part := range r.parts[:r.n+1] {
		if !strings.HasPrefix(series[end:], part) {
			return 0, false
		}
		end += len(part)
		if i == r.n {
			break
		}
		field := of.fields[r.holes[i]]
		if !strings.HasPrefix(series[end:], field) {
			return 0, false
		}
		end += len(field)
	}
	return end, true
}

// isField reports whether encoded labels begin with one whose length takes one byte.
func isField(encoded string) bool {
	return len(encoded) > 1 && encoded[0] == 1<<3|2 && encoded[1] < 0x80 && 2+int(encoded[1]) <= len(encoded)
}
