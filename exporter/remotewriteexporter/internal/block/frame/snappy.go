// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/klauspost/compress/s2"
)

// SnappyWindow is how far back copies go.
const SnappyWindow = 1 << 16

const (
	// maxOffset is the farthest that a copy with two bytes after its tag can refer, nearOffset with one byte.
	maxOffset  = SnappyWindow - 1
	nearOffset = 1<<11 - 1
	// maxCopy is the longest copy, maxNear the longest with one byte after its tag.
	maxCopy = 64
	maxNear = 11

	snappyBits = 14

	// unsearched is how many bytes before an echo are not searched: those of a number.
	unsearched = 12
)

// Snappy writes requests in snappy's block format, with the same hints. The format has no entropy coding: each literal
// takes its bytes and a tag, each copy two or three bytes. Its zero value is ready.
type Snappy struct {
	seen   [1 << snappyBits]uint32 // by hash: one more than the last position with it
	dst    []byte
	src    []byte
	echoes []Echo
}

// Append appends src as a block to dst. It consumes the hints in known.
func (e *Snappy) Append(dst, src []byte, known Known) []byte {
	clear(e.seen[:])
	dst = slices.Grow(dst, s2.MaxEncodedLen(len(src)))
	e.dst, e.src, e.echoes = binary.AppendUvarint(dst, uint64(len(src))), src, known.Echoes
	at, anchor := 0, 0
	for i := range known.Runs {
		r := &known.Runs[i]
		r.skip(at)
		if r.Count > 0 && r.Length <= maxOffset {
			anchor = e.between(at, r.At, anchor)
			anchor = e.repeat(r, anchor)
			at = r.At + r.Count*r.Length
		}
	}
	anchor = e.between(at, len(src), anchor)
	e.literal(anchor, len(src))
	dst = e.dst
	e.dst, e.src, e.echoes = nil, nil, nil
	return dst
}

// between writes what is from at to end, where there are no runs. What follows anchor is not written yet; it returns
// the new anchor.
func (e *Snappy) between(at, end, anchor int) int {
	for len(e.echoes) > 0 && int(e.echoes[0].At) < end {
		x := e.echoes[0]
		e.echoes = e.echoes[1:]
		if int(x.At) < at { // within a run
			continue
		}
		at, anchor = e.echo(x, at, end, anchor)
	}
	return e.search(at, end, anchor)
}

// echo writes what is from at to an echo, and as much of the echo as is true. What follows anchor is not written yet.
// It returns where the echo ended, and the new anchor.
func (e *Snappy) echo(x Echo, at, end, anchor int) (next, unwritten int) {
	src, from, begin := e.src, int(x.From), int(x.At)
	offset := begin - from
	if offset <= 0 || offset > maxOffset {
		return at, anchor
	}
	if begin-at > unsearched {
		anchor = e.search(at, begin, anchor)
	}
	if len(e.echoes) > 0 {
		end = min(end, max(int(e.echoes[0].At), begin)) // which continues there
	}
	if begin < anchor { // an earlier copy reached further
		begin = anchor
	}
	for begin > anchor && begin > offset && src[begin-1] == src[begin-1-offset] {
		begin--
	}
	at = max(at, int(x.At)) // what is before has been checked
	if begin >= end {
		return at, anchor
	}
	n := common(src[:end], begin, offset)
	if n < minMatch {
		return at, anchor
	}
	e.literal(anchor, begin)
	e.copy(offset, n)
	return max(at, begin+n), begin + n
}

// search searches for matches from at to end. What follows anchor is not written yet; it returns the new anchor.
func (e *Snappy) search(at, end, anchor int) int {
	src := e.src
	for s := max(at, anchor); s < min(end, len(src)-margin); {
		here := binary.LittleEndian.Uint64(src[s:])
		slot := &e.seen[hash(here)>>(hashBits-snappyBits)]
		from := int(*slot) - 1
		*slot = uint32(s + 1)
		if from < 0 || s-from > maxOffset || binary.LittleEndian.Uint32(src[from:]) != uint32(here) {
			s += 1 + (s-anchor)>>patience
			continue
		}
		for s > anchor && from > 0 && src[s-1] == src[from-1] {
			s, from = s-1, from-1
		}
		n := min(common(src, s, s-from), end-s)
		if n < minMatch {
			break
		}
		e.literal(anchor, s)
		e.copy(s-from, n)
		s += n
		anchor = s
	}
	return anchor
}

