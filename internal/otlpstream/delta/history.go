// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package delta

import "encoding/binary"

// A form is a list of records, one for each resource and some for the history. A record begins with a row's number and its kind.
const (
	kindPlain  = 0 // a resource that is not kept; the row is 0
	kindLearn  = 1 // a resource that is kept in a row, with a shape of its own
	kindJoin   = 2 // a resource that is kept in a row, with the shape of another row, and its numbers as differences from that row's
	kindStep   = 3 // the resource of a row, with other numbers
	kindForget = 4 // no resource: the row is free
	kindBits   = 3
)

// overhead is what a row, and a shape, counts for in addition to its contents.
const overhead = 256

// shape is everything about a resource except the resource itself and its numbers.
type shape struct {
	text   []byte // the holes are zeros
	holes  []hole
	clocks int
	starts int
	values []class
	last   bool // the resource itself comes after the text

	rows int // how many rows have this shape
	// donor is a row with this shape, kept by the encoder; -1 if none is known.
	donor int
	hash  uint64
}

// newShape takes over text and holes.
func newShape(text []byte, holes []hole) *shape {
	s := &shape{text: text, holes: holes, donor: -1}
	for _, h := range holes {
		clear(text[h.at : h.at+8])
		switch h.class {
		case clock:
			s.clocks++
		case start:
			s.starts++
		default:
			s.values = append(s.values, h.class)
		}
	}
	return s
}

// columns are the numbers in the holes of one message, by class and in order.
type columns struct {
	clocks, starts ticks
	values         []uint64
}

// ticks are a column of times, or a single time if all are the same.
type ticks struct {
	times []uint64
	alike bool
}

func (t *ticks) reset() { t.times, t.alike = t.times[:0], true }

func (t *ticks) add(v uint64) {
	if len(t.times) > 0 && v != t.times[0] {
		t.alike = false
	}
	t.times = append(t.times, v)
}

// of returns the time in a hole.
func (t *ticks) of(k int) uint64 {
	if t.alike {
		k = 0
	}
	return t.times[k]
}

// kept returns a copy to keep.
func (t *ticks) kept() ticks {
	n := len(t.times)
	if t.alike {
		n = min(n, 1)
	}
	return ticks{times: append(make([]uint64, 0, n), t.times[:n]...), alike: t.alike}
}

// gather reads the numbers of a message with the shape's text, and returns false if the text is another.
func (c *columns) gather(s *shape, text []byte) bool {
	if len(text) != len(s.text) {
		return false
	}
	from := uint32(0)
	for _, h := range s.holes {
		if string(s.text[from:h.at]) != string(text[from:h.at]) {
			return false
		}
		from = h.at + 8
	}
	if string(s.text[from:]) != string(text[from:]) {
		return false
	}
	c.read(s.holes, text)
	return true
}

func (c *columns) read(holes []hole, text []byte) {
	c.clocks.reset()
	c.starts.reset()
	c.values = c.values[:0]
	for _, h := range holes {
		switch v := binary.LittleEndian.Uint64(text[h.at:]); h.class {
		case clock:
			c.clocks.add(v)
		case start:
			c.starts.add(v)
		default:
			c.values = append(c.values, v)
		}
	}
}

// row is what is kept of a resource.
type row struct {
	columns

	shape  *shape
	head   []byte // the resource itself
	scales []scale
}

// cost returns what a row counts for, without its shape.
func (r *row) cost() int { return costOfRow(r.head, &r.columns) }

func costOfRow(head []byte, c *columns) int {
	times := len(c.clocks.times) + len(c.starts.times)
	if c.clocks.alike {
		times -= max(0, len(c.clocks.times)-1)
	}
	if c.starts.alike {
		times -= max(0, len(c.starts.times)-1)
	}
	return overhead + len(head) + 8*times + 9*len(c.values)
}

func (s *shape) cost() int { return overhead + len(s.text) + 8*len(s.holes) }

// history is what both ends keep.
type history struct {
	limit int
	used  int
	rows  []*row // nil if the row is free
}

// mostRows returns how many rows fit within the limit.
func (h *history) mostRows() int { return h.limit / overhead }

func (h *history) at(n uint64) *row {
	if n >= uint64(len(h.rows)) {
		return nil
	}
	return h.rows[n]
}

// put keeps a row. Its number must be free, or the next one.
func (h *history) put(n int, r *row) {
	if n == len(h.rows) {
		h.rows = append(h.rows, nil)
	}
	h.rows[n] = r
	h.used += r.cost()
	if r.shape.rows++; r.shape.rows == 1 {
		h.used += r.shape.cost()
	}
}

func (h *history) forget(n int) {
	r := h.rows[n]
	h.rows[n] = nil
	h.used -= r.cost()
	if r.shape.rows--; r.shape.rows == 0 {
		h.used -= r.shape.cost()
	}
}

// first returns the scales of numbers that nothing is known about.
func (s *shape) first(values []uint64) []scale {
	scales := make([]scale, len(values))
	for i, v := range values {
		if s.values[i] == double {
			scales[i] = scaleOf(v)
		}
	}
	return scales
}
