// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/godwit-otel/godwit/internal/promwrite"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/histogram"
)

const (
	// maxScratch is how many samples one call of Add collects, a metric more or less, before it locks the columns.
	maxScratch = 4 << 10
	// fewSamples is for how many samples there is room, whether as many come or not.
	fewSamples = 16 << 10
	// fewExemplars is for how many that are new a scratch keeps room, whether as many come or not. Of a page that is new, all are.
	fewExemplars = 1 << 12
	// fewBytes is for how many bytes of histograms and exemplars a buffer keeps room, whether as many come or not.
	fewBytes = 64 << 10
	// maxSpare is for how many series a second buffer keeps room, whether it is needed or not: about a request, which is what comes
	// while another is encoded. A page that is larger by itself needs one buffer only.
	maxSpare = 64 << 10
	// fewAlone is after how many flushes in a row during which nothing came a larger one is let go.
	fewAlone = 16
)

// column collects the samples of one shard and tenant.
type column struct {
	flushing sync.Mutex // held through a Flush

	mu    sync.Mutex
	open  *buffer
	cut   *buffer // what the next Flush takes, where a Cut has said what that is
	spare *buffer
	// usual is about how many samples, and what is beside them, the larger of the last buffers held.
	usual struct{ samples, bytes, starts, exemplars int }
	alone int // flushes in a row during which nothing came
}

func newColumns(n int) []column {
	columns := make([]column, n)
	for i := range columns {
		columns[i].open = newBuffer()
	}
	return columns
}

// buffer is what a Flush takes. Each sample is found by its number in several slices, so that most take little.
type buffer struct {
	series     []*cache.Series
	counts     []uint32 // samples of each series
	batches    []batch
	samples    samples
	starts     []int64
	histograms []native
	exemplars  []exemplar
	bytes      []byte // of histograms and exemplars
	// unlisted says that some series had no place in the cache: the same one may be here several times.
	unlisted bool
	number   uint64 // no other has it, nor the same memory before or after
}

// buffers counts those that there were.
var buffers atomic.Uint64

func newBuffer() *buffer { return &buffer{number: buffers.Add(1)} }

// begin says whose samples follow.
func (b *buffer) begin(labels *cache.ResourceLabels) {
	if last := len(b.batches) - 1; last < 0 || b.batches[last].labels != labels {
		b.batches = append(b.batches, batch{labels, uint32(b.samples.len())})
	}
}

// addStart says when a sample has begun to count, if that is known.
func (b *buffer) addStart(s *sample, start int64) {
	if start != 0 {
		b.starts = append(b.starts, start)
		s.extra = uint32(len(b.starts))
	}
}

// batch is a run of samples of one resource: all up to the next batch's first.
type batch struct {
	labels *cache.ResourceLabels
	first  uint32
}

// end is where a batch ends in samples.
func (b *buffer) end(i int) uint32 {
	if i+1 < len(b.batches) {
		return b.batches[i+1].first
	}
	return uint32(b.samples.len())
}

// sample is a value at a time. extra is 0, or says where in starts or, with isHistogram, in histograms to look.
type sample struct {
	of    uint32 // the series' slot; once laid out, the resource's place
	extra uint32
	time  int64
	bits  uint64
}

const isHistogram = 1 << 31

// start is the start timestamp of a number, zero if there is none.
func (b *buffer) start(s *sample) int64 {
	if s.extra == 0 {
		return 0
	}
	return b.starts[s.extra-1]
}

// native is an encoded native histogram, but for the start timestamp.
type native struct {
	start      int64
	first, end uint32 // in bytes
	custom     bool   // of custom buckets
}

// exemplar belongs to a series and a resource; its labels are encoded as pairs of texts.
type exemplar struct {
	slot       uint32
	labels     *cache.ResourceLabels
	time       int64
	bits       uint64
	first, end uint32 // in bytes
}

// scratch collects the samples of one Add by shard, so that each column is locked once.
type scratch struct {
	shards   []part
	unlisted bool                  // some of the series have no place in the cache
	labels   *cache.ResourceLabels // of what is added next
	points   int
	// For one point at a time.
	bounds      []float64
	counts      []uint64
	encoded     []byte
	exponential histogram.Exponential
	native      promwrite.Histogram
}

