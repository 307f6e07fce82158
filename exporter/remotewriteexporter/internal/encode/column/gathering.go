// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package column

import (
	"slices"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
)

// Gathering collects the samples of one Add by shard, so that each column is locked once.
type Gathering struct {
	Shards   []part
	Unlisted bool                  // some series have no place in the cache
	Labels   *cache.ResourceLabels // of what is added next
	Points   int
}

// NewGathering makes one for some columns.
func NewGathering(shards int) *Gathering { return &Gathering{Shards: make([]part, shards)} }

// part is the part of a gathering for one shard.
type part struct {
	labels    *cache.ResourceLabels // of the last batch
	batches   []batch
	values    []value
	exemplars []pendingExemplar
	bytes     []byte
	// usual is about how many exemplars there were in the larger of the last gatherings with any.
	usual int
}

// value is a sample that is not in a column yet. For a histogram, bits are its offsets in bytes.
type value struct {
	series *cache.Series
	time   int64
	bits   uint64
	start  int64
	kind   valueKind
}

type valueKind uint8

// The kinds of values: a number, a native histogram, and one with custom buckets.
const (
	kindNumber valueKind = iota
	KindNative
	KindCustom
)

type pendingExemplar struct {
	series     *cache.Series
	labels     *cache.ResourceLabels
	time       int64
	bits       uint64
	first, end uint32
}

// part returns the part of a series' shard.
func (g *Gathering) part(series *cache.Series) *part {
	return &g.Shards[uint32(series.Spread)*uint32(len(g.Shards))>>16]
}

// Begin sets the resource of what is added next.
func (g *Gathering) Begin(labels *cache.ResourceLabels) { g.Labels = labels }

// Add adds a number.
func (g *Gathering) Add(series *cache.Series, time int64, bits uint64, start int64) {
	p := g.part(series)
	if p.labels != g.Labels {
		p.labels = g.Labels
		p.batches = append(p.batches, batch{g.Labels, uint32(len(p.values))})
	}
	n := len(p.values)
	p.values = slices.Grow(p.values, 1)[:n+1]
	v := &p.values[n] // field by field: a copy of a struct made elsewhere in small pieces is slow
	v.series, v.time, v.bits, v.start, v.kind = series, time, bits, start, kindNumber
	g.Points++
}

// AddHistogram adds an encoded histogram.
func (g *Gathering) AddHistogram(series *cache.Series, encoded []byte, time, start int64, kind valueKind) {
	p := g.part(series)
	first := len(p.bytes)
	p.bytes = append(p.bytes, encoded...)
	g.Add(series, time, uint64(first)<<32|uint64(len(p.bytes)), start)
	p.values[len(p.values)-1].kind = kind
}

// AddExemplar adds an exemplar with encoded labels.
func (g *Gathering) AddExemplar(series *cache.Series, encoded []byte, time int64, bits uint64) {
	p := g.part(series)
	first := len(p.bytes)
	p.bytes = append(p.bytes, encoded...)
	p.exemplars = append(p.exemplars, pendingExemplar{series, g.Labels, time, bits, uint32(first), uint32(len(p.bytes))})
}

// Commit moves everything into columns.
func (g *Gathering) Commit(columns []Column) {
	for i := range g.Shards {
		p := &g.Shards[i]
		if len(p.values) > 0 {
			columns[i].take(p, g.Unlisted)
		}
		p.labels = nil
		if n := len(p.exemplars); n > 0 {
			p.usual = max(n, p.usual-p.usual/64)
		}
		clear(p.batches)
		clear(p.values)
		clear(p.exemplars)
		p.batches, p.values, p.exemplars, p.bytes = p.batches[:0], p.values[:0], p.exemplars[:0], p.bytes[:0]
		if cap(p.values) > 4*FewSamples { // one huge batch must not hold memory for ever
			*p = part{}
		}
		if cap(p.exemplars) > fewExemplars+2*p.usual {
			p.exemplars, p.bytes = nil, nil
		}
	}
	g.Points, g.Unlisted = 0, false
}
