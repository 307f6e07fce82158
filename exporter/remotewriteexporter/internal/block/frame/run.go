// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"encoding/binary"
	"math"
	"math/bits"
)

const (
	// maxWords is enough for a number and for texts of 100 bytes in all.
	maxWords = 16
	// minLike is how much of another run must be alike to refer to it rather than to the stretch before, minDrift how much where it
	// is at another distance each time, which takes two bytes or three.
	minLike  = 4
	minDrift = 8
)

// Known is what is known of a request before it is compressed. Runs are in order and do not overlap, echoes are in order.
type Known struct {
	Runs   []Run
	Echoes []Echo // for snappy
}

// leastMessage is about how many bytes a message with an echo has, or more.
const leastMessage = 32

// Covered is about of how many bytes something is known.
func (k *Known) Covered() int {
	covered := len(k.Echoes) * leastMessage
	for i := range k.Runs {
		covered += k.Runs[i].Count * k.Runs[i].Length
	}
	return covered
}

// Move says that all is so much further on.
func (k *Known) Move(by int) {
	if by == 0 {
		return
	}
	for i := range k.Runs {
		k.Runs[i].At += by
	}
	for i := range k.Echoes {
		x := &k.Echoes[i]
		x.At, x.From = uint32(int(x.At)+by), uint32(int(x.From)+by)
	}
}

// Echo says that what begins at At is probably what began at From, up to the next one or so. That is looked at. It is for
// compression that has no short way to say the same distance again.
type Echo struct{ At, From uint32 }

// Run tells what need not be searched for: Count stretches of Length bytes, the first of them at At, each of which is what
// the Length bytes before it are, but for what Differ says. This is believed, not looked at.
type Run struct {
	At, Length, Count int
	// Like is how far before there are stretches of another run that may differ from each other in the same way, in some of
	// the places. That is looked at. Zero if there are none. Where those are shorter or longer, they are by Drift further away with
	// each stretch.
	Like, Drift int

	words [maxWords]uint16 // where in a stretch eight bytes begin that may differ
	used  uint8
}

// Differ says that what follows at in each stretch, in so many words of eight bytes, may differ. Words come in order and do
// not overlap; the last may reach into the next stretch, before its first. It is false where there is no room to take note.
func (r *Run) Differ(at, words int) bool {
	if int(r.used)+words > maxWords || at+8*words > math.MaxUint16 {
		return false
	}
	for range words {
		r.words[r.used] = uint16(at)
		r.used++
		at += 8
	}
	if at > r.Length {
		r.Count-- // what follows the last stretch may differ from what follows others
	}
	return true
}

// DifferAs says that stretches may differ where those of another run may.
func (r *Run) DifferAs(other *Run) {
	r.words, r.used = other.words, other.used
	if r.used > 0 && int(r.words[r.used-1])+8 > r.Length {
		r.Count-- // as in Differ
	}
}

// skip leaves out the stretches that begin before at.
func (r *Run) skip(at int) {
	if n := (at - r.At + r.Length - 1) / r.Length; n > 0 {
		r.At += n * r.Length
		r.Like += n * r.Drift
		r.Count -= n
	}
}

// likeOf is how far before a stretch there is one of another run, 0 if there is none within reach. A match may begin a little before
// the stretch, and has to be within src there, too.
func (r *Run) likeOf(stretch, reach int) int {
	like := r.Like + stretch*r.Drift
	if r.Like == 0 || like <= r.Length || like >= reach || like > r.At+stretch*r.Length-minMatch {
		return 0
	}
	return like
}

