// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"encoding/binary"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block/wire"
)

// prefix is how a message of 2.0 begins, up to its samples. The next of a series of the same layout mostly differs in
// the values of labels, but not in the length of their references.
type prefix struct {
	series *series // of which it is; nil if of none
	layout *layout
	bytes  []byte
	holes  []hole // of values that may differ
}

// hole says where the reference of a value begins and ends, which one it is there, and of which value, as labelRef does.
type hole struct {
	at, end    int
	ref, value uint32
}

// appendPrefix begins a message of 2.0: its head and its labels.
func (w *flusher) appendPrefix(dst []byte, s *row, place uint32) []byte {
	p := &w.prefix
	if p.layout != s.layout {
		w.compose(s, place)
		return append(dst, p.bytes...)
	}
	at := len(dst)
	dst = append(dst, p.bytes...)
	m := dst[at:]
	for i := range p.holes {
		x := &p.holes[i]
		var ref uint32
		switch {
		case x.value&fromResource != 0:
			ref = w.valueRef(place, x.value&placeMask)
		case s.series == p.series: // it is there already
			continue
		default:
			ref = w.ref(s.values[x.value&placeMask])
		}
		if ref == x.ref { // it is there already, as the job of a resource mostly is
			continue
		}
		if wire.Size(uint64(ref)) != x.end-x.at {
			w.compose(s, place)
			return append(dst[:at], p.bytes...)
		}
		binary.PutUvarint(m[x.at:x.end], uint64(ref))
	}
	return dst
}

// compose makes the prefix anew.
func (w *flusher) compose(s *row, place uint32) {
	p := &w.prefix
	p.series, p.layout, p.holes = s.series, s.layout, p.holes[:0]
	for _, l := range s.layout.labels { // its own symbols side by side, before those of resources
		w.ref(l.name)
		if l.value&fromResource == 0 {
			w.ref(s.ref(l))
		}
	}
	w.metadata(s.layout.meta)
	m, _ := wire.Begin(p.bytes[:0], wire.SeriesV2)
	m, content := wire.Begin(m, wire.RefsV2)
	for _, l := range s.layout.labels {
		m = binary.AppendUvarint(m, uint64(w.ref(l.name)))
		x := hole{at: len(m), value: l.value}
		if l.value&fromResource != 0 {
			x.ref = w.valueRef(place, l.value&placeMask)
		} else {
			x.ref = w.ref(s.ref(l))
		}
		m = binary.AppendUvarint(m, uint64(x.ref))
		if x.end = len(m); l.value&^placeMask != 0 {
			p.holes = append(p.holes, x)
		}
	}
	p.bytes = wire.End(m, content)
	for i := range p.holes {
		p.holes[i].at += len(p.bytes) - len(m) // what made room for a longer length
		p.holes[i].end += len(p.bytes) - len(m)
	}
}

// metadata ends a message of 2.0.
func (w *flusher) metadata(m *meta) []byte {
	if m == nil {
		return nil
	}
	if w.tailOf != m {
		w.tailOf = m
		w.tail = wire.AppendMetaV2(w.tail[:0], m.kind, w.ref(m.helpRef), w.ref(m.unitRef))
	}
	return w.tail
}
