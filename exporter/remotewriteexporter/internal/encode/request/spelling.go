// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block/wire"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
)

// spelling has the encoded labels of a series in 1.0, prepared once for all resources.
type spelling struct {
	series *cache.Series
	text   []string // of symbols, by id
	labels []byte   // without those of the resource
	cuts   []cut    // where the resource's labels go
	texts  []text   // where their values are in the last message
}

// cut says that the resource's value i comes before the label bytes at end.
type cut struct {
	end, i int
}

// text says where a value of the resource is in a message, and whether messages of the run differ in it.
type text struct {
	at, size int
	id       uint32 // the symbol that is there
	value    int    // its index in the values of the resource
	varies   bool
}

// forget invalidates what was prepared, after a request.
func (p *spelling) forget() { p.series = nil }

// release drops references to the cache.
func (p *spelling) release() { p.series, p.text = nil, nil }

// prepare encodes what all of a series' messages share.
func (p *spelling) prepare(s *cache.Row, text []string) {
	p.series, p.text = s.Series, text
	p.labels, p.cuts = p.labels[:0], p.cuts[:0]
	for _, l := range s.Layout.Labels {
		if l.Value&cache.FromResource != 0 {
			p.cuts = append(p.cuts, cut{len(p.labels), int(l.Value & cache.PlaceMask)})
		} else {
			p.labels = wire.AppendLabel(p.labels, text[l.Name], text[s.Ref(l)])
		}
	}
}

// append appends the labels of the series of a resource.
func (p *spelling) append(dst []byte, s *cache.Row, r *cache.ResourceLabels) []byte {
	at := 0
	for _, c := range p.cuts {
		dst = append(dst, p.labels[at:c.end]...)
		dst = wire.AppendLabel(dst, s.Layout.Schema.Names[c.i], p.text[r.Values[c.i]])
		at = c.end
	}
	return append(dst, p.labels[at:]...)
}

// appendNoting is append that also records where the values of the resource are in the message that begins at
// dst[message:].
func (p *spelling) appendNoting(dst []byte, message int, s *cache.Row, r *cache.ResourceLabels) []byte {
	p.texts = p.texts[:0]
	at := 0
	for _, c := range p.cuts {
		dst = append(dst, p.labels[at:c.end]...)
		id := r.Values[c.i]
		value := p.text[id]
		dst = wire.AppendLabel(dst, s.Layout.Schema.Names[c.i], value)
		p.texts = append(p.texts, text{at: len(dst) - len(value) - message, size: len(value), id: id, value: c.i})
		at = c.end
	}
	return append(dst, p.labels[at:]...)
}

// fill writes the values of a resource into a message like the last one. It returns false if the length of one differs.
func (p *spelling) fill(message []byte, r *cache.ResourceLabels) bool {
	for i := range p.texts {
		x := &p.texts[i]
		id := r.Values[x.value]
		if id == x.id {
			continue
		}
		value := p.text[id]
		if len(value) != x.size {
			return false
		}
		copy(message[x.at:], value)
		x.varies = true
	}
	return true
}
