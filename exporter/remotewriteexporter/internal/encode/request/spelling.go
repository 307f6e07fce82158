// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block/wire"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
)

// spelling is how messages of 1.0 spell the labels of a series, which is prepared once for all resources.
type spelling struct {
	series *cache.Series
	text   []string // of symbols, by id
	labels []byte   // without those of the resource
	cuts   []cut    // where these go
	texts  []text   // where their values are in the message appended last
}

// cut says that the resource's value i follows the label bytes before end.
type cut struct {
	end, i int
}

// text says where a value of the resource is in a message, and whether there are messages of the run with another.
type text struct {
	at, size int
	id       uint32 // of the symbol that is there
	value    int    // its place among the values of the resource
	varies   bool
}

// forget says that what was prepared is another request's.
func (p *spelling) forget() { p.series = nil }

// release drops references to the cache.
func (p *spelling) release() { p.series, p.text = nil, nil }

// prepare writes what all of a series' messages share.
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

// appendNoting is append that takes note of where the values of the resource are, from the index message of dst on.
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

// fill puts the values of a resource into a message like the one appended last. It is false if one is longer or shorter than what is there.
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
