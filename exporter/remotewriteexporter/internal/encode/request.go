// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/godwit-otel/godwit/internal/promwrite"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block/frame"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block/wire"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/column"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/loss"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/store"
)

// request is a request being written.
type request struct {
	sampleLimit int
	rawLimit    int
	head        block.Header
	exemplars   []column.Exemplar // not yet written; sorted as the series are

	text    []string   // of symbols, by id
	local   []localRef // of symbols, by id
	epoch   uint32     // of local; counts requests
	refs    uint32     // symbols in the request
	symbols []byte     // their fields
	body    []byte     // the series' fields, after room for the symbols
	room    int
	meta    []byte // the metadata list of 1.0

	repeats frame.Known // of body
	alikes  []alikePlace
	spans   []span // scratch
	told    []span // of the last of the runs, as they came
	prefix  prefix
	// The metadata that ends messages of 2.0.
	tail   []byte
	tailOf *cache.Meta
	// The series of 1.0 whose runs are being written, prepared once: its label bytes, cut where the resource's go.
	prepared *cache.Series
	labels   []byte
	cuts     []cut
	texts    []text

	part     []byte
	refBytes []byte // the references of an exemplar
	mentions mentions
	packed   []byte
}

// localRef is a symbol's number within the request of an epoch.
type localRef struct {
	epoch, ref uint32
}

// cut says that the resource's value i follows the label bytes before end.
type cut struct {
	end, i int
}

func (q *request) begin(version promwrite.Version) {
	if q.epoch++; q.epoch == 0 { // after 4 billion requests a stamp could be taken for new
		clear(q.local)
		clear(q.alikes)
		q.epoch = 1
	}
	q.refs, q.prepared, q.prefix.series, q.prefix.layout, q.tailOf = 0, nil, nil, nil, nil
	// The next request is likely to need as much as the larger of the last.
	q.room = max(len(q.symbols)+len(q.symbols)/8, q.room-q.room/64)
	q.body = slices.Grow(q.body[:0], q.room)[:q.room]
	q.symbols, q.meta = q.symbols[:0], q.meta[:0]
	if version == promwrite.V2 {
		q.symbols = wire.AppendBytes(q.symbols, wire.SymbolV2, "")
	}
	q.repeats.Runs, q.repeats.Echoes, q.told = q.repeats.Runs[:0], q.repeats.Echoes[:0], q.told[:0]
	q.mentions.begin(q.epoch)
	q.head = block.Header{MinTime: math.MaxInt64, MaxTime: math.MinInt64}
}

func (q *request) points() int { return q.head.Samples + q.head.Histograms }

// size is the request's size so far.
func (q *request) size() int { return len(q.symbols) + len(q.body) - q.room + len(q.meta) }

// whole puts the request together, in the memory of its body. Symbols go first: a decoder of one pass wants to know
// them.
func (q *request) whole() []byte {
	q.body = append(q.body, q.meta...)
	if missing := len(q.symbols) - q.room; missing > 0 {
		q.body = slices.Insert(q.body, 0, q.symbols[:missing]...)
		q.room = len(q.symbols)
	}
	raw := q.body[q.room-len(q.symbols):]
	copy(raw, q.symbols)
	return raw
}

// ref is the number of a symbol in this request.
func (q *request) ref(id uint32) uint32 {
	if id == 0 {
		return 0
	}
	l := &q.local[id]
	if l.epoch != q.epoch {
		q.refs++
		*l = localRef{q.epoch, q.refs}
		q.symbols = wire.AppendBytes(q.symbols, wire.SymbolV2, q.text[id])
	}
	return l.ref
}