// repeat writes the stretches of a run. What follows anchor is not written yet; it returns the new anchor.
func (e *Snappy) repeat(r *Run, anchor int) int {
	src, at, length := e.src, r.At, r.Length
	literals, match := anchor, at // what is to be written, and where the copy after it begins
	for i := range r.Count {
		like := r.likeDistance(i, SnappyWindow)
		for _, word := range r.words[:r.used] {
			p := at + int(word)
			d := binary.LittleEndian.Uint64(src[p:]) ^ binary.LittleEndian.Uint64(src[p-length:])
			if p < match {
				d = d >> (8 * (match - p)) << (8 * (match - p)) // part of it, or all, is within a copy
			}
			if over := p + 8 - (at + length); over > 0 {
				d = d << (8 * over) >> (8 * over) // part of it is in the next stretch
			}
			if d == 0 {
				continue
			}
			first, end := p+bits.TrailingZeros64(d)>>3, p+8-bits.LeadingZeros64(d)>>3
			from := match // literals would continue there
			if first >= match+minMatch {
				e.literal(literals, match)
				e.copy(length, first-match)
				literals, from = first, first
			}
			match = end
			if like == 0 {
				continue
			}
			n := common(src[:at+length], from, like)
			if n > maxNear && like <= nearOffset && from+maxNear >= end && common(src[:from+n], from+maxNear, length) == n-maxNear {
				n = maxNear // the rest goes into the next copy, and this one is shorter
			}
			if from+n >= end && e.better(from, end, n, length, like, from > literals) {
				e.literal(literals, from)
				e.copy(like, n)
				literals, match = from+n, from+n
			}
		}
		at += length
	}
	if at < match+minMatch {
		return literals
	}
	e.literal(literals, match)
	e.copy(length, at-match)
	return at
}

// better reports whether a copy of n bytes from another run takes no more than the literals up to end, or saves others
// later.
func (e *Snappy) better(from, end, n, length, like int, more bool) bool {
	literals, copied := end-from, 3
	if !more {
		literals++ // the tag
	}
	if n <= maxNear && like <= nearOffset {
		copied = 2
	}
	return n >= minMatch && (literals >= copied || common(e.src[:from+n], end, length) < from+n-end)
}

// literal writes what is from one place to another, if anything is.
func (e *Snappy) literal(from, to int) {
	n := to - from - 1
	switch {
	case n < 0:
		return
	case n < 60:
		e.dst = append(e.dst, byte(n)<<2)
	case n < 1<<8:
		e.dst = append(e.dst, 60<<2, byte(n))
	case n < 1<<16:
		e.dst = append(e.dst, 61<<2, byte(n), byte(n>>8))
	case n < 1<<24:
		e.dst = append(e.dst, 62<<2, byte(n), byte(n>>8), byte(n>>16))
	default:
		e.dst = append(e.dst, 63<<2, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
	}
	e.dst = append(e.dst, e.src[from:to]...)
}

// copy writes that n bytes are what was an offset before.
func (e *Snappy) copy(offset, n int) {
	for n > maxCopy {
		step := maxCopy
		if n < maxCopy+minMatch { // the rest must be long enough for a copy
			step = n - minMatch
		}
		e.dst = append(e.dst, byte(step-1)<<2|2, byte(offset), byte(offset>>8))
		n -= step
	}
	if n >= minMatch && n <= maxNear && offset <= nearOffset {
		e.dst = append(e.dst, byte(offset>>8)<<5|byte(n-minMatch)<<2|1, byte(offset))
		return
	}
	e.dst = append(e.dst, byte(n-1)<<2|2, byte(offset), byte(offset>>8))
}
