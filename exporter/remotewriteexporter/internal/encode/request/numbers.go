// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"github.com/godwit-otel/godwit/internal/promwrite"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block/wire"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/column"
)

const (
	// minRun is the number of messages from which on the compressor gets a hint.
	minRun = 5
	// maxMessage is the longest message whose length takes one byte.
	maxMessage = 2 + 0x7f
)

// writeNumbers appends series messages with one number each and nothing else, as far as cells allow and there is room.
// It returns how many.
func (w *Writer) writeNumbers(b *column.Buffer, slot uint32, s *cache.Row, cells []column.Sample) int {
	if w.sheet.hasExemplars(slot) {
		return 0
	}
	done, room := 0, min(len(cells), max(w.sampleLimit-w.points(), 0))
	for done < room {
		var n int
		if w.format.Version == promwrite.V2 {
			n = w.writeRun(b, s, cells[done:], room-done)
		} else {
			n = w.writeTexts(s, cells[done:], room-done)
		}
		if n == 0 {
			break
		}
		done += n
	}
	w.head.Samples += done
	return done
}

// writeRun appends a message, and those after it with the same length, up to room. It returns how many. It looks at
// cells beyond the room to see whether the last is the only one of its resource.
func (w *Writer) writeRun(b *column.Buffer, s *cache.Row, cells []column.Sample, room int) int {
	c := &cells[0]
	if !isOnlyNumber(cells) || w.mayOverflow(len(w.body), s, c.Of) {
		return 0
	}
	begin := len(w.body)
	w.prefix.setSeries(s, c.Of)
	cut := 0
	if len(cells) >= minRun {
		cut = w.prefix.cut
	}
	number, shift := w.appendFirst(b, s, c, cut)
	message := w.body[begin:]
	done := 1
	if len(message) <= maxMessage && number.Fixed() {
		done += w.repeat(b, s, message, shift, number, cells[1:], room-1)
	}
	if done >= minRun {
		w.Hints.addMessages(&w.prefix, begin, len(message), done, shift, number, runTraits{place: c.Of, bits: c.Bits}, nil)
	}
	return done
}

// appendFirst appends a message with a number, after the prefix. If similar ones follow, the number may be between the labels,
// at a cut: shift is how far the labels after it have moved.
func (w *Writer) appendFirst(b *column.Buffer, s *cache.Row, c *column.Sample, cut int) (number wire.Number, shift int) {
	begin := len(w.body)
	var body []byte
	if cut > 0 {
		body, number, shift = w.appendSplit(w.body, c, b.Start(c), cut)
	} else {
		body, number = wire.AppendNumber(append(w.body, w.prefix.bytes...), begin, c.Bits, c.Time, b.Start(c))
	}
	body = append(body, w.prefix.metadata(s.Layout.Meta)...)
	w.body = wire.End(body, begin+2)
	w.head.MinTime, w.head.MaxTime = min(w.head.MinTime, c.Time), max(w.head.MaxTime, c.Time)
	return number, shift
}

// appendSplit appends a message with the number between the labels: after those of the series, before the first one
// that is the target's own. So what the messages of a target have in common, its timestamps and its labels, is in one
// piece, which compression finds in the run before. Labels remain in their order. It returns how far those after the
// cut have moved.
func (w *Writer) appendSplit(dst []byte, c *column.Sample, start int64, cut int) (body []byte, number wire.Number, shift int) {
	p := &w.prefix
	const head = 4 // tags of the message and of the labels, and their lengths
	begin := len(dst)
	dst = append(dst, p.bytes[:2]...)
	if cut > head {
		dst = append(dst, byte(wire.RefsV2), byte(cut-head))
		dst = append(dst, p.bytes[head:cut]...)
	}
	dst, number = wire.AppendNumber(dst, begin, c.Bits, c.Time, start)
	dst = append(dst, byte(wire.RefsV2), byte(len(p.bytes)-cut))
	shift = len(dst) - begin - cut
	return append(dst, p.bytes[cut:]...), number, shift
}

// repeat appends messages that equal the given one except for the values of the resource, the number and its
// timestamps, up to room. Values of the resource are shift bytes further on than in the prefix. It returns how many.
func (w *Writer) repeat(b *column.Buffer, s *cache.Row, message []byte, shift int, number wire.Number, cells []column.Sample, room int) int {
	body, first, last := w.body, w.head.MinTime, w.head.MaxTime
	done, safe := 0, w.roomFor(s, len(message))
	for ; done < room; done++ {
		c := &cells[done]
		if !isOnlyNumber(cells[done:]) { // checked first: the extra of a histogram is no index of starts
			break
		}
		start := b.Start(c)
		if !number.Fits(c.Time, start) || done >= safe && w.mayOverflow(len(body), s, c.Of) {
			break
		}
		at := len(body)
		body = append(body, message...)
		next := body[at:]
		if !w.prefix.fill(next[shift:], c.Of) {
			body = body[:at]
			break
		}
		number.Put(next, c.Bits, c.Time, start)
		first, last = min(first, c.Time), max(last, c.Time)
	}
	w.body, w.head.MinTime, w.head.MaxTime = body, first, last
	return done
}

// isOnlyNumber reports whether the first cell is a number, and the only one of its resource.
func isOnlyNumber(cells []column.Sample) bool {
	return cells[0].Extra&column.IsHistogram == 0 && (len(cells) == 1 || cells[1].Of != cells[0].Of)
}

// mayOverflow reports whether there may be no room for a number of a series of the resource at a place, after length bytes.
func (w *Writer) mayOverflow(length int, s *cache.Row, place uint32) bool {
	return len(w.refs.symbols)+len(w.meta)+length-w.room+int(s.Series.Weight)+maxNumber+w.sheet.weights[place] > w.rawLimit
}

// roomFor is for how many more messages of a length there is certainly room, whatever resources their series are of.
func (w *Writer) roomFor(s *cache.Row, length int) int {
	left := w.rawLimit - w.size() - int(s.Series.Weight) - maxNumber - w.sheet.heaviest
	return max(left, 0) / (length + w.sheet.heaviest)
}
