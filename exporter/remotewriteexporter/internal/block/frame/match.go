// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

const (
	hashBits = 15
	// minMatch is the length of the shortest match.
	minMatch = 4
	// margin is how far before the end of a block the search ends, so that it may load whole words.
	margin = 16
	// noted is how seldom the position after a small difference is recorded: once in this many matches, since a similar
	// message has its recorded position nearby.
	noted = 4
	// After 1<<patience bytes without a match, the search takes longer steps: there may be none.
	patience = 6
)

// sequence is a number of literals, and a match after them: a code for each of the three numbers, and the bits that
// these codes leave open.
type sequence struct {
	more uint64 // the bits, those of the literals first
	bits uint8  // number of bits

	literalCode, matchCode, offsetCode uint8
}

// code sets the codes of a number of literals, of a match's length less 3, and of an offset: 1 or 2 for recent ones,
// else plus 3, as the format demands.
func (q *sequence) code(literals, match, offset uint32) {
	q.literalCode, q.matchCode, q.offsetCode = literalCode(literals), matchCode(match), uint8(bits.Len32(offset)-1)
}

// open sets the bits that the codes leave open.
func (q *sequence) open(literals, match, offset uint32) {
	l, m, o := literalBits[q.literalCode&codeMask]&31, matchBits[q.matchCode&codeMask]&31, q.offsetCode&31
	more := uint64(offset)&(1<<o-1)<<m | uint64(match)&(1<<m-1)
	q.more, q.bits = more<<l|uint64(literals)&(1<<l-1), o+m+l
}

// find divides src[at:end] into sequences and literals, including those after the last sequence.
func (e *Encoder) find(src []byte, at, end int) {
	e.literals = slices.Grow(e.literals[:0], end-at+margin)
	e.sequences = slices.Grow(e.sequences[:0], (end-at)/minMatch) // each has a match
	clear(e.literalLengths.counts[:])
	clear(e.offsets.counts[:])
	clear(e.matchLengths.counts[:])
	anchor := at // no sequence covers what follows
	for more := true; more && len(e.runs) > 0; {
		at, anchor, more = e.findRun(src, at, end, anchor)
	}
	anchor = e.search(src, at, end, anchor)
	e.literals = append(e.literals, src[anchor:end]...)
}

// findRun handles src from at to the end of the next run. It returns false if part of that is in the next block.
func (e *Encoder) findRun(src []byte, at, end, anchor int) (next, unwritten int, more bool) {
	r := &e.runs[0]
	r.skip(at)
	if n := min(r.Count, (end-r.At)/r.Length); n > 0 {
		anchor = e.search(src, at, r.At, anchor)
		anchor = e.repeat(src, r, n, anchor)
		at = r.At + n*r.Length
		r.skip(at)
	}
	if r.Count > 0 {
		return at, anchor, false
	}
	e.runs = e.runs[1:]
	return at, anchor, true
}

// search searches for matches from at to end. No sequence covers what follows anchor; it returns the new anchor.
func (e *Encoder) search(src []byte, at, end, anchor int) int {
	last := int(e.recent.last)
	for s := max(at, margin); s < min(end, len(src)-margin); {
		here := binary.LittleEndian.Uint64(src[s:])
		differences := here ^ binary.LittleEndian.Uint64(src[s-last:])
		k := repeats(differences, s == anchor)
		distance := 0
		if uint(k) > 1 || len(e.sequences)%noted == 0 {
			slot := &e.seen[hash(here)]
			distance = s - int(*slot-e.base)
			*slot = e.base + uint32(s)
		}
		var next int
		switch {
		case uint(k) <= 1, // fast path: after a small difference, it continues at the same distance
			k >= 0 && !repeatsAll(src, s, distance, here): // a larger difference
			distance = last
			if rest := differences >> (8 * uint(k) & 63); rest != 0 {
				next = s + k + bits.TrailingZeros64(rest)>>3
			} else {
				next = s + 8 + common(src, s+8, last)
			}
			s += k
		default:
			start := s
			if s, distance = e.elsewhere(src, s, anchor, distance, here); distance == 0 {
				s = start + 2 + (start-anchor)>>(patience-1)
				continue
			}
			next = s + minMatch + common(src, s+minMatch, distance)
		}
		if next = min(next, end); next < s+minMatch {
			break
		}
		e.append(src, anchor, s, next, e.offset(distance, s > anchor))
		s, anchor, last = next, next, distance
	}
	return anchor
}

