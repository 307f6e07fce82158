// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"hash/maphash"
	"strings"
)

// rawLabels is the labels of a series of Remote Write 1.0 as they came, cut where job and instance are, which are others for each target.
type rawLabels struct {
	parts [len(holeNames) + 1]string // what is before, between and behind them
	holes [len(holeNames)]hole       // which follows a part
	n     int                        // holes
}

// hole is a label that is left out.
type hole uint8

const (
	holeJob hole = iota
	holeInstance
)

var holeNames = [...]string{holeJob: labelJob, holeInstance: labelInstance}

// targetFields are the labels job and instance of a target as they came, and their values.
type targetFields struct {
	fields, values [len(holeNames)]string
	n              int // of them that are there
}

// cutLabels cuts labels that a decoder has left encoded, whose lengths take a byte each. It returns false where job or instance is there
// twice, or not in the form that all give it.
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

// holeHeads are how these labels begin: with their name.
var holeHeads = func() (all [len(holeNames)]string) {
	for h, name := range holeNames {
		all[h] = string([]byte{1<<3 | 2, byte(len(name))}) + name
	}
	return all
}()

// holeValue is the value of a label that is alone in a field. It returns false where that is not the label, or not in the usual form.
func holeValue(field string, h hole) (value string, ok bool) {
	at := 2 + len(holeHeads[h])
	if len(field) < at+2 || !strings.HasPrefix(field[2:], holeHeads[h]) || field[at] != 2<<3|2 || field[at+1] >= 0x80 {
		return "", false
	}
	value = field[at+2:]
	return value, len(value) == int(field[at+1])
}

// hash is that of all but the target.
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

// match reports whether encoded labels are these and those of some target. It compares with the fields of one that is near, and says
// whether it is the same.
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

// isField reports whether encoded labels begin with one whose length takes a byte.
func isField(encoded string) bool {
	return len(encoded) > 1 && encoded[0] == 1<<3|2 && encoded[1] < 0x80 && 2+int(encoded[1]) <= len(encoded)
}
