// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"fmt"
	"slices"

	"github.com/zeebo/xxh3"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block/wire"
	"github.com/godwit-otel/godwit/internal/promwrite"
)

// A Spread decides which of several destinations a series goes to: those that score highest for its labels. A series
// keeps its destinations as long as they exist, and as few as possible move when one comes or goes. It is safe for
// concurrent use.
type Spread struct {
	destinations []uint64
	replicas     int
	labels       map[string]bool // that decide, or that do not; nil if all do
	decide       bool
}

// NewSpread spreads series over destinations, each to the given number of replicas. The listed labels decide or, if
// ignored, the others.
func NewSpread(destinations []string, replicas int, labels []string, ignored bool) *Spread {
	s := &Spread{replicas: min(replicas, len(destinations)), decide: !ignored}
	for _, d := range destinations {
		s.destinations = append(s.destinations, xxh3.HashString(d))
	}
	for _, l := range labels {
		if s.labels == nil {
			s.labels = map[string]bool{}
		}
		s.labels[l] = true
	}
	return s
}

func (s *Spread) decides(label []byte) bool {
	return s.labels == nil || s.labels[string(label)] == s.decide
}

// mix makes every bit of the result depend on every bit of x.
func mix(x uint64) uint64 {
	x ^= x >> 32
	x *= 0xe9846af9b1a615d
	x ^= x >> 32
	x *= 0xe9846af9b1a615d
	return x ^ x>>28
}

// pair returns what a label adds to the hash of a series. The order of labels does not matter.
func pair(name, value uint64) uint64 { return mix(name + 3*mix(value)) }

// choose sets the destinations of a series.
func (s *Spread) choose(series uint64, chosen []bool) {
	clear(chosen)
	for range s.replicas {
		best, score := -1, uint64(0)
		for i, d := range s.destinations {
			if n := mix(series ^ d); !chosen[i] && (best < 0 || n > score) {
				best, score = i, n
			}
		}
		chosen[best] = true
	}
}

// Partition makes a block for each destination, in their order: the zero block if nothing goes there. Series stay in
// their order. The metadata list of 1.0 goes to all.
func Partition(b Block, s *Spread, level int) ([]Block, error) {
	parts, err := partition(b, s, level)
	if err != nil {
		return nil, fmt.Errorf("cannot part a block of %s: %w", b.Version, err)
	}
	return parts, nil
}

func partition(b Block, s *Spread, level int) ([]Block, error) {
	raw, err := b.Raw()
	if err != nil {
		return nil, err
	}
	p := &partitioner{spread: s, parts: make([]part, len(s.destinations)), chosen: make([]bool, len(s.destinations))}
	p.version = b.Version
	if err := p.read(raw); err != nil {
		return nil, err
	}
	blocks := make([]Block, len(p.parts))
	for i := range p.parts {
		if blocks[i], err = p.parts[i].finish(b.Header, p.metadata, level); err != nil {
			return nil, err
		}
	}
	return blocks, nil
}

// partitioner reads a request as it is written here: symbols come first.
type partitioner struct {
	spread  *Spread
	version promwrite.Version
	parts   []part
	chosen  []bool

	symbols  [][]byte
	hashes   []uint64 // of the symbols
	decides  []bool   // whether the symbol is the name of a label that decides
	metadata []byte   // the metadata fields of 1.0
	entries  int      // number of these
}

// part is the request for one destination.
type part struct {
	merger

	head Header
}

func (p *partitioner) read(raw []byte) error {
	whole := len(raw)
	for len(raw) > 0 {
		f, err := cut(&raw)
		if err != nil {
			return err
		}
		switch {
		case p.version == promwrite.V1 && f.tag == wire.MetaV1:
			p.metadata = append(p.metadata, f.whole...)
			p.entries++
		case p.version == promwrite.V1 && f.tag == wire.SeriesV1, p.version == promwrite.V2 && f.tag == wire.SeriesV2:
			if err := p.series(f, whole); err != nil {
				return err
			}
		case p.version == promwrite.V2 && f.tag == wire.SymbolV2:
			p.symbols = append(p.symbols, f.content)
			p.hashes = append(p.hashes, xxh3.Hash(f.content))
			p.decides = append(p.decides, p.spread.decides(f.content))
		}
	}
	for i := range p.parts {
		p.parts[i].head.Metadata = p.entries
	}
	return nil
}

