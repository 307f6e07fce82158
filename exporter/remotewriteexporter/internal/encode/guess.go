// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block/frame"
)

// minGuess is how many messages of one length are worth a word to compression.
const minGuess = 3

// evenly are messages of one length behind each other that are of no run: on a page, series that differ in a label or two and in
// their number. Compression need not look far for what such a message repeats.
type evenly struct{ begin, end, length int }

// wrote takes note of messages of one length, from begin to the end of the body.
func (w *flusher) wrote(begin, length int) {
	if m := &w.even; m.length != length || m.end != begin {
		w.guess()
		m.begin, m.length = begin, length
	}
	w.even.end = len(w.body)
}

// guess tells compression of what was noted.
func (w *flusher) guess() {
	m := &w.even
	if m.end-m.begin >= minGuess*m.length && m.length > 0 && block.HearsGuesses(w.format) {
		w.told.Guesses = append(w.told.Guesses, frame.Guess{At: uint32(m.begin + m.length), End: uint32(m.end), Distance: uint32(m.length)})
	}
	*m = evenly{}
}
