// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package delta

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Decoder decodes the payloads of one stream, in the order they were encoded in.
type Decoder struct {
	history

	scratch columns
}

// NewDecoder returns a decoder that keeps a history of at most limit bytes.
func NewDecoder(limit int) *Decoder { return &Decoder{history: history{limit: limit}} }

var (
	errCut       = errors.New("it ends too early, or has a number that is none")
	errRow       = errors.New("it is about a row that is not there, or is taken")
	errFull      = errors.New("the history has no room for it")
	errSize      = errors.New("it is of another size than it says")
	errNotAShape = errors.New("what is to be kept has no shape")
)

// Append appends the payload of a form, size bytes with the tag before each resource. After an error the stream is lost.
func (d *Decoder) Append(dst, form []byte, size int, tag byte) ([]byte, error) {
	r := &reader{rest: form}
	end := len(dst) + size
	for len(r.rest) > 0 {
		var err error
		if dst, err = d.record(dst, r, end, tag); err != nil {
			return dst, fmt.Errorf("cannot decode a delta of %d bytes at byte %d: %w", len(form), len(form)-len(r.rest), err)
		}
	}
	if len(dst) != end {
		return dst, fmt.Errorf("cannot decode a delta of %d bytes: %w", len(form), errSize)
	}
	return dst, nil
}

func (d *Decoder) record(dst []byte, r *reader, end int, tag byte) ([]byte, error) {
	token := r.uvarint()
	n, kind := token>>kindBits, token&(1<<kindBits-1)
	switch kind {
	case kindPlain, kindLearn:
		content := r.bytes(r.uvarint())
		if r.failed {
			return dst, errCut
		}
		if kind == kindLearn {
			if err := d.learn(n, content); err != nil {
				return dst, err
			}
		}
		if len(dst)+1+protowire.SizeBytes(len(content)) > end {
			return dst, errSize
		}
		return protowire.AppendBytes(append(dst, tag), content), nil
	case kindJoin:
		if err := d.join(n, r); err != nil {
			return dst, err
		}
	case kindStep:
		known := d.at(n)
		if known == nil {
			return dst, errRow
		}
		d.move(r, known, &known.columns)
	case kindForget:
		if d.at(n) == nil {
			return dst, errRow
		}
		d.forget(int(n))
		return dst, nil
	default:
		return dst, fmt.Errorf("unknown kind of record %d", kind)
	}
	if r.failed {
		return dst, errCut
	}
	return d.rows[n].restore(dst, end, tag)
}

// vacant reports whether a row may be kept under a number.
func (d *Decoder) vacant(n uint64) bool {
	return n <= uint64(len(d.rows)) && n < uint64(d.mostRows()) && d.at(n) == nil
}

func (d *Decoder) learn(n uint64, content []byte) error {
	if !d.vacant(n) {
		return errRow
	}
	head, text, last := split(content)
	holes, ok := holesOf(nil, text)
	if !ok || len(holes) == 0 {
		return errNotAShape
	}
	d.scratch.read(holes, text)
	if d.used+costOfRow(head, &d.scratch)+overhead+len(text)+8*len(holes) > d.limit {
		return errFull
	}
	k := &row{head: bytes.Clone(head), shape: newShape(bytes.Clone(text), slices.Clip(holes))}
	k.shape.last = last
	k.clocks, k.starts, k.values = d.scratch.clocks.kept(), d.scratch.starts.kept(), slices.Clone(d.scratch.values)
	k.scales = k.shape.first(k.values)
	d.put(int(n), k)
	return nil
}

func (d *Decoder) join(n uint64, r *reader) error {
	donor := d.at(r.uvarint())
	if donor == nil || !d.vacant(n) {
		return errRow
	}
	alike := r.bytes(1)
	head := r.bytes(r.uvarint())
	if r.failed {
		return errCut
	}
	s := donor.shape
	k := &row{shape: s, head: bytes.Clone(head)}
	k.clocks = ticksOf(s.clocks, alike[0]&clocksAlike != 0)
	k.starts = ticksOf(s.starts, alike[0]&startsAlike != 0)
	if d.used+overhead+len(head)+8*(len(k.clocks.times)+len(k.starts.times))+9*len(s.values) > d.limit {
		return errFull
	}
	k.values, k.scales = slices.Clone(donor.values), slices.Clone(donor.scales)
	d.put(int(n), k)
	d.move(r, k, &donor.columns)
	return nil
}

func ticksOf(n int, alike bool) ticks {
	if alike {
		n = min(n, 1)
	}
	return ticks{times: make([]uint64, n), alike: alike}
}

// move reads how the numbers of a row differ from those before.
func (*Decoder) move(r *reader, k *row, before *columns) {
	r.ticks(&k.clocks, &before.clocks)
	r.ticks(&k.starts, &before.starts)
	marks := r.bytes(uint64(bitmap(len(k.values))))
	if r.failed {
		return
	}
	for i, kind := range k.shape.values {
		if marks[i/8]&(1<<(i%8)) == 0 {
			continue
		}
		if kind == integer {
			k.values[i] = before.values[i] + uint64(unzigzag(r.uvarint()))
		} else {
			k.values[i], k.scales[i] = r.move(k.scales[i], before.values[i])
		}
	}
}

func (r *reader) ticks(t, before *ticks) {
	switch n := len(t.times); n {
	case 0:
	case 1:
		t.times[0] = before.of(0) + uint64(unzigzag(r.uvarint()))
	default:
		marks := r.bytes(uint64(bitmap(n)))
		if r.failed {
			return
		}
		moved := uint64(0)
		for k := range t.times {
			if marks[k/8]&(1<<(k%8)) != 0 {
				moved += uint64(unzigzag(r.uvarint()))
			}
			t.times[k] = before.of(k) + moved
		}
	}
}

// restore appends the resource of a row.
func (k *row) restore(dst []byte, end int, tag byte) ([]byte, error) {
	size := len(k.head) + len(k.shape.text)
	if len(dst)+1+protowire.SizeBytes(size) > end {
		return dst, errSize
	}
	dst = protowire.AppendVarint(append(dst, tag), uint64(size))
	if !k.shape.last {
		dst = append(dst, k.head...)
	}
	at := len(dst)
	dst = append(dst, k.shape.text...)
	text := dst[at:]
	clocks, starts, values := 0, 0, 0
	for _, h := range k.shape.holes {
		var v uint64
		switch h.class {
		case clock:
			v = k.clocks.of(clocks)
			clocks++
		case start:
			v = k.starts.of(starts)
			starts++
		default:
			v = k.values[values]
			values++
		}
		binary.LittleEndian.PutUint64(text[h.at:], v)
	}
	if k.shape.last {
		dst = append(dst, k.head...)
	}
	return dst, nil
}
