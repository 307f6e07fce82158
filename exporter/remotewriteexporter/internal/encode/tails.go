// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"encoding/binary"
	"slices"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block/wire"
)

const (
	// maxStamps bounds for how many messages of a request it is known what their tails are made of: 24 bytes each.
	maxStamps = 1 << 14
	// maxShapes is of how many shapes tails are, and maxTail the longest that is copied.
	maxShapes = 64
	maxTail   = 96
	// piece is how many bytes are copied at a time: as many as fit into a register.
	piece = 16
)

// tails are what the messages of a run have behind their numbers, up to the last label that is not the same in all of them: times, and
// labels of the target. Those of the next run mostly are the same ones. Then they are copied, in place of being put together again.
type tails struct {
	shape        uint32 // one more than its number; 0 if nothing is known of them
	first, count uint32 // in stamps
}

// tailHole says which value is where in a tail. Those of the point may be before the number, too, where they are the same in all messages.
type tailHole struct {
	at    int // -1 before the number
	width int // of the point's values, 0 if it is of the resource
	value uint32
}

// tailStamp is what a tail of a shape is made of.
type tailStamp struct {
	place       uint32
	values      uint32 // of the point, where series of several points come together
	time, start int64
}

// tailing is a run that is being written.
type tailing struct {
	tails

	shared     bool // so far they are those of the other
	size       int  // of a tail
	other      tails
	at, length int // where in the body the number of the other's second message is, and how long each is
}

// beginTails begins with the tail of a message, behind a number. Labels are parted at cut, and those behind that moved by shift.
func (w *flusher) beginTails(of *layout, message []byte, number wire.Number, cut, shift int, a alike, s tailStamp) {
	t := &w.writing
	*t = tailing{}
	width := 0
	if s.values != 0 {
		width = len(of.keys.names)
	}
	t.shape, t.size = w.shapeOf(number.Value+8, cut, shift, width)
	if t.shape == 0 {
		return
	}
	w.like = append(append(w.like[:0], message...), make([]byte, piece)...)
	tail := message[number.Value+8:][:t.size]
	for _, key := range a.keys() {
		p := w.alikeOf(key)
		if p == nil || p.tails.shape != t.shape || w.stamps[p.tails.first] != s {
			continue
		}
		if first := int(p.at) - int(p.length) + 8; string(w.body[first:first+t.size]) == string(tail) {
			t.shared, t.other, t.at, t.length = true, p.tails, int(p.at), int(p.length)
			t.first, t.count = p.tails.first, 1
			return
		}
	}
	t.first = uint32(len(w.stamps))
	w.stamp(0, s)
}

// shapeOf is one more than the number of the shape of tails, and how long they are. It is 0 where there is nothing to be copied. Width is how
// many values a point has, 0 if these are the same in all messages.
func (w *flusher) shapeOf(from, cut, shift, width int) (shape uint32, size int) {
	if shift == 0 || len(w.stamps) >= maxStamps {
		return 0, 0
	}
	holes, end := w.tailHoles[:0], from
	for i := range w.prefix.resource {
		x := &w.prefix.resource[i]
		holes, end = append(holes, tailHole{x.at + shift - from, 0, x.value}), max(end, x.at+shift+x.size)
	}
	for i := range w.prefix.own {
		x := &w.prefix.own[i]
		switch {
		case width == 0:
		case x.at < cut:
			holes = append(holes, tailHole{-1, width, x.value})
		default:
			holes, end = append(holes, tailHole{x.at + shift - from, width, x.value}), max(end, x.at+shift+x.size)
		}
	}
	w.tailHoles = holes
	if end-from > maxTail {
		return 0, 0
	}
	for i, known := range w.shapes {
		if slices.Equal(known, holes) {
			return uint32(i + 1), end - from
		}
	}
	if len(w.shapes) == maxShapes {
		return 0, 0
	}
	n := len(w.shapes)
	w.shapes = slices.Grow(w.shapes, 1)[:n+1]
	w.shapes[n] = append(w.shapes[n][:0], holes...)
	return uint32(n + 1), end - from
}

// stamp notes what the tail of the message with a number is made of.
func (w *flusher) stamp(n int, s tailStamp) {
	t := &w.writing
	if t.shape == 0 || n != int(t.count) || len(w.stamps) >= maxStamps {
		return
	}
	if t.shared {
		if n < int(t.other.count) && w.stamps[int(t.first)+n] == s {
			t.count = uint32(n + 1)
			return
		}
		w.leave(n)
	}
	w.stamps = append(w.stamps, s)
	t.count++
}

// leave has the tails of a run, of which there are n, be its own.
func (w *flusher) leave(n int) {
	t := &w.writing
	first := len(w.stamps)
	w.stamps = append(w.stamps, w.stamps[t.first:int(t.first)+n]...)
	t.shared, t.first = false, uint32(first)
}

// noTail is that of a message which differs before its number from the first one of its run: no other may be copied from it.
var noTail = tailStamp{place: ^uint32(0)}

// endTails says that a run is as long as it is. They are forgotten unless it is told of.
func (w *flusher) endTails(told bool) tails {
	t := w.writing.tails
	if !told && !w.writing.shared && t.shape != 0 {
		w.stamps = w.stamps[:t.first]
	}
	return t
}

// isLike says whether the message with a number has the tail that the one of the other run has.
func (w *flusher) isLike(n int, s tailStamp) bool {
	t := &w.writing
	return n < int(t.other.count) && w.stamps[int(t.other.first)+n] == s
}

// appendLike appends the n-th message of a run to the body, which has room for it: it is what the one given is, but for its number and its tail.
func (w *flusher) appendLike(body, message []byte, n int, number wire.Number, bits uint64) []byte {
	t := &w.writing
	at, from := len(body), number.Value+8
	end := at + len(message)
	if cap(body) < end+maxTail+piece {
		body = slices.Grow(body, end+maxTail+piece-at)
	}
	made := body[at : end+maxTail+piece]
	for i := 0; i < from; i += piece { // and something of the tail, or all of it
		*(*[piece]byte)(made[i:]) = *(*[piece]byte)(w.like[i:])
	}
	binary.LittleEndian.PutUint64(made[number.Value:], bits)
	tail := body[t.at+(n-1)*t.length+8:]
	for i := 0; i < t.size; i += piece {
		*(*[piece]byte)(made[from+i:]) = *(*[piece]byte)(tail[i:])
	}
	if rest := from + t.size; rest < len(message) {
		copy(made[rest:], message[rest:])
	}
	return body[:end]
}