func (p *partitioner) series(f field, whole int) error {
	hash, head, err := p.look(f.content)
	if err != nil {
		return err
	}
	p.spread.choose(hash, p.chosen)
	for i, chosen := range p.chosen {
		if !chosen {
			continue
		}
		to := &p.parts[i]
		if err := to.take(p, f, whole); err != nil {
			return err
		}
		to.head.Samples += head.Samples
		to.head.Histograms += head.Histograms
		to.head.Exemplars += head.Exemplars
	}
	return nil
}

// take copies a series to the part.
func (t *part) take(p *partitioner, f field, whole int) error {
	if t.body == nil {
		t.body = make([]byte, 0, min(whole, maxRaw)*p.spread.replicas/len(p.parts)*9/8+len(f.whole))
	}
	if p.version == promwrite.V1 {
		t.body = append(t.body, f.whole...)
		return nil
	}
	if t.refs == nil {
		t.symbols, t.refs = p.symbols, slices.Repeat([]uint32{absent}, len(p.symbols))
		if _, err := t.ref(0); err != nil { // the empty text, which always comes first
			return err
		}
	}
	return t.series(f.content)
}

// look counts the contents of a series, and hashes the labels that decide.
func (p *partitioner) look(msg []byte) (hash uint64, head Header, err error) {
	for len(msg) > 0 {
		f, err := cut(&msg)
		if err != nil {
			return 0, head, err
		}
		switch {
		case f.tag == wire.Sample:
			head.Samples++
		case p.version == promwrite.V2 && f.tag == wire.HistogramV2, p.version == promwrite.V1 && f.tag == wire.HistogramV1:
			head.Histograms++
		case p.version == promwrite.V2 && f.tag == wire.ExemplarV2, p.version == promwrite.V1 && f.tag == wire.ExemplarV1:
			head.Exemplars++
		case p.version == promwrite.V2 && f.tag == wire.RefsV2:
			if hash, err = p.hashRefs(f.content); err != nil {
				return 0, head, err
			}
		case p.version == promwrite.V1 && f.tag == wire.LabelV1:
			one, err := p.hashLabel(f.content)
			if err != nil {
				return 0, head, err
			}
			hash += one
		}
	}
	return hash, head, nil
}

func (p *partitioner) hashRefs(packed []byte) (hash uint64, err error) {
	for len(packed) > 0 {
		name, n := protowire.ConsumeVarint(packed)
		if n < 0 || name >= uint64(len(p.symbols)) {
			return 0, errReference
		}
		value, m := protowire.ConsumeVarint(packed[n:])
		if m < 0 || value >= uint64(len(p.symbols)) {
			return 0, errReference
		}
		packed = packed[n+m:]
		if p.decides[name] {
			hash += pair(p.hashes[name], p.hashes[value])
		}
	}
	return hash, nil
}

func (p *partitioner) hashLabel(msg []byte) (hash uint64, err error) {
	var texts [2][]byte // name and value
	for len(msg) > 0 {
		number, _, n := protowire.ConsumeTag(msg)
		if n < 0 {
			return 0, protowire.ParseError(n)
		}
		f, err := cut(&msg)
		if err != nil {
			return 0, err
		}
		if number == 1 || number == 2 {
			texts[number-1] = f.content
		}
	}
	if !p.spread.decides(texts[0]) {
		return 0, nil
	}
	return pair(xxh3.Hash(texts[0]), xxh3.Hash(texts[1])), nil
}

// finish makes a block of a part of like.
func (t *part) finish(like Header, metadata []byte, level int) (Block, error) {
	raw := slices.Concat(t.table, t.body)
	if like.Samples+like.Histograms == 0 || len(t.body) > 0 {
		raw = append(raw, metadata...)
	}
	if len(raw) == 0 {
		return Block{}, nil
	}
	like.Samples, like.Histograms, like.Exemplars, like.Metadata = t.head.Samples, t.head.Histograms, t.head.Exemplars, t.head.Metadata
	like.RawSize = len(raw)
	body, err := Compress(nil, Format{Version: like.Version, Compression: like.Compression, Level: level}, raw)
	return New(like, body), err
}
