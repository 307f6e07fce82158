// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/godwit-otel/godwit/internal/promwrite"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block/wire"
)

var (
	// ErrIndivisible is in the chain of an error about a block of a single sample, which Split cannot halve.
	ErrIndivisible = errors.New("a single sample cannot be split")

	errUpgrade = errors.New("1.0 does not carry what 2.0 needs")
)

// Transcode writes b in another format. From 2.0 to 1.0 it decodes: metadata becomes a list, and start timestamps and
// histograms with custom buckets, which 1.0 does not have, are lost; the counts of the new header tell how many are
// left. If only the compression changes, the content stays the same.
func Transcode(b Block, f Format) (Block, error) {
	out, err := transcode(b, f)
	if err != nil {
		return Block{}, fmt.Errorf("cannot rewrite block of %s as %s with %s: %w", b.Version, f.Version, f.Compression, err)
	}
	return out, nil
}

func transcode(b Block, f Format) (Block, error) {
	if b.Version == f.Version && b.Compression == f.Compression {
		return b, nil
	}
	raw, err := b.Raw()
	if err != nil {
		return Block{}, err
	}
	switch {
	case b.Version == f.Version:
		h := b.Header
		h.Compression = f.Compression
		body, err := Compress(nil, f, raw)
		return New(h, body), err
	case f.Version != promwrite.V1:
		return Block{}, errUpgrade
	}
	var d promwrite.Decoder
	if err := d.Decode(b.Version, raw); err != nil {
		return Block{}, err
	}
	return write(b.Header, f, d.Series, familiesOf(d.Series))
}

const nameLabel = "__name__"

// familiesOf returns the metadata of each family once.
func familiesOf(series []promwrite.Series) []promwrite.Metadata {
	var list []promwrite.Metadata
	seen := map[promwrite.Metadata]bool{}
	for i := range series {
		s := &series[i]
		if s.Type == promwrite.Unknown && s.Help == "" && s.Unit == "" {
			continue
		}
		m := promwrite.Metadata{Type: s.Type, Family: familyName(s), Help: s.Help, Unit: s.Unit}
		if !seen[m] {
			seen[m] = true
			list = append(list, m)
		}
	}
	return list
}

// familyName removes the suffixes of the parts of classic histograms and summaries.
func familyName(s *promwrite.Series) string {
	i := slices.IndexFunc(s.Labels, func(l promwrite.Label) bool { return l.Name == nameLabel })
	if i < 0 {
		return ""
	}
	name := s.Labels[i].Value
	if len(s.Histograms) > 0 || s.Type != promwrite.ClassicHistogram && s.Type != promwrite.Summary {
		return name
	}
	for _, suffix := range []string{"_bucket", "_count", "_sum"} {
		if n := len(name) - len(suffix); n > 0 && name[n:] == suffix {
			return name[:n]
		}
	}
	return name
}

// Split halves b by samples, for a receiver that finds it too large. If a series is in both halves, its earlier samples
// are in the first.
func Split(b Block) (first, second Block, err error) {
	fail := func(err error) (Block, Block, error) {
		return Block{}, Block{}, fmt.Errorf("cannot split block of %d bytes: %w", len(b.body), err)
	}
	raw, err := b.Raw()
	if err != nil {
		return fail(err)
	}
	var d promwrite.Decoder
	if err := d.Decode(b.Version, raw); err != nil {
		return fail(err)
	}
	points := 0
	for i := range d.Series {
		points += len(d.Series[i].Samples) + len(d.Series[i].Histograms)
	}
	if points < 2 {
		return fail(ErrIndivisible)
	}
	f := Format{Version: b.Version, Compression: b.Compression}
	left, right := halve(d.Series, points/2)
	if first, err = write(b.Header, f, left, d.Metadata); err != nil {
		return fail(err)
	}
	if second, err = write(b.Header, f, right, nil); err != nil {
		return fail(err)
	}
	return first, second, nil
}

// halve cuts the list after n samples and histograms, within a series if needed. Exemplars stay with the last part of a
// series.
func halve(series []promwrite.Series, n int) (left, right []promwrite.Series) {
	for i := range series {
		s := series[i]
		size := len(s.Samples) + len(s.Histograms)
		if size <= n {
			n -= size
			continue
		}
		left, right = series[:i:i], slices.Clone(series[i:])
		if n > 0 {
			head := s
			head.Exemplars = nil
			cut := min(n, len(s.Samples))
			head.Samples, s.Samples = s.Samples[:cut], s.Samples[cut:]
			cut = n - cut
			head.Histograms, s.Histograms = s.Histograms[:cut], s.Histograms[cut:]
			left = append(left, head)
			right[0] = s
		}
		return left, right
	}
	return series, nil
}

// write makes a block of series; shard and tenant are those of like.
func write(like Header, f Format, series []promwrite.Series, metadata []promwrite.Metadata) (Block, error) {
	w := newWriter(like, f)
	for i := range series {
		w.series(&series[i])
	}
	return w.finish(f, metadata)
}

