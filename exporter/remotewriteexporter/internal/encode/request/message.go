// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"github.com/godwit-otel/godwit/internal/promwrite"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block/wire"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/column"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/loss"
)

// writeSeries appends one series message.
func (w *Writer) writeSeries(b *column.Buffer, s *cache.Row, place uint32, cells []column.Sample, exemplars []column.Exemplar) {
	v2 := w.format.Version == promwrite.V2
	m, content := wire.Begin(w.body, wire.SeriesV1)
	if v2 {
		w.prefix.setSeries(s, place)
		m = append(m[:len(w.body)], w.prefix.bytes...) // which is as long at its beginning
	} else {
		w.prepareSeries(s, cells[0].Time)
		m = w.spelling.append(m, s, w.refs.resources[place])
	}
	before := w.points()
	for i := range cells {
		c := &cells[i]
		w.head.MinTime, w.head.MaxTime = min(w.head.MinTime, c.Time), max(w.head.MaxTime, c.Time)
		if c.Extra&column.IsHistogram != 0 {
			h := &b.Histograms[c.Extra&^column.IsHistogram]
			if h.Custom && !v2 {
				w.losses.Add(loss.CustomBuckets, w.name(s), 1)
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
		m = append(m, w.prefix.metadata(s.Layout.Meta)...)
	}
	w.body = wire.End(m, content)
}

// prepareSeries prepares a series of 1.0, and adds the metadata of its metric if that is due.
func (w *Writer) prepareSeries(s *cache.Row, time int64) {
	if w.spelling.series == s.Series {
		return
	}
	w.spelling.prepare(s, w.refs.text)
	if m := s.Layout.Meta; m != nil && m.Sent.Due(time, w.metadataInterval) {
		w.meta = wire.AppendMetaV1(w.meta, promwrite.Metadata{
			Type: m.Kind, Family: m.Name, Help: w.refs.text[m.HelpRef], Unit: w.refs.text[m.UnitRef],
		})
		w.head.Metadata++
	}
}

func (w *Writer) appendExemplar(dst []byte, b *column.Buffer, x *column.Exemplar) []byte {
	w.part = w.part[:0]
	tag := wire.ExemplarV1
	if w.format.Version == promwrite.V2 {
		tag = wire.ExemplarV2
		if refs := w.refsOf(b, x); len(refs) > 0 {
			w.part = wire.AppendBytes(w.part, wire.RefsV2, refs)
		}
	} else {
		for name, value := range labelsOf(b, x) {
			w.part = wire.AppendLabel(w.part, string(name), string(value))
		}
	}
	w.part = wire.AppendDouble(w.part, 2, x.Bits)
	w.part = wire.AppendVarint(w.part, 3, uint64(x.Time))
	w.head.Exemplars++
	return wire.AppendBytes(dst, tag, w.part)
}
