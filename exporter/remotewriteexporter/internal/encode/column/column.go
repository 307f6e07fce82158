// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package column collects samples, by shard and tenant, until a Flush takes them.
//
// A Gathering holds the samples of one call and commits them at once, so that a Column is locked once. Flush gets a Buffer from a Column,
// and returns it to use its memory again. Samples refer to entries of the cache, which Keep marks as needed.
package column

import (
	"sync"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
)

const (
	// FewSamples is the number of samples for which memory is always kept.
	FewSamples = 16 << 10
	// fewExemplars is the number of new exemplars for which a gathering always keeps memory. On a new page, all are
	// new.
	fewExemplars = 1 << 12
	// fewBytes is the number of bytes of histograms and exemplars for which a buffer always keeps memory.
	fewBytes = 64 << 10
	// maxSpare is the number of series up to which a second buffer is kept even if it is not needed: about one request,
	// which is what comes while another is encoded. A larger page needs one buffer only.
	maxSpare = 64 << 10
	// fewAlone is the number of consecutive flushes during which nothing came, after which a larger one is freed.
	fewAlone = 16
)

// Column collects the samples of one shard and tenant.
type Column struct {
	Flushing sync.Mutex // held through a Flush

	mu    sync.Mutex
	open  *Buffer
	cut   *Buffer // what the next Flush takes, after a Cut
	spare *Buffer
	// usual is about the numbers of samples and other things in the larger of the last buffers.
	usual struct{ samples, bytes, starts, exemplars int }
	alone int // consecutive flushes during which nothing came
}

// New makes n columns.
func New(n int) []Column {
	columns := make([]Column, n)
	for i := range columns {
		columns[i].open = newBuffer()
	}
	return columns
}

func (c *Column) take(p *part, unlisted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.open
	b.Unlisted = b.Unlisted || unlisted
	base := uint32(len(b.Bytes))
	b.Bytes = append(b.Bytes, p.bytes...)
	for i, bt := range p.batches {
		end := uint32(len(p.values))
		if i+1 < len(p.batches) {
			end = p.batches[i+1].First
		}
		b.Begin(bt.Labels)
		for j := bt.First; j < end; j++ {
			v := &p.values[j]
			slot := b.Slot(v.series)
			b.Counts[slot]++
			s := b.Samples.Add()
			s.Of, s.Extra, s.Time, s.Bits = slot, 0, v.time, v.bits
			switch {
			case v.kind != kindNumber:
				s.Bits, s.Extra = 0, IsHistogram|uint32(len(b.Histograms))
				b.Histograms = append(b.Histograms, native{
					Start: v.start, First: base + uint32(v.bits>>32), End: base + uint32(v.bits), Custom: v.kind == KindCustom,
				})
			default:
				b.AddStart(s, v.start)
			}
		}
	}
	for _, x := range p.exemplars {
		if !b.has(x.series) {
			continue // there is no sample to attach it to, as with a bucket without a count
		}
		b.Exemplars = append(b.Exemplars, Exemplar{
			Slot: x.series.Slot, Labels: x.labels, Time: x.time, Bits: x.bits, First: base + x.first, End: base + x.end,
		})
	}
}

// CutOff closes the open buffer, for the next Swap to take, and opens another.
func (c *Column) CutOff() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut == nil {
		c.cut = c.end()
	}
}

// Swap takes what was cut off, or else the open buffer; nil if that is empty.
func (c *Column) Swap() *Buffer {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.cut
	if c.cut = nil; b == nil {
		b = c.end()
	}
	if b == none {
		return nil
	}
	return b
}

// end takes the open buffer and opens another; the caller holds mu.
func (c *Column) end() *Buffer {
	b := c.open
	if b.Samples.Len() == 0 {
		return none
	}
	c.open, c.spare = c.spare, nil
	if c.open == nil {
		c.open = newBuffer()
	}
	return b
}

// GiveBack empties a buffer for the next Swap. A buffer that was much larger than needed for a while is freed; the
// small rest of a large page does not count for that.
func (c *Column) GiveBack(b *Buffer) {
	u := &c.usual
	u.samples = max(b.Samples.Len(), u.samples-u.samples/16)
	u.bytes = max(len(b.Bytes), u.bytes-u.bytes/16)
	u.starts = max(len(b.starts), u.starts-u.starts/16)
	u.exemplars = max(len(b.Exemplars), u.exemplars-u.exemplars/16)
	clear(b.Series)
	clear(b.Batches)
	clear(b.Exemplars)
	b.Samples.clear()
	*b = Buffer{
		Series: b.Series[:0], Counts: b.Counts[:0], Batches: b.Batches[:0], Samples: b.Samples,
		starts: b.starts[:0], Histograms: b.Histograms[:0], Exemplars: b.Exemplars[:0], Bytes: b.Bytes[:0],
		Number: buffers.Add(1),
	}
	// On a new page, all exemplars are new.
	b.Bytes = bounded(b.Bytes, 2*u.bytes+fewBytes)
	b.starts = bounded(b.starts, 2*u.starts+FewSamples)
	b.Exemplars = bounded(b.Exemplars, 2*u.exemplars+fewExemplars)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.alone++; len(c.open.Series) > 0 {
		c.alone = 0
	} else if !c.tooLarge(b) {
		b, c.open = c.open, b // nothing came meanwhile: continue with the same buffer
	}
	if c.spare = nil; (cap(b.Series) <= maxSpare || c.alone < fewAlone) && !c.tooLarge(b) {
		c.spare = b
	}
}

// Lock returns the open buffer, to which the caller may add until Unlock.
func (c *Column) Lock() *Buffer {
	c.mu.Lock()
	return c.open
}

// Unlock ends what Lock began.
func (c *Column) Unlock() { c.mu.Unlock() }

// Keep keeps what is not flushed yet, and reports whether that is anything.
func (c *Column) Keep(x *cache.Expiry) bool {
	pending := c.open.keep(x)
	return c.cut != nil && c.cut.keep(x) || pending
}

// bounded returns the list, or nil if its capacity exceeds most.
func bounded[T any](list []T, most int) []T {
	if cap(list) > most {
		return nil
	}
	return list
}

// tooLarge reports whether a buffer is much larger than was needed for a while.
func (c *Column) tooLarge(b *Buffer) bool { return cap(b.Series) > 4*c.usual.samples+FewSamples }

// Pending returns how many samples and about how many bytes, before compression, the open buffer holds.
func (c *Column) Pending() (samples, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.open
	return b.Samples.Len(), b.Samples.Len()*rawPerSample + len(b.Series)*rawPerSeries + len(b.Bytes)
}

// About what a sample and a series take in a request.
const (
	rawPerSample = 48
	rawPerSeries = 96
)
