// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"encoding/binary"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block/wire"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
)

// prefix is the beginning of a message of 2.0, up to its samples. The next series of the same layout usually differs in
// the values of labels, but not in the length of their references.
type prefix struct {
	refs   *references
	series *cache.Series // the series that it is of; nil if none
	layout *cache.Layout
	bytes  []byte
	cut    int // offset of the first label of the resource; 0 if there is none, or if labels are too long to be cut
	// Values that may differ: those of points, of resources, and those that are the layout's, in which the next layout
	// may differ.
	own, resource, fixed []hole
	// The metadata that ends the message.
	tail   []byte
	tailOf *cache.Meta
}

// forget invalidates the prefix after a request.
func (p *prefix) forget() { p.series, p.layout, p.tailOf = nil, nil, nil }

// hole is a place for a value: where its label begins, where its reference is, the reference there now, and which value
// it is: an index in the values of the point or of the resource.
type hole struct {
	begin, at, size int
	ref, value      uint32
}

// leastRef is the least number of bytes of a value's reference, although the first 127 need only one. So messages have
// one length whether their values were mentioned early in a request or not, and are runs. Protobuf allows numbers with
// leading zeros.
const leastRef = 2

// wideRef is a reference of less than 14 bits in two bytes, the lower first.
func wideRef(ref uint32) uint16 { return uint16(ref&0x7f | 0x80 | ref>>7<<8) }

// appendRef appends the reference of a value.
func appendRef(dst []byte, ref uint32) []byte {
	if ref < 1<<(7*leastRef) {
		return binary.LittleEndian.AppendUint16(dst, wideRef(ref))
	}
	return binary.AppendUvarint(dst, uint64(ref))
}

// put writes a reference. It returns false if its length differs from that of the hole.
func (x *hole) put(message []byte, ref uint32) bool {
	switch {
	case x.size == leastRef && ref < 1<<(7*leastRef): // fast path: PutUvarint without its loop
		binary.LittleEndian.PutUint16(message[x.at:], wideRef(ref))
	case x.size > leastRef && x.size == wire.Size(uint64(ref)):
		binary.PutUvarint(message[x.at:], uint64(ref))
	default:
		return false
	}
	return true
}

// setSeries changes the prefix to that of a series of the resource at a place.
func (p *prefix) setSeries(s *cache.Row, place uint32) {
	if p.layout != s.Layout && !p.adaptTo(s.Layout) {
		p.compose(s, place)
		return
	}
	if p.series != s.Series {
		for i := range p.own {
			x := &p.own[i]
			if !p.set(x, p.refs.of(s.Values[x.value])) {
				p.compose(s, place)
				return
			}
		}
		p.series = s.Series
	}
	for i := range p.resource {
		x := &p.resource[i]
		if !p.set(x, p.refs.ofValue(place, x.value)) {
			p.compose(s, place)
			return
		}
	}
}

// adaptTo changes the prefix to that of another layout, if that differs only in values of its own with the same length:
// as those of buckets do, and of metrics without labels. It returns false if the prefix must be made anew.
func (p *prefix) adaptTo(to *cache.Layout) bool {
	if p.layout == nil || p.layout.Schema != to.Schema || len(p.layout.Labels) != len(to.Labels) {
		return false
	}
	fixed := p.fixed
	for i, l := range to.Labels {
		was := p.layout.Labels[i]
		switch {
		case l.Name != was.Name || (l.Value|was.Value)&^cache.PlaceMask != 0 && l.Value != was.Value:
			return false
		case l.Value&^cache.PlaceMask != 0: // the resource's or the point's
			continue
		case l.Value != was.Value && !p.set(&fixed[0], p.refs.of(l.Value)):
			return false
		}
		fixed = fixed[1:]
	}
	p.series, p.layout = nil, to
	return true
}

// set writes a reference into a hole, unless it is there already, as the job of a resource usually is.
func (p *prefix) set(x *hole, ref uint32) bool {
	if ref == x.ref {
		return true
	}
	x.ref = ref
	return x.put(p.bytes, ref)
}

// compose makes the prefix anew.
func (p *prefix) compose(s *cache.Row, place uint32) {
	p.series, p.layout, p.own, p.resource, p.fixed = s.Series, s.Layout, p.own[:0], p.resource[:0], p.fixed[:0]
	if !p.refs.knows(place) {
		for _, l := range s.Layout.Labels { // its own symbols side by side, before those of resources
			p.refs.of(l.Name)
			if l.Value&cache.FromResource == 0 {
				p.refs.of(s.Ref(l))
			}
		}
		p.metadata(s.Layout.Meta)
	}
	m, _ := wire.Begin(p.bytes[:0], wire.SeriesV2)
	m, content := wire.Begin(m, wire.RefsV2)
	p.cut = 0
	for _, l := range s.Layout.Labels {
		if l.Value&cache.FromResource != 0 && p.cut == 0 {
			p.cut = len(m)
		}
		x := hole{begin: len(m), value: l.Value & cache.PlaceMask}
		m = binary.AppendUvarint(m, uint64(p.refs.of(l.Name)))
		x.at = len(m)
		if l.Value&cache.FromResource != 0 {
			x.ref = p.refs.ofValue(place, x.value)
		} else {
			x.ref = p.refs.of(s.Ref(l))
		}
		m = appendRef(m, x.ref)
		x.size = len(m) - x.at
		switch l.Value &^ cache.PlaceMask {
		case cache.FromResource:
			p.resource = append(p.resource, x)
		case cache.FromPoint:
			p.own = append(p.own, x)
		default:
			p.fixed = append(p.fixed, x)
		}
	}
	p.bytes = wire.End(m, content)
	moved := len(p.bytes) - len(m) // what made room for a longer length
	if moved > 0 {
		p.cut = 0
	}
	for _, holes := range [...][]hole{p.own, p.resource, p.fixed} {
		for i := range holes {
			holes[i].at += moved
		}
	}
}

// metadata returns the end of a message of 2.0.
func (p *prefix) metadata(m *cache.Meta) []byte {
	if m == nil {
		return nil
	}
	if p.tailOf != m {
		p.tailOf = m
		p.tail = wire.AppendMetaV2(p.tail[:0], m.Kind, p.refs.of(m.HelpRef), p.refs.of(m.UnitRef))
	}
	return p.tail
}

// fill writes the references of the values of the resource at a place into a message of this prefix. It returns false
// if the length of one differs.
func (p *prefix) fill(message []byte, place uint32) bool {
	known := p.refs.known[int(place)*p.refs.stride:]
	for i := range p.resource {
		x := &p.resource[i]
		ref := known[x.value]
		if ref == x.ref { // it is there already
			continue
		}
		if ref == 0 {
			ref = p.refs.ofValue(place, x.value)
		}
		if x.size == leastRef && ref < 1<<(7*leastRef) { // fast path
			binary.LittleEndian.PutUint16(message[x.at:], wideRef(ref))
		} else if !x.put(message, ref) {
			return false
		}
	}
	return true
}

// fillOwn writes the references of a point's values into a message of this prefix. Those after cut are shift bytes
// further on than in the prefix. It returns false if the length of one differs.
func (p *prefix) fillOwn(message []byte, shift, cut int, values []uint32) bool {
	for i := range p.own {
		x := &p.own[i]
		ref := p.refs.of(values[x.value])
		if ref == x.ref { // it is there already
			continue
		}
		behind := message
		if x.at >= cut {
			behind = message[shift:]
		}
		if !x.put(behind, ref) {
			return false
		}
	}
	return true
}
