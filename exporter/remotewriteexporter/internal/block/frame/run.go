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
	// minLike is how long a match with another run must be to be used instead of one with the stretch before; minDrift
	// is that length where the distance changes with each stretch, which takes two or three bytes.
	minLike  = 4
	minDrift = 8
)

// Known are hints about a request before it is compressed. Runs are in order and do not overlap, echoes are in order.
type Known struct {
	Runs   []Run
	Echoes []Echo // for snappy
	Random Stretch
}

// Stretch is a random part of a request, which Move does not affect. If it is long enough, it has blocks of its own in
// a zstd frame, with a code made for it alone, and is not searched for matches.
type Stretch struct{ At, End int }

// leastRandom is the length from which on that is worth the cost of further blocks.
const leastRandom = 4 << 10

// cut returns where a block that begins at at must end, and whether it is within the stretch.
func (s *Stretch) cut(at, end int) (cut int, within bool) {
	switch {
	case s.End-s.At < leastRandom || at >= s.End:
		return end, false
	case at < s.At:
		return min(end, s.At), false
	default:
		return min(end, s.End), true
	}
}

// leastMessage is about the minimum length of a message with an echo.
const leastMessage = 32

// Covered is about how many bytes the hints are about.
func (k *Known) Covered() int {
	covered := len(k.Echoes) * leastMessage
	for i := range k.Runs {
		covered += k.Runs[i].Count * k.Runs[i].Length
	}
	return covered
}

// Move shifts all hints by the given number of bytes.
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

// Echo says that the bytes from At on, about up to the next echo, are probably those from From on. The encoder checks
// it. It is for formats that have no short way to repeat a distance.
type Echo struct{ At, From uint32 }

// Run says where no search is needed: Count stretches of Length bytes, the first at At, each of which equals the Length
// bytes before it except where Differ says. The encoder does not check that.
type Run struct {
	At, Length, Count int
	// Like is the distance to the stretches of an earlier run which may differ from each other in the same way at some
	// places, 0 if there are none. The encoder checks it. If those stretches have another length, the distance grows by
	// Drift with each stretch.
	Like, Drift int
	// Number is the offset in a stretch of the eight bytes of a number, which differ most often. 0 if there is none.
	Number int

	words [maxWords]uint16 // offsets in a stretch of eight bytes that may differ
	used  uint8
}

// Differ records that the given number of eight-byte words from offset at on may differ in each stretch. Words must be
// given in order and must not overlap. The last may reach into the next stretch; that one begins like all others there
// unless it has words of its own there. It returns false if there is no room to record them.
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
		r.Count-- // what follows the last stretch may differ
	}
	return true
}

// DifferAs records that stretches may differ where those of another run may.
func (r *Run) DifferAs(other *Run) {
	r.words, r.used = other.words, other.used
	if r.used > 0 && int(r.words[r.used-1])+8 > r.Length {
		r.Count-- // as in Differ
	}
}

// skip drops the stretches that begin before at.
func (r *Run) skip(at int) {
	if n := (at - r.At + r.Length - 1) / r.Length; n > 0 {
		r.At += n * r.Length
		r.Like += n * r.Drift
		r.Count -= n
	}
}

// likeDistance is the distance to the stretch of another run that is like this one, 0 if there is none within reach. A match
// may begin a little before the stretch, and must be within src there, too.
func (r *Run) likeDistance(stretch, reach int) int {
	like := r.Like + stretch*r.Drift
	if r.Like == 0 || like <= r.Length || like >= reach || like > r.At+stretch*r.Length-minMatch {
		return 0
	}
	return like
}