type writer struct {
	version promwrite.Version
	head    Header
	body    []byte
	message []byte
	part    []byte
	numbers []byte // of labels
	symbols []string
	refs    map[string]uint32
}

func newWriter(like Header, f Format) *writer {
	return &writer{version: f.Version, head: Header{
		Version: f.Version, Compression: f.Compression, Shard: like.Shard, Tenant: like.Tenant,
		MinTime: math.MaxInt64, MaxTime: math.MinInt64,
	}}
}

// finish completes the request and compresses it.
func (w *writer) finish(f Format, metadata []promwrite.Metadata) (Block, error) {
	raw := make([]byte, 0, len(w.body)+len(w.body)/4) // with room for the symbols
	if f.Version == promwrite.V2 {
		raw = wire.AppendBytes(raw, wire.SymbolV2, "")
		for _, s := range w.symbols {
			raw = wire.AppendBytes(raw, wire.SymbolV2, s)
		}
	}
	raw = append(raw, w.body...)
	if f.Version == promwrite.V1 {
		for _, m := range metadata {
			raw = wire.AppendMetaV1(raw, m)
		}
		w.head.Metadata = len(metadata)
	}
	if w.head.MinTime > w.head.MaxTime { // the request is empty
		w.head.MinTime, w.head.MaxTime = 0, 0
	}
	w.head.RawSize = len(raw)
	body, err := Compress(nil, f, raw)
	return New(w.head, body), err
}

func (w *writer) series(s *promwrite.Series) {
	histograms := s.Histograms
	if w.version == promwrite.V1 {
		histograms = slices.DeleteFunc(slices.Clone(histograms), func(h promwrite.Histogram) bool {
			return h.Schema == promwrite.CustomBucketsSchema
		})
	}
	if len(histograms)+len(s.Samples) == 0 {
		return
	}
	w.message = w.appendLabels(w.message[:0], s.Labels)
	for _, p := range s.Samples {
		start := p.StartTimestamp
		if w.version == promwrite.V1 {
			start = 0
		}
		w.message = wire.AppendSample(w.message, math.Float64bits(p.Value), p.Timestamp, start)
		w.point(p.Timestamp)
	}
	tag, histogramTag, exemplarTag := wire.SeriesV1, wire.HistogramV1, wire.ExemplarV1
	if w.version == promwrite.V2 {
		tag, histogramTag, exemplarTag = wire.SeriesV2, wire.HistogramV2, wire.ExemplarV2
	}
	for i := range histograms {
		h := &histograms[i]
		w.part = wire.AppendHistogram(w.part[:0], h)
		if w.version == promwrite.V2 {
			w.part = wire.AppendHistogramStart(w.part, h.StartTimestamp)
		}
		w.message = wire.AppendBytes(w.message, histogramTag, w.part)
		w.point(h.Timestamp)
	}
	for _, e := range s.Exemplars {
		w.part = w.appendLabels(w.part[:0], e.Labels)
		w.part = wire.AppendDouble(w.part, 2, math.Float64bits(e.Value))
		w.part = wire.AppendVarint(w.part, 3, uint64(e.Timestamp))
		w.message = wire.AppendBytes(w.message, exemplarTag, w.part)
	}
	if w.version == promwrite.V2 {
		w.message = wire.AppendMetaV2(w.message, s.Type, w.ref(s.Help), w.ref(s.Unit))
	}
	w.body = wire.AppendBytes(w.body, tag, w.message)
	w.head.Samples += len(s.Samples)
	w.head.Histograms += len(histograms)
	w.head.Exemplars += len(s.Exemplars)
}

func (w *writer) point(time int64) {
	w.head.MinTime, w.head.MaxTime = min(w.head.MinTime, time), max(w.head.MaxTime, time)
}

func (w *writer) appendLabels(dst []byte, labels []promwrite.Label) []byte {
	if w.version == promwrite.V1 {
		for _, l := range labels {
			dst = wire.AppendLabel(dst, l.Name, l.Value)
		}
		return dst
	}
	if len(labels) == 0 {
		return dst
	}
	w.numbers = w.numbers[:0]
	for _, l := range labels {
		w.numbers = binary.AppendUvarint(w.numbers, uint64(w.ref(l.Name)))
		w.numbers = binary.AppendUvarint(w.numbers, uint64(w.ref(l.Value)))
	}
	return wire.AppendBytes(dst, wire.RefsV2, w.numbers)
}

func (w *writer) ref(s string) uint32 {
	if s == "" {
		return 0
	}
	if r, ok := w.refs[s]; ok {
		return r
	}
	if w.refs == nil {
		w.refs = map[string]uint32{}
	}
	w.symbols = append(w.symbols, s)
	r := uint32(len(w.symbols))
	w.refs[s] = r
	return r
}
