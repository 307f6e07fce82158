// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package request writes the contents of a column as finished Remote Write requests.
//
// A Writer orders a buffer series by series across targets, which makes requests compress well, and encodes and compresses them in one
// pass: the messages of a series differ in a few places, which it tells the compressor. It keeps its memory, but nothing of the cache, from
// one buffer to the next. Only one goroutine at a time may use it.
package request

import (
	"cmp"
	"slices"
	"time"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/column"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/loss"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/names"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/size"
)

// Writer lays out a buffer series by series and writes requests.
type Writer struct {
	request

	// Blocks are the finished requests; Write appends to them.
	Blocks []block.Block

	sheet sheet
	grids grids
	ids   ids

	cache            *cache.Cache
	limits           *size.Limits
	losses           *loss.Counter
	bodies           *block.Memory
	metadataInterval int64 // milliseconds

	format block.Format
	shard  int
	tenant string

	// Bytes of the largest request of this flush, and about those of the larger of the last flushes.
	largest, usual int
}

// NewWriter makes a Writer for entries of a cache. Blocks are made in the memory of bodies; in 1.0, metadata is sent
// once in an interval.
func NewWriter(
	known *cache.Cache, limits *size.Limits, losses *loss.Counter, bodies *block.Memory, metadataInterval time.Duration,
) *Writer {
	w := &Writer{cache: known, limits: limits, losses: losses, bodies: bodies, metadataInterval: metadataInterval.Milliseconds()}
	w.refs.all, w.prefix.refs = known.Symbols, &w.refs
	return w
}

// Write writes the contents of a buffer, whose samples it may reorder.
func (w *Writer) Write(b *column.Buffer, f block.Format, shard int, tenant string) {
	w.format, w.shard, w.tenant = f, shard, tenant
	w.refs.takeSnapshot()
	w.sheet.layOut(b, f.Version, w.cache.Layouts.Size())
	w.refs.takeResources(w.sheet.resources)
	w.findGrids(b)
	w.sheet.sortExemplars(b)
	w.rawLimit = w.limits.Raw(f)
	w.sampleLimit = w.limits.PerRequest(b.Samples.Len())
	w.wantIDs(b)
	w.begin()
	for order := w.sheet.order[:w.grids.splitOff(len(w.sheet.order))]; len(order) > 0; {
		if n := w.writeGroup(b, order); n > 0 {
			order = order[n:]
			continue
		}
		w.writeSlot(b, order[0], w.sheet.cells(b, order[0]))
		order = order[1:]
	}
	w.writeGrids(b)
	w.finish()
}

// writeSlot writes the samples of one slot.
func (w *Writer) writeSlot(b *column.Buffer, slot uint32, cells []column.Sample) {
	r := w.cache.Row(b.Series[slot])
	for len(cells) > 0 {
		n := 1
		for n < len(cells) && cells[n].Of == cells[0].Of {
			n++
		}
		if n == 1 { // fast path for nearly all series
			if done := w.writeNumbers(b, slot, &r, cells); done > 0 {
				cells = cells[done:]
				continue
			}
		}
		w.seriesRun(b, slot, &r, cells[0].Of, cells[:n])
		cells = cells[n:]
	}
}

// begin begins a request.
func (w *Writer) begin() {
	w.request.begin(w.format)
	clear(w.grids.tails)
}

// seriesRun writes all samples of one series and one resource.
func (w *Writer) seriesRun(b *column.Buffer, slot uint32, s *cache.Row, place uint32, cells []column.Sample) {
	if len(cells) > 1 {
		cells = w.sortCells(s, cells)
	}
	exemplars := w.sheet.exemplarsOf(slot, w.refs.resources[place])
	for len(cells) > 0 {
		n := 1
		native := cells[0].Extra&column.IsHistogram != 0
		for n < len(cells) && cells[n].Extra&column.IsHistogram != 0 == native {
			n++ // a series message has numbers or histograms, never both
		}
		n = min(n, w.sampleLimit-w.points())
		size := w.sizeOf(b, s, place, cells, n, exemplars)
		switch {
		case n > 0 && w.size()+size <= w.rawLimit:
			w.writeSeries(b, s, place, cells[:n], exemplars)
			cells, exemplars = cells[n:], nil
		case w.points() > 0:
			w.finish()
			w.begin()
		case n > 1 && w.size()+w.sizeOf(b, s, place, cells, 1, exemplars) <= w.rawLimit:
			// Alone in its request and still too large: going on sample by sample finds the limit.
			w.writeSeries(b, s, place, cells[:1], exemplars)
			cells, exemplars = cells[1:], nil
		default:
			w.losses.Add(loss.TooLarge, w.name(s), 1)
			cells = cells[1:]
		}
	}
}