// repeat encodes the first n stretches of a run. No sequence covers what follows anchor; it returns the new anchor.
func (e *Encoder) repeat(src []byte, r *Run, n, anchor int) int {
	at, length, words, least := r.At, r.Length, r.words[:r.used], minLike
	if r.Drift != 0 {
		least = minDrift
	}
	literals, match := anchor, at // of the next sequence
	for i := 0; i < n; i++ {
		like := r.likeDistance(i, Window)
		if literals == at && match == at && r.Number == 0 && e.repeatAsOther(src, at, length, words, like) { // fast path
			at += length
			literals, match = at, at
			continue
		}
		if literals == match && like > 0 { // fast path
			done := e.repeatPairs(src, r, at, match, like, n-i)
			at += done * length
			match += done * length
			literals = match
			if i += done; i == n {
				break
			}
			like = r.likeDistance(i, Window)
		}
		for _, word := range words {
			p := at + int(word)
			if p+8 <= match { // it is within a match
				continue
			}
			d := binary.LittleEndian.Uint64(src[p:]) ^ binary.LittleEndian.Uint64(src[p-length:])
			if p < match {
				d = d >> (8 * (match - p)) << (8 * (match - p)) // some of it is within a match
			}
			if over := p + 8 - (at + length); over > 0 {
				d = d << (8 * over) >> (8 * over) // some of it is in the next stretch
			}
			if d == 0 {
				continue
			}
			first, end := p+bits.TrailingZeros64(d)>>3, p+8-bits.LeadingZeros64(d)>>3
			from := match // literals would continue there
			if first >= match+minMatch {
				e.append(src, literals, match, first, e.offset(length, match > literals))
				literals, from = first, first
			}
			match = end
			if like == 0 {
				continue
			}
			n := commonTo(src, from, at+length, like)
			if from+n < end && from < p { // the bytes at the end of the word before differ, as those of a number often do
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

// again are the sequences, by length, of matches without literals at the distance before the last one.
var again = func() (all [192]sequence) {
	for n := minMatch; n < len(all); n++ {
		all[n].code(0, uint32(n-3), 1)
		all[n].open(0, uint32(n-3), 1)
	}
	return all
}()

// repeatPairs encodes up to n stretches from the one at at on, each as two matches: from match to the first byte of the
// number that differs, as in the stretch before, and the rest, as in another run, up to where the match before ended in
// its stretch. Then both distances are those of the stretch before. It continues for as long as stretches allow that;
// it returns how many did.
//
// What a stretch has after its second match belongs to the first match of the next stretch, or to none if it is the
// last. So it checks that these bytes equal those of the stretch before, since the callers rely on it for all from
// match to the next stretch.
func (e *Encoder) repeatPairs(src []byte, r *Run, at, match, like, n int) (done int) {
	number, length, rest := r.Number, r.Length, at-match
	before, behind := number+rest, length-rest-number-8 // bytes of both matches besides the number's
	if number == 0 || rest < 0 || before < minMatch || behind < 8 || max(before, behind)+8 >= len(again) ||
		r.Drift != 0 || e.recent.last != uint32(like) || e.recent.before != uint32(length) {
		return 0
	}
	words := r.words[:r.used] // those before the number
	for i, word := range words {
		if int(word) >= number {
			words = words[:i]
			break
		}
	}
	heads, tails := again[before:before+9], again[behind:behind+9]
	k, used := len(e.sequences), len(e.literals)
	sequences := e.sequences[k : k+2*n] // find reserved room
	literals := e.literals[:cap(e.literals)]
	lengths, lasts := &e.matchLengths.counts, [9]uint32{}
	for ; done < n; done++ {
		var differences uint64
		for _, word := range words {
			at := at + int(word)
			differences |= binary.LittleEndian.Uint64(src[at:]) ^ binary.LittleEndian.Uint64(src[at-length:])
		}
		for left := rest; left > 0; left -= 8 {
			last := at + length - rest + left - 8
			d := binary.LittleEndian.Uint64(src[last:]) ^ binary.LittleEndian.Uint64(src[last-length:])
			differences |= d >> (8 * max(8-left, 0)) // of which part is in the second match
		}
		here, there := src[at+number:at+length], src[at+number-like:at+length-like]
		value := binary.LittleEndian.Uint64(here)
		first := bits.TrailingZeros64(value^binary.LittleEndian.Uint64(src[at+number-length:])) >> 3
		end := max(8-bits.LeadingZeros64(value^binary.LittleEndian.Uint64(there))>>3, first)
		differences |= binary.LittleEndian.Uint64(here[behind:]) ^ binary.LittleEndian.Uint64(there[behind:])
		for i := 8; i < behind; i += 8 {
			differences |= binary.LittleEndian.Uint64(here[i:]) ^ binary.LittleEndian.Uint64(there[i:])
		}
		if differences != 0 {
			break
		}
		count := end - first
		binary.LittleEndian.PutUint64(literals[used:], value>>(8*first&63))
		used += count
		two := sequences[2*done : 2*done+2]
		two[0], two[1] = heads[first], tails[8-end]
		farther := uint8(count+7) >> 3 // with literals, the distance before the last is the second one, which takes one bit
		two[1].literalCode, two[1].offsetCode = uint8(count), farther
		two[1].bits += farther
		lengths[two[0].matchCode&codeMask]++
		lengths[two[1].matchCode&codeMask]++
		lasts[count]++
		at += length
	}
	e.sequences, e.literals = e.sequences[:k+2*done], e.literals[:used]
	e.literalLengths.counts[0] += uint32(done)
	e.offsets.counts[0] += uint32(done) + lasts[0]
	e.offsets.counts[1] += uint32(done) - lasts[0]
	for i, count := range lasts {
		e.literalLengths.counts[i] += count
	}
	return done
}

// repeatAsOther encodes a stretch that equals the one before up to the first difference, and from there, or from after
// the differences in that word, equals another run, if the last stretch was encoded like that: then both distances are
// known. It returns false for other stretches.
func (e *Encoder) repeatAsOther(src []byte, at, length int, words []uint16, like int) bool {
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
		if !matchesAt(src, there, end, like) {
			there = p + 8 - bits.LeadingZeros64(d)>>3
			if !matchesAt(src, there, end, like) {
				return false
			}
		}
		if first < at+minMatch {
			return false
		}
		e.append(src, at, at, first, 1)
		offset := uint32(1)
		if there > first {
			offset = 2 // with literals, the distance before the last is the second one
		}
		e.append(src, first, there, end, offset)
		return true
	}
	return false
}

// matchesAt reports whether src[at:end] is a match at a distance, and long enough.
func matchesAt(src []byte, at, end, distance int) bool {
	return end >= at+minLike && string(src[at:end]) == string(src[at-distance:end-distance])
}

// offset is the format's code of a distance. It has no short code for the last distance if no literals come before the
// match.
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
