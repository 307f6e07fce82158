// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"encoding/binary"
	"iter"

	"github.com/prometheus/otlptranslator"

	"github.com/godwit-otel/godwit/internal/promwrite"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block/frame"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/column"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/store"
)

// fewIDs is the number of exemplars up to which their texts get no place of their own.
const fewIDs = 64

// ids are the texts of exemplars, which in a request of 2.0 are kept together among its symbols. Most are random:
// between names they would separate texts that compression refers to, and a common code for both would be longer.
type ids struct {
	wanted bool
	epoch  uint32 // the request that has them
	refs   []byte // references of each exemplar, after their length
}

// gather adds the texts of all exemplars of a flush to the symbols, if one request has all of them. It is called when
// the first is written, so that the names of labels already have short references.
func (w *Writer) gather(b *column.Buffer) {
	if !w.ids.wanted {
		return
	}
	w.ids.wanted, w.ids.epoch, w.ids.refs = false, w.refs.epoch, w.ids.refs[:0]
	begin := len(w.refs.symbols)
	random, last := true, ""
	alike := 0
	for i := range b.Exemplars {
		x := &b.Exemplars[i]
		x.Refs = uint32(len(w.ids.refs))
		w.refBytes = w.refBytes[:0]
		var value []byte
		for name, v := range labelsOf(b, x) {
			random = random && (string(name) == otlptranslator.ExemplarTraceIDKey || string(name) == otlptranslator.ExemplarSpanIDKey)
			w.refBytes = binary.AppendUvarint(w.refBytes, uint64(w.refs.ofText(name)))
			w.refBytes = binary.AppendUvarint(w.refBytes, uint64(w.refs.ofText(v)))
			value = v
		}
		if len(value) >= 4 && string(value[:4]) == last {
			alike++
		}
		last = string(value[:min(len(value), 4)])
		w.ids.refs = store.AppendText(w.ids.refs, string(w.refBytes))
	}
	if random && alike < len(b.Exemplars)/8 {
		w.Hints.Known.Random = frame.Stretch{At: begin, End: len(w.refs.symbols)}
	}
}

// refsOf returns the references of an exemplar's texts, valid until the next call.
func (w *Writer) refsOf(b *column.Buffer, x *column.Exemplar) []byte {
	w.gather(b)
	if w.ids.epoch == w.refs.epoch {
		refs, _ := store.CutText(w.ids.refs[x.Refs:])
		return refs
	}
	w.refBytes = w.refBytes[:0]
	for name, value := range labelsOf(b, x) {
		w.refBytes = binary.AppendUvarint(w.refBytes, uint64(w.refs.ofText(name)))
		w.refBytes = binary.AppendUvarint(w.refBytes, uint64(w.refs.ofText(value)))
	}
	return w.refBytes
}

// wantIDs decides whether all exemplars of a flush will likely be in one request.
func (w *Writer) wantIDs(b *column.Buffer) {
	w.ids.epoch = 0
	w.ids.wanted = w.format.Version == promwrite.V2 && len(b.Exemplars) >= fewIDs && b.Samples.Len() <= w.sampleLimit
}

// labelsOf are the labels of an exemplar.
func labelsOf(b *column.Buffer, x *column.Exemplar) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for rest := b.Bytes[x.First:x.End]; len(rest) > 0; {
			var name, value []byte
			name, rest = store.CutText(rest)
			value, rest = store.CutText(rest)
			if !yield(name, value) {
				return
			}
		}
	}
}
