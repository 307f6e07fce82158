// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

var errDelta = errors.New("the delta does not keep to the specification")

// The cost of rows and shapes beside their content.
const rowCost = 256

// The kinds of numbers in a message.
const (
	clockNumber = iota + 1
	startNumber
	integerNumber
	doubleNumber
)

// place is the offset and the kind of eight bytes of a message that change.
type place struct{ at, kind int }

// shape is a message with zeros in place of numbers.
type shape struct {
	text   []byte
	places []place
	values []int // kinds of numbers that are not times
	last   bool  // the resource itself follows the text
	rows   int
}

func (s *shape) cost() int { return rowCost + len(s.text) + 8*len(s.places) }

// times is a column of times, or a single time if all are equal.
type times struct {
	all   []uint64
	alike bool
}

func (t times) at(i int) uint64 {
	if t.alike {
		return t.all[0]
	}
	return t.all[i]
}

// row is the last state of a resource.
type row struct {
	shape          *shape
	head           []byte
	clocks, starts times
	values         []uint64
	scales         []int
}

func (r *row) cost() int {
	return rowCost + len(r.head) + 8*(len(r.clocks.all)+len(r.starts.all)) + 9*len(r.values)
}

// history is the state of deltas on a stream: docs/otlpstream.md, Deltas.
type history struct {
	limit, used int
	rows        map[uint64]*row
	last        uint64 // the largest number of a row so far
}

func newHistory(limit int) *history { return &history{limit: limit, rows: map[uint64]*row{}} }

// resources calls do for each resource of a delta; the message is valid only until do returns. size is the size of the
// payload.
func (h *history) resources(delta []byte, size uint64, do func(message []byte) error) error {
	d := &deltaReader{rest: delta}
	var sum uint64
	each := func(message []byte) error {
		sum += uint64(1 + protowire.SizeBytes(len(message)))
		return do(message)
	}
	for len(d.rest) > 0 {
		token := d.varint()
		if err := h.record(d, token>>3, token&7, each); err != nil {
			return err
		}
	}
	if d.failed || sum != size {
		return errDelta
	}
	return nil
}

func (h *history) record(d *deltaReader, number, kind uint64, do func([]byte) error) error {
	known := h.rows[number]
	switch kind {
	case 0, 1:
		message := d.take(d.varint())
		if d.failed || kind == 1 && !h.learn(number, message) {
			return errDelta
		}
		return do(message)
	case 2:
		if known = h.join(d, number); known == nil {
			return errDelta
		}
	case 3:
		if known == nil {
			return errDelta
		}
		d.moves(known, known)
	case 4:
		if known == nil {
			return errDelta
		}
		h.forget(number, known)
		return nil
	default:
		return errDelta
	}
	if d.failed {
		return errDelta
	}
	return do(known.message())
}

// keep stores a row under an unused number.
func (h *history) keep(number uint64, r *row) bool {
	if h.rows[number] != nil || number > h.last && len(h.rows) > 0 && number != h.last+1 || number >= uint64(h.limit/rowCost) {
		return false
	}
	h.used += r.cost()
	if r.shape.rows++; r.shape.rows == 1 {
		h.used += r.shape.cost()
	}
	h.rows[number], h.last = r, max(h.last, number)
	return h.used <= h.limit
}

func (h *history) forget(number uint64, r *row) {
	delete(h.rows, number)
	h.used -= r.cost()
	if r.shape.rows--; r.shape.rows == 0 {
		h.used -= r.shape.cost()
	}
}

func (h *history) learn(number uint64, message []byte) bool {
	r := &row{shape: &shape{}}
	s := r.shape
	r.head, s.text, s.last = partResource(bytes.Clone(message))
	if !findNumbers(s.text, 0, atResource, 0, s) || len(s.places) == 0 {
		return false
	}
	for _, p := range s.places {
		v := binary.LittleEndian.Uint64(s.text[p.at:])
		switch p.kind {
		case clockNumber:
			r.clocks.all = append(r.clocks.all, v)
		case startNumber:
			r.starts.all = append(r.starts.all, v)
		default:
			r.values = append(r.values, v)
			s.values = append(s.values, p.kind)
			scale := 0
			if p.kind == doubleNumber {
				for scale < 10 && !exactAt(v, scale) {
					scale++
				}
			}
			r.scales = append(r.scales, scale)
		}
	}
	for _, t := range []*times{&r.clocks, &r.starts} {
		t.alike = true
		for _, v := range t.all {
			t.alike = t.alike && v == t.all[0]
		}
		if t.alike {
			t.all = t.all[:min(1, len(t.all))]
		}
	}
	return h.keep(number, r)
}