// part is what a scratch has for one shard.
type part struct {
	labels    *cache.ResourceLabels // of the last batch
	batches   []batch
	values    []value
	exemplars []pendingExemplar
	bytes     []byte
	// usual is about how many exemplars there were in the larger of the last that had any.
	usual int
}

// value is a sample on its way to a column. Of a histogram, bits say where in bytes it is.
type value struct {
	series *cache.Series
	time   int64
	bits   uint64
	start  int64
	kind   valueKind
}

type valueKind uint8

const (
	kindNumber valueKind = iota
	kindNative
	kindCustom
)

type pendingExemplar struct {
	series     *cache.Series
	labels     *cache.ResourceLabels
	time       int64
	bits       uint64
	first, end uint32
}

func (e *Encoder) scratch() *scratch {
	select {
	case s := <-e.scratches:
		return s
	default:
		return &scratch{shards: make([]part, e.cfg.Shards)}
	}
}

// part is that of a series' shard.
func (s *scratch) part(series *cache.Series) *part {
	return &s.shards[uint32(series.Spread)*uint32(len(s.shards))>>16]
}

// begin says whose samples follow.
func (s *scratch) begin(labels *cache.ResourceLabels) { s.labels = labels }

// add takes a number.
func (s *scratch) add(series *cache.Series, time int64, bits uint64, start int64) {
	p := s.part(series)
	if p.labels != s.labels {
		p.labels = s.labels
		p.batches = append(p.batches, batch{s.labels, uint32(len(p.values))})
	}
	n := len(p.values)
	p.values = slices.Grow(p.values, 1)[:n+1]
	v := &p.values[n] // field by field: what is made elsewhere in small pieces is slow to copy
	v.series, v.time, v.bits, v.start, v.kind = series, time, bits, start, kindNumber
	s.points++
}

// addHistogram takes s.encoded.
func (s *scratch) addHistogram(series *cache.Series, time, start int64, kind valueKind) {
	p := s.part(series)
	first := len(p.bytes)
	p.bytes = append(p.bytes, s.encoded...)
	s.add(series, time, uint64(first)<<32|uint64(len(p.bytes)), start)
	p.values[len(p.values)-1].kind = kind
}

// addExemplar takes s.encoded as the labels.
func (s *scratch) addExemplar(series *cache.Series, time int64, bits uint64) {
	p := s.part(series)
	first := len(p.bytes)
	p.bytes = append(p.bytes, s.encoded...)
	p.exemplars = append(p.exemplars, pendingExemplar{series, s.labels, time, bits, uint32(first), uint32(len(p.bytes))})
}

// commit moves everything into a tenant's columns.
func (s *scratch) commit(t *account) {
	for i := range s.shards {
		p := &s.shards[i]
		if len(p.values) > 0 {
			t.columns[i].take(p, s.unlisted)
		}
		p.labels = nil
		if n := len(p.exemplars); n > 0 {
			p.usual = max(n, p.usual-p.usual/64)
		}
		clear(p.batches)
		clear(p.values)
		clear(p.exemplars)
		p.batches, p.values, p.exemplars, p.bytes = p.batches[:0], p.values[:0], p.exemplars[:0], p.bytes[:0]
		if cap(p.values) > 4*fewSamples { // one huge batch must not pin memory for ever
			*p = part{}
		}
		if cap(p.exemplars) > fewExemplars+2*p.usual {
			p.exemplars, p.bytes = nil, nil
		}
	}
	s.points, s.unlisted = 0, false
}

func (c *column) take(p *part, unlisted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.open
	b.unlisted = b.unlisted || unlisted
	base := uint32(len(b.bytes))
	b.bytes = append(b.bytes, p.bytes...)
	for i, bt := range p.batches {
		end := uint32(len(p.values))
		if i+1 < len(p.batches) {
			end = p.batches[i+1].first
		}
		b.begin(bt.labels)
		for j := bt.first; j < end; j++ {
			v := &p.values[j]
			slot := b.slot(v.series)
			b.counts[slot]++
			s := b.samples.add()
			s.of, s.extra, s.time, s.bits = slot, 0, v.time, v.bits
			switch {
			case v.kind != kindNumber:
				s.bits, s.extra = 0, isHistogram|uint32(len(b.histograms))
				b.histograms = append(b.histograms, native{
					start: v.start, first: base + uint32(v.bits>>32), end: base + uint32(v.bits), custom: v.kind == kindCustom,
				})
			default:
				b.addStart(s, v.start)
			}
		}
	}
	for _, x := range p.exemplars {
		b.exemplars = append(b.exemplars, exemplar{b.slot(x.series), x.labels, x.time, x.bits, base + x.first, base + x.end})
	}
}

