// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block/wire"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/column"
)

// writeTexts is writeRun for 1.0.
func (w *Writer) writeTexts(s *cache.Row, cells []column.Sample, room int) int {
	c := &cells[0]
	if !isOnlyNumber(cells) || w.mayOverflow(len(w.body), s, c.Of) {
		return 0
	}
	w.prepareSeries(s, c.Time)
	begin := len(w.body)
	body, content := wire.Begin(w.body, wire.SeriesV1)
	body = w.spelling.appendNoting(body, begin, s, w.refs.resources[c.Of])
	body, number := wire.AppendNumber(body, begin, c.Bits, c.Time, 0)
	length := len(body)
	w.body = wire.End(body, content)
	moved := len(w.body) - length // what made room for a longer length
	number.Value += moved
	for i := range w.spelling.texts {
		w.spelling.texts[i].at += moved
	}
	w.head.MinTime, w.head.MaxTime = min(w.head.MinTime, c.Time), max(w.head.MaxTime, c.Time)
	if !number.Fixed() {
		return 1
	}
	message := w.body[begin:]
	done := 1 + w.repeatTexts(s, message, number, cells[1:], room-1)
	if done >= minRun {
		w.Hints.addTexts(w.spelling.texts, begin, len(message), done, number, c)
	}
	return done
}

// repeatTexts is repeat for 1.0, where values of the resource must have the same length.
func (w *Writer) repeatTexts(s *cache.Row, message []byte, number wire.Number, cells []column.Sample, room int) int {
	body, first, last := w.body, w.head.MinTime, w.head.MaxTime
	done := 0
	for ; done < room; done++ {
		c := &cells[done]
		if !isOnlyNumber(cells[done:]) || !number.Fits(c.Time, 0) || w.mayOverflow(len(body), s, c.Of) {
			break
		}
		at := len(body)
		body = append(body, message...)
		next := body[at:]
		if !w.spelling.fill(next, w.refs.resources[c.Of]) {
			body = body[:at]
			break
		}
		number.Put(next, c.Bits, c.Time, 0)
		first, last = min(first, c.Time), max(last, c.Time)
	}
	w.body, w.head.MinTime, w.head.MaxTime = body, first, last
	return done
}
