// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package column

import (
	"sync/atomic"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
)

// Buffer is what a Flush takes. The parts of a sample are in several slices by its number, since most samples need few
// of them.
type Buffer struct {
	Series     []*cache.Series
	Counts     []uint32 // number of samples of each series
	Batches    []batch
	Samples    samples
	starts     []int64
	Histograms []native
	Exemplars  []Exemplar
	Bytes      []byte // of histograms and exemplars
	// Unlisted says that some series had no place in the cache: the same series may be here several times.
	Unlisted bool
	Number   uint64 // unique among all buffers
}

// buffers counts the buffers made so far.
var buffers atomic.Uint64

func newBuffer() *Buffer { return &Buffer{Number: buffers.Add(1)} }

// Begin sets the resource of the samples that follow.
func (b *Buffer) Begin(labels *cache.ResourceLabels) {
	if last := len(b.Batches) - 1; last < 0 || b.Batches[last].Labels != labels {
		b.Batches = append(b.Batches, batch{labels, uint32(b.Samples.Len())})
	}
}

// AddStart sets the start timestamp of a sample, if known.
func (b *Buffer) AddStart(s *Sample, start int64) {
	if start != 0 {
		b.starts = append(b.starts, start)
		s.Extra = uint32(len(b.starts))
	}
}

// batch is a run of samples of one resource: up to the first of the next batch.
type batch struct {
	Labels *cache.ResourceLabels
	First  uint32
}

// End is the index after the last sample of batch i.
func (b *Buffer) End(i int) uint32 {
	if i+1 < len(b.Batches) {
		return b.Batches[i+1].First
	}
	return uint32(b.Samples.Len())
}

// Sample is a value at a time. Extra is 0, or an index in starts or, with IsHistogram, in histograms.
type Sample struct {
	Of    uint32 // the series' slot; after layOut, the resource's place
	Extra uint32
	Time  int64
	Bits  uint64
}

// IsHistogram is the bit of a sample's extra that says that the rest is an index in histograms.
const IsHistogram = 1 << 31

// Start is the start timestamp of a number, zero if there is none.
func (b *Buffer) Start(s *Sample) int64 {
	if s.Extra == 0 {
		return 0
	}
	return b.starts[s.Extra-1]
}

// native is an encoded native histogram, without its start timestamp.
type native struct {
	Start      int64
	First, End uint32 // offsets in bytes
	Custom     bool   // of custom buckets
}

// Exemplar belongs to a series and a resource; its labels are encoded as pairs of texts.
type Exemplar struct {
	Slot       uint32
	Refs       uint32 // for the writer
	Labels     *cache.ResourceLabels
	Time       int64
	Bits       uint64
	First, End uint32 // offsets in bytes
}

// has reports whether a series has a slot in this buffer. The slot that a series remembers may be of an earlier one.
func (b *Buffer) has(s *cache.Series) bool {
	return int(s.Slot) < len(b.Series) && b.Series[s.Slot] == s
}

// Slot returns the slot of the series. A sample must follow: Flush relies on each series having one.
func (b *Buffer) Slot(s *cache.Series) uint32 {
	if !b.has(s) {
		s.Slot = uint32(len(b.Series))
		b.Series = append(b.Series, s)
		b.Counts = append(b.Counts, 0)
	}
	return s.Slot
}

// none is the buffer of an empty column. Nobody writes to it.
var none = &Buffer{}

// keep keeps what b refers to, and reports whether that is anything.
func (b *Buffer) keep(x *cache.Expiry) bool {
	for _, s := range b.Series {
		x.KeepSeries(s)
	}
	for _, bt := range b.Batches {
		x.KeepLabels(bt.Labels)
	}
	return b.Samples.Len() > 0
}
