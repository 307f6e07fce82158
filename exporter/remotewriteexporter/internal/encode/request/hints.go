// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"cmp"
	"slices"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block/frame"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block/wire"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/column"
)

// hints tell the compressor about a request's body: which consecutive messages differ in a few places only, and which
// earlier ones are like them. The writer of messages knows this without comparing anything.
type hints struct {
	Known frame.Known
	reach int // how far back the format can refer

	latest      []latestRun
	epoch       uint32 // of latest; counts requests
	spans       []span // scratch
	latestSpans []span // of the latest runs
}

// begin drops the hints about the request before.
func (h *hints) begin(reach int) {
	if h.epoch++; h.epoch == 0 { // after 4 billion requests an old stamp would look new
		clear(h.latest)
		h.epoch = 1
	}
	h.reach = reach
	h.Known.Random = frame.Stretch{}
	h.Known.Runs, h.Known.Echoes, h.latestSpans = h.Known.Runs[:0], h.Known.Echoes[:0], h.latestSpans[:0]
}

// addMessages adds a hint about count messages, the first of which is at begin. They are of one series, or, with a group's
// labels, each of another one of the layout. If they may differ in too many places, there is no hint.
func (h *hints) addMessages(p *prefix, begin, length, count, shift int, number wire.Number, a runTraits, of *parting) {
	r := frame.Run{At: begin + length, Length: length, Count: count - 1, Number: number.Value}
	a.length, a.value = length, number.Value
	h.spans = append(h.spans[:0], span{number.Value, number.Value + 8*number.Words()})
	for _, x := range p.resource {
		h.spans = append(h.spans, span{x.at + shift, x.at + x.size + shift})
	}
	if of != nil {
		for _, x := range p.own {
			if x.at >= of.cut {
				x.at += shift
			}
			h.spans = append(h.spans, span{x.at, x.at + x.size})
		}
	}
	if !h.repeatPlaces(&r) && !h.setPlaces(&r, number.Value) {
		return
	}
	h.addRun(r, a)
}

// repeatPlaces reports whether messages may differ in the same places as those of the last run, as is usual, and then copies
// the places to the run.
func (h *hints) repeatPlaces(r *frame.Run) bool {
	last := len(h.Known.Runs) - 1
	if last < 0 || !slices.Equal(h.spans, h.latestSpans) {
		return false
	}
	r.DifferAs(&h.Known.Runs[last])
	return true
}

// span is a part of a message.
type span struct{ at, end int }

// setPlaces sets the places where a run's messages may differ, including a number. It returns false if there are too many.
func (h *hints) setPlaces(r *frame.Run, number int) bool {
	h.latestSpans = append(h.latestSpans[:0], h.spans...)
	spans := h.spans
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.at, b.at) })
	covered := 0 // up to this offset
	for i := 0; i < len(spans); {
		at, end := max(spans[i].at, covered), spans[i].end
		isNumber := spans[i].at == number
		for i++; i < len(spans) && spans[i].at != number && spans[i].at < at+(end-at+7)/8*8; i++ { // which the words before reach anyway
			end = max(end, spans[i].end)
		}
		if end <= at {
			continue
		}
		words := (end - at + 7) / 8
		if before := number - 8*words; !isNumber && at < number && at > before && before >= covered {
			at = before // so that the last word ends before the number's first
		}
		covered = at + 8*words
		if !r.Differ(at, words) {
			h.latestSpans = h.latestSpans[:0] // a value that no run has
			return false
		}
	}
	return true
}

// addTexts is addMessages for 1.0.
func (h *hints) addTexts(texts []text, begin, length, count int, number wire.Number, c *column.Sample) {
	r := frame.Run{At: begin + length, Length: length, Count: count - 1}
	end := 0 // of what is covered so far
	differ := func(at, size int) bool {
		at = max(at, end)
		words := (size + 7) / 8
		end = at + 8*words
		return r.Differ(at, words)
	}
	for i := range texts {
		if x := &texts[i]; x.varies && x.at+x.size > end && !differ(x.at, x.size) {
			return
		}
	}
	if !differ(number.Value, length-max(number.Value, end)) {
		return
	}
	h.addRun(r, runTraits{length: length, value: number.Value, place: c.Of, bits: c.Bits})
}

// echo adds a hint about bytes that occurred before.
func (h *hints) echo(at, from uint32) {
	n := len(h.Known.Echoes)
	h.Known.Echoes = slices.Grow(h.Known.Echoes, 1)[:n+1]
	x := &h.Known.Echoes[n]
	x.At, x.From = at, from
}