// slot is the series' number in the buffer. What a series remembers may be of a buffer before.
func (b *buffer) slot(s *cache.Series) uint32 {
	if int(s.Slot) >= len(b.series) || b.series[s.Slot] != s {
		s.Slot = uint32(len(b.series))
		b.series = append(b.series, s)
		b.counts = append(b.counts, 0)
	}
	return s.Slot
}

// none is the buffer of a column that has nothing. Nobody writes to it.
var none = &buffer{}

// cutOff ends the open buffer, for the next swap to take, and opens another.
func (c *column) cutOff() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut == nil {
		c.cut = c.end()
	}
}

// swap takes what was cut off, or else the open buffer; nil if it is empty.
func (c *column) swap() *buffer {
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
func (c *column) end() *buffer {
	b := c.open
	if b.samples.len() == 0 {
		return none
	}
	c.open, c.spare = c.spare, nil
	if c.open == nil {
		c.open = newBuffer()
	}
	return b
}

// giveBack empties a buffer for the next swap. A buffer that is much larger than it has needed to be for a while is let
// go; the small rest of a large page does not count as a while.
func (c *column) giveBack(b *buffer) {
	u := &c.usual
	u.samples = max(b.samples.len(), u.samples-u.samples/16)
	u.bytes = max(len(b.bytes), u.bytes-u.bytes/16)
	u.starts = max(len(b.starts), u.starts-u.starts/16)
	u.exemplars = max(len(b.exemplars), u.exemplars-u.exemplars/16)
	clear(b.series)
	clear(b.batches)
	clear(b.exemplars)
	b.samples.clear()
	*b = buffer{
		series: b.series[:0], counts: b.counts[:0], batches: b.batches[:0], samples: b.samples,
		starts: b.starts[:0], histograms: b.histograms[:0], exemplars: b.exemplars[:0], bytes: b.bytes[:0],
		number: buffers.Add(1),
	}
	// Of a page that is new all exemplars are.
	b.bytes = bounded(b.bytes, 2*u.bytes+fewBytes)
	b.starts = bounded(b.starts, 2*u.starts+fewSamples)
	b.exemplars = bounded(b.exemplars, 2*u.exemplars+fewExemplars)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.alone++; len(c.open.series) > 0 {
		c.alone = 0
	} else if !c.tooLarge(b) {
		b, c.open = c.open, b // nothing came meanwhile: the same buffer will do again
	}
	if c.spare = nil; (cap(b.series) <= maxSpare || c.alone < fewAlone) && !c.tooLarge(b) {
		c.spare = b
	}
}

// keep keeps what is not flushed yet, and says whether that is anything.
func (c *column) keep(x *cache.Expiry) bool {
	pending := c.open.keep(x)
	return c.cut != nil && c.cut.keep(x) || pending
}

// keep keeps what b refers to, and says whether that is anything.
func (b *buffer) keep(x *cache.Expiry) bool {
	for _, s := range b.series {
		x.KeepSeries(s)
	}
	for _, bt := range b.batches {
		x.KeepLabels(bt.labels)
	}
	return b.samples.len() > 0
}

// bounded returns a list, or none if it has room for more than most.
func bounded[T any](list []T, most int) []T {
	if cap(list) > most {
		return nil
	}
	return list
}

// tooLarge says whether a buffer is much larger than has been needed for a while.
func (c *column) tooLarge(b *buffer) bool { return cap(b.series) > 4*c.usual.samples+fewSamples }

// Pending says how many samples and about how many bytes, before compression, a shard of a tenant holds.
func (e *Encoder) Pending(shard int, tenant string) (samples, bytes int) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	t := e.find(tenant)
	if t == nil {
		return 0, 0
	}
	c := &t.columns[shard]
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.open
	return b.samples.len(), b.samples.len()*rawPerSample + len(b.series)*rawPerSeries + len(b.bytes)
}

// What a sample and a series take up in a request, about.
const (
	rawPerSample = 48
	rawPerSeries = 96
)
