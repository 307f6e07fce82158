// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"math"
	"slices"

	"github.com/godwit-otel/godwit/internal/promwrite"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block/wire"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/store"
)

// references are the numbers of texts in a request of 2.0: each text gets the next one when it is first used.
type references struct {
	all      *store.Symbols
	text     []string // of symbols, by id
	local    []uint32 // by id: base plus the number in the request; up to base, it is of an earlier request
	base     uint32
	epoch    uint32   // counts requests
	count    uint32   // of symbols in the request
	symbols  []byte   // their fields
	mentions mentions // of texts that are no symbols

	resources []*cache.ResourceLabels // by place
	known     []uint32                // references of their values, stride for each place; 0 if there is none yet
	stride    int
}

// takeResources sets the resources of a flush.
func (r *references) takeResources(list []*cache.ResourceLabels) {
	r.resources, r.stride = list, 0
	for _, l := range list {
		r.stride = max(r.stride, len(l.Values))
	}
	r.known = slices.Grow(r.known[:0], r.stride*len(list))[:r.stride*len(list)]
}

// release drops references to the cache.
func (r *references) release() { r.text, r.resources = nil, nil }

// takeSnapshot takes a snapshot of the symbols.
func (r *references) takeSnapshot() {
	r.text = r.all.Snapshot()
	if n := len(r.text); n > len(r.local) {
		r.local = append(r.local, make([]uint32, n-len(r.local))...)
	}
}

// begin forgets the request before.
func (r *references) begin(version promwrite.Version) {
	if r.epoch++; r.epoch == 0 { // after 4 billion requests an old stamp would look new
		r.epoch = 1
	}
	if r.base += r.count; r.base > math.MaxUint32/2 { // a request has far fewer symbols than are left
		clear(r.local)
		r.base = 0
	}
	r.count, r.symbols = 0, r.symbols[:0]
	if version == promwrite.V2 {
		r.symbols = wire.AppendBytes(r.symbols, wire.SymbolV2, "")
	}
	r.mentions.begin(r.epoch)
	clear(r.known)
}

// of returns the number of a symbol.
func (r *references) of(id uint32) uint32 {
	if id == 0 {
		return 0
	}
	l := &r.local[id]
	if *l <= r.base {
		r.count++
		*l = r.base + r.count
		r.symbols = wire.AppendBytes(r.symbols, wire.SymbolV2, r.text[id])
	}
	return *l - r.base
}

// ofValue returns the number of a value of the resource at a place.
func (r *references) ofValue(place, i uint32) uint32 {
	ref := &r.known[int(place)*r.stride+int(i)]
	if *ref == 0 {
		*ref = r.of(r.resources[place].Values[i])
	}
	return *ref
}

// knows reports whether all values of the resource at a place have numbers already.
func (r *references) knows(place uint32) bool {
	first := int(place) * r.stride
	return !slices.Contains(r.known[first:first+len(r.resources[place].Values)], 0)
}

// ofText returns the number of an exemplar's text.
func (r *references) ofText(s []byte) uint32 {
	// A symbol newer than the snapshot is not in this request.
	if id, ok := r.all.Lookup(s); ok && int(id) < len(r.text) && r.text[id] == string(s) {
		return r.of(id)
	}
	r.mentions.grow(r.symbols)
	x := r.mentions.find(s, r.symbols)
	if x.epoch != r.epoch {
		r.count++
		r.mentions.used++
		r.symbols = wire.AppendBytes(r.symbols, wire.SymbolV2, s)
		*x = mention{epoch: r.epoch, at: uint32(len(r.symbols) - len(s)), size: uint32(len(s)), ref: r.count}
	}
	return x.ref
}
