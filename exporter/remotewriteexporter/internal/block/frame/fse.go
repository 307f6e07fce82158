// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"encoding/binary"
	"math"
	"math/bits"
)

const (
	minLog = 5
	maxLog = 9 // of any table; each may have 3 more than the predefined one
)

// Modes of tables.
const (
	predefinedMode = 0
	sameMode       = 1
	newMode        = 2
	lastMode       = 3
)

// coder encodes one of the three numbers of a block's sequences.
type coder struct {
	counts [64]uint32 // by code
	table  *table
	own    [2]table
	last   *table // the last of these, which a decoder still has; nil if it has none
}

// appendTable chooses a table for n codes, and appends its description.
func (c *coder) appendTable(dst []byte, n int, predefined *table) ([]byte, byte) {
	next := &c.own[0]
	if c.last == next {
		next = &c.own[1]
	}
	top := 0
	for code, count := range c.counts {
		if int(count) == n {
			next.same(uint8(code))
			c.table, c.last = next, nil
			return append(dst, byte(code)), sameMode
		}
		if count > 0 {
			top = code
		}
	}
	next.normalize(&c.counts, n, top, predefined.log+3)
	start := len(dst)
	dst = next.appendNorm(dst, top)
	cost := next.cost(&c.counts) + float64(8*(len(dst)-start))
	switch {
	case c.last != nil && c.last.cost(&c.counts) <= cost:
		c.table = c.last
		return dst[:start], lastMode
	case predefined.cost(&c.counts) <= cost:
		c.table, c.last = predefined, nil
		return dst[:start], predefinedMode
	}
	next.build()
	c.table, c.last = next, next
	return dst, newMode
}

// table encodes with FSE, using 1<<log states.
type table struct {
	log    uint8
	norm   [64]int16 // number of states by code; -1 stands for one state, at the end
	steps  [64]step
	states [1 << maxLog]uint16
}

// step is the transition from a state: the number of bits to write is (state + bits) >> 16.
type step struct {
	bits uint32
	find uint32
}

// next returns the state for a code, and the bits to write for the state before.
func (t *table) next(state uint32, code uint8) (next, low, count uint32) {
	s := &t.steps[code&codeMask]
	count = (state + s.bits) >> 16
	high := state >> (count & 31)
	return uint32(t.states[(high+s.find)&(1<<maxLog-1)]), state ^ high<<(count&31), count
}

// first returns a state of a code to begin with.
func (t *table) first(code uint8) uint32 {
	s := &t.steps[code&codeMask]
	n := (s.bits + 1<<15) >> 16
	return uint32(t.states[((n<<16-s.bits)>>n+s.find)&(1<<maxLog-1)])
}

// same makes the table of a single code, which takes no bits.
func (t *table) same(code uint8) {
	t.log, t.steps[code], t.states[0] = 0, step{}, 0
}

// normalize gives each code up to top its share of the states, at least one.
func (t *table) normalize(counts *[64]uint32, n, top int, maxLog uint8) {
	t.log = min(max(uint8(bits.Len(uint(n))), minLog), maxLog)
	size := 1 << t.log
	left := size
	for code, count := range counts {
		share := 0
		if count > 0 {
			share = max(1, (int(count)*size+n/2)/n)
		}
		t.norm[code] = int16(share)
		left -= share
	}
	for left != 0 { // rounding error, which matters least to the most frequent code
		largest := 0
		for code := range t.norm[:top+1] {
			if t.norm[code] > t.norm[largest] {
				largest = code
			}
		}
		if left > 0 {
			t.norm[largest] += int16(left)
			return
		}
		t.norm[largest]--
		left++
	}
}

// cost is about how many bits the codes with these counts take.
func (t *table) cost(counts *[64]uint32) float64 {
	sum := 0.0
	for code, count := range counts {
		switch share := t.norm[code]; {
		case count == 0:
		case share == 0:
			return math.Inf(1)
		default:
			sum += float64(count) * (float64(t.log) - logs[max(share, 1)]) // -1 is one
		}
	}
	return sum
}

// logs are logarithms of shares.
var logs = func() (l [1<<maxLog + 1]float64) {
	for share := range l {
		l[share] = math.Log2(float64(share))
	}
	return l
}()

// build makes the steps and states from norm.
func (t *table) build() {
	size := 1 << t.log
	var codes [1 << maxLog]uint8 // of each state
	end := size                  // of those spread
	for code, share := range t.norm {
		if share < 0 {
			end--
			codes[end] = uint8(code)
		}
	}
	at := 0
	for code, share := range t.norm {
		for range share {
			codes[at] = uint8(code)
			for at = t.spread(at); at >= end; at = t.spread(at) {
			}
		}
	}
	var places [64]int // of each code's next state
	sum := 0
	for code, share := range t.norm {
		places[code] = sum
		if share == 0 {
			continue
		}
		n := max(int(share), 1) // -1 is one
		more := uint32(t.log) - uint32(bits.Len(uint(n-1))) + 1
		if n == 1 {
			more = uint32(t.log)
		}
		t.steps[code] = step{bits: more<<16 - uint32(n)<<more, find: uint32(sum - n)}
		sum += n
	}
	for state, code := range codes[:size] {
		t.states[places[code]] = uint16(size + state)
		places[code]++
	}
}

// spread returns the state after one in an order that spreads the states of a code.
func (t *table) spread(at int) int {
	size := 1 << t.log
	return (at + size>>1 + size>>3 + 3) & (size - 1)
}

// appendNorm appends norm up to the code top, each value in as few bits as the remaining states allow.
func (t *table) appendNorm(dst []byte, top int) []byte {
	pending, held := uint64(t.log-minLog), uint(4)
	write := func(v uint64, n uint) {
		pending |= v << held
		held += n
		for held >= 16 {
			dst = binary.LittleEndian.AppendUint16(dst, uint16(pending))
			pending >>= 16
			held -= 16
		}
	}
	left := 1<<t.log + 1
	for code := 0; code <= top; code++ {
		share := int(t.norm[code])
		width := uint(bits.Len(uint(left)))
		threshold := 1 << (width - 1)
		most := 2*threshold - 1 - left // smaller values take one bit less
		left -= max(share, -share)
		v := share + 1
		if v >= threshold {
			v += most
		}
		if v < most {
			width--
		}
		write(uint64(v), width)
		if share != 0 || left <= 1 {
			continue
		}
		zeros := 0 // that follow this one
		for t.norm[code+1+zeros] == 0 {
			zeros++
		}
		code += zeros
		for ; zeros >= 3; zeros -= 3 {
			write(3, 2)
		}
		write(uint64(zeros), 2)
	}
	for ; held > 0; held -= min(held, 8) {
		dst = append(dst, byte(pending))
		pending >>= 8
	}
	return dst
}

// predefined is a table of given shares.
func predefined(log uint8, norm ...int16) table {
	t := table{log: log}
	copy(t.norm[:], norm)
	t.build()
	return t
}
