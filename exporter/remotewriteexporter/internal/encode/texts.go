// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block/frame"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block/wire"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/column"
)

// text says where a value of the resource is in a message of 1.0, and whether there are messages of the run with another.
type text struct {
	at, size int
	id       uint32 // of the symbol that is there
	value    int    // its place among the values of the resource
	varies   bool
}

// writeTexts is writeRun for 1.0.
func (w *flusher) writeTexts(s *cache.Row, cells []column.Sample, room int) int {
	c := &cells[0]
	if !lone(cells) || w.full(len(w.body), s, c.Of) {
		return 0
	}
	if w.prepared != s.Series {
		w.prepare(s, c.Time)
	}
	begin := len(w.body)
	body, content := wire.Begin(w.body, wire.SeriesV1)
	body = w.appendTexts(body, begin, s, w.resources[c.Of])
	body, number := wire.AppendNumber(body, begin, c.Bits, c.Time, 0)
	length := len(body)
	w.body = wire.End(body, content)
	moved := len(w.body) - length // what made room for a longer length
	number.Value += moved
	for i := range w.texts {
		w.texts[i].at += moved
	}
	w.head.MinTime, w.head.MaxTime = min(w.head.MinTime, c.Time), max(w.head.MaxTime, c.Time)
	if !number.Fixed() {
		return 1
	}
	message := w.body[begin:]
	done := 1 + w.repeatTexts(s, message, number, cells[1:], room-1)
	if done >= minRun {
		w.tellTexts(begin, len(message), done, number, c)
	}
	return done
}

// appendTexts is appendLabels that takes note of where the values of the resource are, from the index message of dst on.
func (w *flusher) appendTexts(dst []byte, message int, s *cache.Row, r *cache.ResourceLabels) []byte {
	w.texts = w.texts[:0]
	at := 0
	for _, c := range w.cuts {
		dst = append(dst, w.labels[at:c.end]...)
		id := r.Values[c.i]
		value := w.text[id]
		dst = wire.AppendLabel(dst, s.Layout.Schema.Names[c.i], value)
		w.texts = append(w.texts, text{at: len(dst) - len(value) - message, size: len(value), id: id, value: c.i})
		at = c.end
	}
	return append(dst, w.labels[at:]...)
}

// repeatTexts is repeat for 1.0: values of the resource fit that are as long.
func (w *flusher) repeatTexts(s *cache.Row, message []byte, number wire.Number, cells []column.Sample, room int) int {
	body, first, last := w.body, w.head.MinTime, w.head.MaxTime
	done := 0
	for ; done < room; done++ {
		c := &cells[done]
		if !lone(cells[done:]) || !number.Fits(c.Time, 0) || w.full(len(body), s, c.Of) {
			break
		}
		at := len(body)
		body = append(body, message...)
		next := body[at:]
		if !w.fillTexts(next, w.resources[c.Of]) {
			body = body[:at]
			break
		}
		number.Put(next, c.Bits, c.Time, 0)
		first, last = min(first, c.Time), max(last, c.Time)
	}
	w.body, w.head.MinTime, w.head.MaxTime = body, first, last
	return done
}

// fillTexts puts the values of a resource into a message. It is false if one is longer or shorter than what is there.
func (w *flusher) fillTexts(message []byte, r *cache.ResourceLabels) bool {
	for i := range w.texts {
		x := &w.texts[i]
		id := r.Values[x.value]
		if id == x.id {
			continue
		}
		value := w.text[id]
		if len(value) != x.size {
			return false
		}
		copy(message[x.at:], value)
		x.varies = true
	}
	return true
}

// tellTexts is tell for 1.0.
func (w *flusher) tellTexts(begin, length, count int, number wire.Number, c *column.Sample) {
	r := frame.Run{At: begin + length, Length: length, Count: count - 1}
	end := 0 // of what is told so far
	differ := func(at, size int) bool {
		at = max(at, end)
		words := (size + 7) / 8
		end = at + 8*words
		return r.Differ(at, words)
	}
	for i := range w.texts {
		if x := &w.texts[i]; x.varies && x.at+x.size > end && !differ(x.at, x.size) {
			return
		}
	}
	if !differ(number.Value, length-max(number.Value, end)) {
		return
	}
	w.note(r, alike{length: length, value: number.Value, place: c.Of, bits: c.Bits})
}
