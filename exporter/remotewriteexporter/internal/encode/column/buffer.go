// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package column

import (
	"sync/atomic"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
)

// Buffer is what a Flush takes. Each sample is found by its number in several slices, so that most take little.
type Buffer struct {
	Series     []*cache.Series
	Counts     []uint32 // samples of each series
	Batches    []batch
	Samples    samples
	starts     []int64
	Histograms []native
	Exemplars  []Exemplar
	Bytes      []byte // of histograms and exemplars
	// Unlisted says that some series had no place in the cache: the same one may be here several times.
	Unlisted bool
	Number   uint64 // no other has it, nor the same memory before or after
}

// buffers counts those that there were.
var buffers atomic.Uint64

func newBuffer() *Buffer { return &Buffer{Number: buffers.Add(1)} }

// Begin says whose samples follow.
func (b *Buffer) Begin(labels *cache.ResourceLabels) {
	if last := len(b.Batches) - 1; last < 0 || b.Batches[last].Labels != labels {
		b.Batches = append(b.Batches, batch{labels, uint32(b.Samples.Len())})
	}
}

// AddStart says when a sample has begun to count, if that is known.
func (b *Buffer) AddStart(s *Sample, start int64) {
	if start != 0 {
		b.starts = append(b.starts, start)
		s.Extra = uint32(len(b.starts))
	}
}

// batch is a run of samples of one resource: all up to the next batch's first.
type batch struct {
	Labels *cache.ResourceLabels
	First  uint32
}

// End is where a batch ends in samples.
func (b *Buffer) End(i int) uint32 {
	if i+1 < len(b.Batches) {
		return b.Batches[i+1].First
	}
	return uint32(b.Samples.Len())
}

// Sample is a value at a time. Extra is 0, or says where in starts or, with IsHistogram, in histograms to look.
type Sample struct {
	Of    uint32 // the series' slot; once laid out, the resource's place
	Extra uint32
	Time  int64
	Bits  uint64
}

// IsHistogram says in a sample's extra that it is one, and the rest where in histograms that is.
const IsHistogram = 1 << 31

// Start is the start timestamp of a number, zero if there is none.
func (b *Buffer) Start(s *Sample) int64 {
	if s.Extra == 0 {
		return 0
	}
	return b.starts[s.Extra-1]
}

// native is an encoded native histogram, but for the start timestamp.
type native struct {
	Start      int64
	First, End uint32 // in bytes
	Custom     bool   // of custom buckets
}

// Exemplar belongs to a series and a resource; its labels are encoded as pairs of texts.
type Exemplar struct {
	Slot       uint32
	Refs       uint32 // for who writes it
	Labels     *cache.ResourceLabels
	Time       int64
	Bits       uint64
	First, End uint32 // in bytes
}

// has tells whether a series has a slot. What a series remembers may be of a buffer before.
func (b *Buffer) has(s *cache.Series) bool {
	return int(s.Slot) < len(b.Series) && b.Series[s.Slot] == s
}

// Slot is the series' number in the buffer. A sample is to follow: Flush relies on each series having one.
func (b *Buffer) Slot(s *cache.Series) uint32 {
	if !b.has(s) {
		s.Slot = uint32(len(b.Series))
		b.Series = append(b.Series, s)
		b.Counts = append(b.Counts, 0)
	}
	return s.Slot
}

// none is the buffer of a column that has nothing. Nobody writes to it.
var none = &Buffer{}

// keep keeps what b refers to, and says whether that is anything.
func (b *Buffer) keep(x *cache.Expiry) bool {
	for _, s := range b.Series {
		x.KeepSeries(s)
	}
	for _, bt := range b.Batches {
		x.KeepLabels(bt.Labels)
	}
	return b.Samples.Len() > 0
}
