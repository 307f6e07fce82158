// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package column

import "sync"

const (
	pieceBits = 11
	// pieceSize is how many samples a piece has: 48 KiB of them.
	pieceSize = 1 << pieceBits
)

// pieces are those not in use. The garbage collector takes idle ones.
var pieces = sync.Pool{New: func() any { return new([pieceSize]Sample) }}

// samples is a list in pieces: it grows to the size of a request without being copied, and buffers share idle pieces.
// The first piece begins small, since there may be thousands of tenants with few samples each.
type samples struct {
	pieces [][]Sample // all but the first are of pieceSize
	n      int
}

// Len is how many samples there are.
func (s *samples) Len() int { return s.n }

// At is the i-th sample.
func (s *samples) At(i int) *Sample { return &s.pieces[i>>pieceBits][i&(pieceSize-1)] }

// Add adds one sample, with unspecified content.
func (s *samples) Add() *Sample {
	i, at := s.n>>pieceBits, s.n&(pieceSize-1)
	if i == len(s.pieces) || at == len(s.pieces[i]) {
		s.grow()
	}
	s.n++
	return &s.pieces[i][at]
}

// Together returns the adjacent samples from first on, up to end.
func (s *samples) Together(first, end int) []Sample {
	piece := s.pieces[first>>pieceBits][first&(pieceSize-1):]
	return piece[:min(len(piece), end-first)]
}

// More adds one or more adjacent samples, n at most, with unspecified content.
func (s *samples) More(n int) []Sample {
	i, at := s.n>>pieceBits, s.n&(pieceSize-1)
	if i == len(s.pieces) || at == len(s.pieces[i]) {
		s.grow()
	}
	room := s.pieces[i][at:]
	room = room[:min(n, len(room))]
	s.n += len(room)
	return room
}

func (s *samples) grow() {
	switch {
	case s.n == 0:
		s.pieces = append(s.pieces, make([]Sample, 16))
	case s.n < pieceSize:
		s.pieces[0] = append(s.pieces[0], make([]Sample, s.n)...)[:2*s.n]
	default:
		s.pieces = append(s.pieces, pieces.Get().(*[pieceSize]Sample)[:])
	}
}

// Some returns the samples from first to end: in place, or copied to dst if they are in several pieces. It also returns
// the memory to pass as dst next time.
func (s *samples) Some(dst []Sample, first, end int) (found, room []Sample) {
	at := first & (pieceSize - 1)
	if n := end - first; n == 0 || at+n <= pieceSize {
		return s.pieces[first>>pieceBits][at : at+n], dst
	}
	dst = dst[:0]
	for first < end {
		piece := s.pieces[first>>pieceBits][first&(pieceSize-1):]
		n := min(len(piece), end-first)
		dst = append(dst, piece[:n]...)
		first += n
	}
	return dst, dst
}

// clear empties the list, and frees all pieces but the first.
func (s *samples) clear() {
	for i := 1; i < len(s.pieces); i++ {
		pieces.Put((*[pieceSize]Sample)(s.pieces[i]))
		s.pieces[i] = nil
	}
	s.pieces, s.n = s.pieces[:min(len(s.pieces), 1)], 0
}