func (h *history) join(d *deltaReader, number uint64) *row {
	donor := h.rows[d.varint()]
	flags := d.take(1)
	head := d.take(d.varint())
	if d.failed || donor == nil {
		return nil
	}
	r := &row{shape: donor.shape, head: bytes.Clone(head), values: append([]uint64(nil), donor.values...), scales: append([]int(nil), donor.scales...)}
	clocks, starts := 0, 0
	for _, p := range r.shape.places {
		switch p.kind {
		case clockNumber:
			clocks++
		case startNumber:
			starts++
		}
	}
	r.clocks, r.starts = newTimes(clocks, flags[0]&1 != 0), newTimes(starts, flags[0]&2 != 0)
	if !h.keep(number, r) {
		return nil
	}
	d.moves(r, donor)
	return r
}

func newTimes(n int, alike bool) times {
	if alike {
		n = min(n, 1)
	}
	return times{all: make([]uint64, n), alike: alike}
}

// message returns the resource of a row.
func (r *row) message() []byte {
	text := bytes.Clone(r.shape.text)
	clocks, starts, values := 0, 0, 0
	for _, p := range r.shape.places {
		var v uint64
		switch p.kind {
		case clockNumber:
			v = r.clocks.at(clocks)
			clocks++
		case startNumber:
			v = r.starts.at(starts)
			starts++
		default:
			v = r.values[values]
			values++
		}
		binary.LittleEndian.PutUint64(text[p.at:], v)
	}
	if r.shape.last {
		return append(text, r.head...)
	}
	return append(bytes.Clone(r.head), text...)
}

// deltaReader reads a delta.
type deltaReader struct {
	rest   []byte
	failed bool
}

func (d *deltaReader) varint() uint64 {
	v, n := protowire.ConsumeVarint(d.rest)
	if n < 0 {
		d.rest, d.failed = nil, true
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *deltaReader) signed() uint64 { return uint64(protowire.DecodeZigZag(d.varint())) }

func (d *deltaReader) take(n uint64) []byte {
	if n > uint64(len(d.rest)) {
		d.rest, d.failed = nil, true
		return make([]byte, min(n, 8))
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

// marks reads n bits.
func (d *deltaReader) marks(n int) func(i int) bool {
	b := d.take(uint64((n + 7) / 8))
	if d.failed {
		return func(int) bool { return false }
	}
	return func(i int) bool { return b[i/8]>>(i%8)&1 != 0 }
}

// moves reads the differences of a row's numbers from those of another row, which may be the same one.
func (d *deltaReader) moves(r, from *row) {
	d.ticks(r.clocks, from.clocks)
	d.ticks(r.starts, from.starts)
	changed := d.marks(len(r.values))
	for i, kind := range r.shape.values {
		switch {
		case !changed(i):
		case kind == integerNumber:
			r.values[i] = from.values[i] + d.signed()
		default:
			r.values[i], r.scales[i] = d.double(from.values[i], r.scales[i])
		}
	}
}

func (d *deltaReader) ticks(t, from times) {
	switch len(t.all) {
	case 0:
	case 1:
		t.all[0] = from.at(0) + d.signed()
	default:
		changed := d.marks(len(t.all))
		move := uint64(0)
		for i := range t.all {
			if changed(i) {
				move += d.signed()
			}
			t.all[i] = from.at(i) + move
		}
	}
}

// double reads the change of a double with a scale.
func (d *deltaReader) double(from uint64, scale int) (uint64, int) {
	token := d.varint()
	switch {
	case token&1 == 0 && scale < 10:
		return atScale(scaled(from, scale)+protowire.DecodeZigZag(token>>1), scale), scale
	case token&1 == 0:
		var bits [8]byte
		copy(bits[:], d.take(min(token>>1, 8)))
		return from ^ binary.LittleEndian.Uint64(bits[:]), scale
	case token>>1 == 10:
		return binary.LittleEndian.Uint64(d.take(8)), 10
	case token>>1 > 10:
		d.failed = true
		return 0, 0
	}
	scale = int(token >> 1)
	return atScale(int64(d.signed()), scale), scale
}

var tens = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9}

func scaled(v uint64, scale int) int64 {
	return int64(math.RoundToEven(math.Float64frombits(v) * tens[scale]))
}

func atScale(m int64, scale int) uint64 { return math.Float64bits(float64(m) / tens[scale]) }

func exactAt(v uint64, scale int) bool {
	m := math.Float64frombits(v) * tens[scale]
	return math.Abs(math.RoundToEven(m)) <= 1<<53 && atScale(scaled(v, scale), scale) == v
}