// append appends a sequence of src[literals:match] and a match up to end.
func (e *Encoder) append(src []byte, literals, match, end int, offset uint32) {
	k, count := len(e.sequences), uint32(match-literals)
	e.sequences = e.sequences[:k+1] // find reserved room
	q := &e.sequences[k]
	q.code(count, uint32(end-match-3), offset)
	q.open(count, uint32(end-match-3), offset)
	e.literalLengths.counts[q.literalCode&codeMask]++
	e.offsets.counts[q.offsetCode&codeMask]++
	e.matchLengths.counts[q.matchCode&codeMask]++
	if count > 16 || literals+16 > len(src) {
		e.literals = append(e.literals, src[literals:match]...)
		return
	}
	// Fast path: there is room for more.
	n := len(e.literals)
	room := e.literals[n : n+16]
	from := src[literals : literals+16]
	binary.LittleEndian.PutUint64(room, binary.LittleEndian.Uint64(from))
	binary.LittleEndian.PutUint64(room[8:], binary.LittleEndian.Uint64(from[8:]))
	e.literals = e.literals[:n+int(count)]
}

// repeatsAll reports whether the eight bytes at s equal those a distance before.
func repeatsAll(src []byte, s, distance int, here uint64) bool {
	return uint(distance-1) < Window && binary.LittleEndian.Uint64(src[s-distance:]) == here
}

// elsewhere finds a match at another distance than the last one: at one of those before that, or where the hash of the
// bytes at s, or next to it, was seen. The distance is 0 if there is none.
func (e *Encoder) elsewhere(src []byte, s, anchor, distance int, here uint64) (at, found int) {
	for _, recent := range [...]uint32{e.recent.before, e.recent.third} {
		k := repeats(here^binary.LittleEndian.Uint64(src[s-int(recent):]), false)
		if uint(k) <= 1 || k >= 0 && !repeatsAll(src, s, distance, here) {
			return s + k, int(recent)
		}
	}
	if uint(distance-1) >= Window || binary.LittleEndian.Uint32(src[s-distance:]) != uint32(here) {
		s++
		here = binary.LittleEndian.Uint64(src[s:])
		slot := &e.seen[hash(here)]
		distance = s - int(*slot-e.base)
		*slot = e.base + uint32(s)
		if uint(distance-1) >= Window || binary.LittleEndian.Uint32(src[s-distance:]) != uint32(here) {
			return 0, 0
		}
	}
	for s > anchor && s > distance && src[s-1] == src[s-1-distance] {
		s--
	}
	return s, distance
}

// repeats finds the first byte from 0 to 4 at which four bytes of differences in a row are zero, -1 if there is none.
// Byte 0 counts only unless notFirst.
func repeats(differences uint64, notFirst bool) int {
	d := differences | differences>>8
	d |= d >> 16 // each byte is zero if it and the three after it were
	if notFirst {
		d |= 1
	}
	zero := (d - 0x01_0101_0101) &^ d & 0x80_8080_8080 // the lowest is right, others need not be
	if zero == 0 {
		return -1
	}
	return bits.TrailingZeros64(zero) >> 3
}

// common is the length of the match of src at s with what was a distance before.
func common(src []byte, s, distance int) int {
	a, b := src[s:], src[s-distance:]
	n := 0
	for len(a) >= 8 && len(b) >= 8 {
		if d := binary.LittleEndian.Uint64(a) ^ binary.LittleEndian.Uint64(b); d != 0 {
			return n + bits.TrailingZeros64(d)>>3
		}
		a, b = a[8:], b[8:]
		n += 8
	}
	for i := range a {
		if a[i] != b[i] {
			break
		}
		n++
	}
	return n
}

// commonTo is common up to an end. It reads whole words, also beyond the end.
func commonTo(src []byte, s, end, distance int) int {
	at := s
	for at < end {
		if at+8 > len(src) {
			return at - s + common(src[:end], at, distance)
		}
		if d := binary.LittleEndian.Uint64(src[at:]) ^ binary.LittleEndian.Uint64(src[at-distance:]); d != 0 {
			at += bits.TrailingZeros64(d) >> 3
			break
		}
		at += 8
	}
	return min(at, end) - s
}

// hash is a hash of the lowest six bytes.
func hash(v uint64) uint64 { return v << 16 * 227718039650203 >> (64 - hashBits) }