// repeat takes the first n stretches of a run. What follows anchor has no sequence yet; it returns where that is in the end.
func (e *Encoder) repeat(src []byte, r *Run, n, anchor int) int {
	at, length, words, least := r.At, r.Length, r.words[:r.used], minLike
	if r.Drift != 0 {
		least = minDrift
	}
	literals, match := anchor, at // of the sequence to come
	for i := range n {
		like := r.likeOf(i, Window)
		if literals == at && match == at && e.repeatAsThere(src, at, length, words, like) { // fast path
			at += length
			literals, match = at, at
			continue
		}
		for _, word := range words {
			p := at + int(word)
			if p+8 <= match { // it is in a match
				continue
			}
			d := binary.LittleEndian.Uint64(src[p:]) ^ binary.LittleEndian.Uint64(src[p-length:])
			if p < match {
				d = d >> (8 * (match - p)) << (8 * (match - p)) // some of it is in a match
			}
			if d == 0 {
				continue
			}
			first, end := p+bits.TrailingZeros64(d)>>3, p+8-bits.LeadingZeros64(d)>>3
			from := match // literals would go on there
			if first >= match+minMatch {
				e.append(src, literals, match, first, e.offset(length, match > literals))
				literals, from = first, first
			}
			match = end
			if like == 0 {
				continue
			}
			n := commonTo(src, from, at+length, like)
			if from+n < end && from < p { // what a word before ends with differs, which a number's does often
				from = p
				n = commonTo(src, from, at+length, like)
			}
			if n >= least && from+n >= end {
				e.append(src, literals, from, from+n, e.offset(like, from > literals))
				literals, match = from+n, from+n
				if match == at+length {
					break
				}
			}
		}
		at += length
	}
	if at < match+minMatch {
		return literals
	}
	e.append(src, literals, match, at, e.offset(length, match > literals))
	return at
}

// repeatAsThere takes a stretch that is as the one before up to the first place that differs, and from there, or from behind what differs
// in that word, as in another run, if the last stretch was such a one: then both matches are as far away as those before, the
// distances of which need not be looked for. It is false if the stretch is another one.
func (e *Encoder) repeatAsThere(src []byte, at, length int, words []uint16, like int) bool {
	if like == 0 || e.recent.last != uint32(like) || e.recent.before != uint32(length) {
		return false
	}
	for _, word := range words {
		p := at + int(word)
		d := binary.LittleEndian.Uint64(src[p:]) ^ binary.LittleEndian.Uint64(src[p-length:])
		if d == 0 {
			continue
		}
		first, end := p+bits.TrailingZeros64(d)>>3, at+length
		there := first
		if !isAsThere(src, there, end, like) {
			there = p + 8 - bits.LeadingZeros64(d)>>3
			if !isAsThere(src, there, end, like) {
				return false
			}
		}
		if first < at+minMatch {
			return false
		}
		k := len(e.sequences)
		e.sequences = e.sequences[:k+1] // find made room
		e.again(&e.sequences[k], uint32(first-at-3))
		if there > first {
			e.append(src, first, there, end, 2) // with literals, the distance before the last is the second one
			return true
		}
		e.sequences = e.sequences[:k+2]
		e.again(&e.sequences[k+1], uint32(end-first-3))
		return true
	}
	return false
}

// isAsThere says whether src is, from at to end, long enough for a match at a distance.
func isAsThere(src []byte, at, end, distance int) bool {
	return end >= at+minLike && string(src[at:end]) == string(src[at-distance:end-distance])
}

// again makes a sequence without literals, of a match that is as far away as the one before the last.
func (e *Encoder) again(q *sequence, match uint32) {
	q.literals, q.match, q.offset = 0, match, 1
	q.literalCode, q.offsetCode, q.matchCode = 0, 0, matchCode(match)
	q.more = matchBits[q.matchCode&codeMask] != 0
	e.literalLengths.counts[0]++
	e.offsets.counts[0]++
	e.matchLengths.counts[q.matchCode&codeMask]++
}

// offset is how the format says that a match is at a distance. It has no short way to say the last one where no literals are
// before it.
func (e *Encoder) offset(distance int, literals bool) uint32 {
	d, r := uint32(distance), e.recent
	if literals && d == r.last {
		return 1
	}
	value := uint32(1)
	if literals {
		value = 2
	}
	switch d {
	case r.before:
		e.recent = recent{d, r.last, r.third}
		return value
	case r.third:
		e.recent = recent{d, r.last, r.before}
		return value + 1
	default:
		e.recent = recent{d, r.last, r.before}
		return d + 3
	}
}
