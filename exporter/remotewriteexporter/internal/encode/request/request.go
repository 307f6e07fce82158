// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"math"
	"slices"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

// request is a request being written.
type request struct {
	sampleLimit int
	rawLimit    int
	head        block.Header

	refs references
	body []byte // the series' fields, after room for the symbols
	room int
	meta []byte // the metadata list of 1.0

	Hints    hints    // of body
	prefix   prefix   // of a message of 2.0
	spelling spelling // of one of 1.0

	part     []byte
	refBytes []byte // references of an exemplar
	packed   []byte
}

func (q *request) begin(f block.Format) {
	// The next request likely needs as much as the larger of the last ones.
	q.room = max(len(q.refs.symbols)+len(q.refs.symbols)/8, q.room-q.room/64)
	q.body = slices.Grow(q.body[:0], q.room)[:q.room]
	q.meta = q.meta[:0]
	q.refs.begin(f.Version)
	q.prefix.forget()
	q.spelling.forget()
	q.Hints.begin(block.Reach(f))
	q.head = block.Header{MinTime: math.MaxInt64, MaxTime: math.MinInt64}
}

func (q *request) points() int { return q.head.Samples + q.head.Histograms }

// size is the request's size so far.
func (q *request) size() int { return len(q.refs.symbols) + len(q.body) - q.room + len(q.meta) }

// whole assembles the request, in the memory of its body. Symbols come first, as decoders that read it once need them.
func (q *request) whole() []byte {
	q.body = append(q.body, q.meta...)
	symbols := q.refs.symbols
	if missing := len(symbols) - q.room; missing > 0 {
		q.body = slices.Insert(q.body, 0, symbols[:missing]...)
		q.room = len(symbols)
	}
	raw := q.body[q.room-len(symbols):]
	copy(raw, symbols)
	return raw
}