// maxNumber is the most bytes of a sample, with its tag.
const maxNumber = 34

// sizeOf is the most bytes that n cells take.
func (w *Writer) sizeOf(b *column.Buffer, s *cache.Row, place uint32, cells []column.Sample, n int, exemplars []column.Exemplar) int {
	size := int(s.Series.Weight) + w.sheet.weights[place] + maxNumber*n
	for _, x := range exemplars {
		size += 2*int(x.End-x.First) + 64
	}
	if n > 0 && cells[0].Extra&column.IsHistogram != 0 {
		for _, c := range cells[:n] {
			h := &b.Histograms[c.Extra&^column.IsHistogram]
			size += int(h.End - h.First)
		}
	}
	return size
}

// sortCells sorts the cells of a series by time, if needed, and drops those with the same time as another: a series has one
// value at a time, a number or a histogram.
func (w *Writer) sortCells(s *cache.Row, cells []column.Sample) []column.Sample {
	ascending := true
	for i := 1; i < len(cells); i++ {
		ascending = ascending && cells[i].Time > cells[i-1].Time
	}
	if ascending {
		return cells
	}
	slices.SortStableFunc(cells, func(a, b column.Sample) int { return cmp.Compare(a.Time, b.Time) })
	kept := slices.CompactFunc(cells, func(a, b column.Sample) bool { return a.Time == b.Time })
	if n := len(cells) - len(kept); n > 0 {
		w.losses.Add(loss.Duplicate, w.name(s), n)
	}
	return kept
}

// name returns the metric of a series, for telemetry.
func (w *Writer) name(s *cache.Row) string {
	for _, l := range s.Layout.Labels {
		if w.refs.text[l.Name] == names.NameLabel && l.Value&cache.FromResource == 0 {
			return w.refs.text[s.Ref(l)]
		}
	}
	return ""
}

// finish compresses the request and appends its block.
func (w *Writer) finish() {
	if w.points() == 0 {
		return
	}
	length := len(w.body) + len(w.meta)
	raw := w.whole()
	w.Hints.Known.Move(len(raw) - length) // as whole did
	compressed, err := block.CompressKnown(w.packed[:0], w.format, raw, w.Hints.Known)
	if err != nil {
		// The format was checked before anything is sent in it.
		w.losses.Add(loss.TooLarge, "", w.points())
		return
	}
	w.packed = compressed
	w.head.RawSize = len(raw)
	w.largest = max(w.largest, len(raw))
	w.limits.Learn(w.format, len(raw), w.rawLimit, len(compressed))
	w.head.Version, w.head.Compression, w.head.Shard, w.head.Tenant = w.format.Version, w.format.Compression, w.shard, w.tenant
	w.Blocks = w.limits.Fit(w.bodies.New(w.head, compressed), w.Blocks)
}

// Release drops references to the cache, and frees memory that was much too large for a while.
func (w *Writer) Release() {
	w.Blocks = nil
	w.refs.release()
	w.prefix.forget()
	w.spelling.release()
	w.sheet.release()
	w.grids.release(w.sheet.usually.series)
	w.usual = max(w.largest, w.usual-w.usual/16)
	if w.largest = 0; cap(w.body)+cap(w.refs.symbols) > 2*w.usual+1<<19 {
		w.body, w.refs.symbols, w.packed, w.ids.refs, w.room = nil, nil, nil, nil, 0
	}
}