// write appends one series message.
func (w *flusher) write(b *column.Buffer, s *cache.Row, place uint32, cells []column.Sample, exemplars []column.Exemplar) {
	v2 := w.format.Version == promwrite.V2
	m, content := wire.Begin(w.body, wire.SeriesV1)
	if v2 {
		m = w.appendPrefix(w.body, s, place) // which is as long at its beginning
	} else {
		if w.prepared != s.Series {
			w.prepare(s, cells[0].Time)
		}
		m = w.appendLabels(m, s, w.resources[place])
	}
	before := w.points()
	for i := range cells {
		c := &cells[i]
		w.head.MinTime, w.head.MaxTime = min(w.head.MinTime, c.Time), max(w.head.MaxTime, c.Time)
		if c.Extra&column.IsHistogram != 0 {
			h := &b.Histograms[c.Extra&^column.IsHistogram]
			if h.Custom && !v2 {
				w.e.losses.Add(loss.CustomBuckets, w.name(s), 1)
				continue
			}
			w.part = append(w.part[:0], b.Bytes[h.First:h.End]...)
			tag := wire.HistogramV1
			if v2 {
				tag = wire.HistogramV2
				w.part = wire.AppendHistogramStart(w.part, h.Start)
			}
			m = wire.AppendBytes(m, tag, w.part)
			w.head.Histograms++
			continue
		}
		start := int64(0)
		if v2 {
			start = b.Start(c)
		}
		m = wire.AppendSample(m, c.Bits, c.Time, start)
		w.head.Samples++
	}
	if w.points() == before {
		return
	}
	for i := range exemplars {
		m = w.appendExemplar(m, b, &exemplars[i])
	}
	if v2 {
		m = append(m, w.metadata(s.Layout.Meta)...)
	}
	w.body = wire.End(m, content)
}

// prepare writes what all of a series' runs in a request of 1.0 share.
func (w *flusher) prepare(s *cache.Row, time int64) {
	w.prepared = s.Series
	w.labels, w.cuts = w.labels[:0], w.cuts[:0]
	for _, l := range s.Layout.Labels {
		if l.Value&cache.FromResource != 0 {
			w.cuts = append(w.cuts, cut{len(w.labels), int(l.Value & cache.PlaceMask)})
		} else {
			w.labels = wire.AppendLabel(w.labels, w.text[l.Name], w.text[s.Ref(l)])
		}
	}
	if m := s.Layout.Meta; m != nil && m.Sent.Due(time, w.e.cfg.MetadataInterval.Milliseconds()) {
		w.meta = wire.AppendMetaV1(w.meta, promwrite.Metadata{
			Type: m.Kind, Family: m.Name, Help: w.text[m.HelpRef], Unit: w.text[m.UnitRef],
		})
		w.head.Metadata++
	}
}

func (w *flusher) appendLabels(dst []byte, s *cache.Row, r *cache.ResourceLabels) []byte {
	at := 0
	for _, c := range w.cuts {
		dst = append(dst, w.labels[at:c.end]...)
		dst = wire.AppendLabel(dst, s.Layout.Schema.Names[c.i], w.text[r.Values[c.i]])
		at = c.end
	}
	return append(dst, w.labels[at:]...)
}

func (w *flusher) appendExemplar(dst []byte, b *column.Buffer, x *column.Exemplar) []byte {
	w.part = w.part[:0]
	w.refBytes = w.refBytes[:0]
	v2 := w.format.Version == promwrite.V2
	for rest := b.Bytes[x.First:x.End]; len(rest) > 0; {
		var name, value []byte
		name, rest = store.CutText(rest)
		value, rest = store.CutText(rest)
		if v2 {
			w.refBytes = binary.AppendUvarint(w.refBytes, uint64(w.textRef(name)))
			w.refBytes = binary.AppendUvarint(w.refBytes, uint64(w.textRef(value)))
		} else {
			w.part = wire.AppendLabel(w.part, string(name), string(value))
		}
	}
	tag := wire.ExemplarV1
	if v2 {
		tag = wire.ExemplarV2
		if len(w.refBytes) > 0 {
			w.part = wire.AppendBytes(w.part, wire.RefsV2, w.refBytes)
		}
	}
	w.part = wire.AppendDouble(w.part, 2, x.Bits)
	w.part = wire.AppendVarint(w.part, 3, uint64(x.Time))
	w.head.Exemplars++
	return wire.AppendBytes(dst, tag, w.part)
}
