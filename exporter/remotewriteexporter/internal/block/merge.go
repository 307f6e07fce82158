// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/godwit-otel/godwit/internal/promwrite"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block/wire"
)

var (
	errNothing   = errors.New("there are none")
	errDifferent = errors.New("they are of several versions or tenants")
	errReference = errors.New("a reference is to no symbol before it")
)

// merging allows one merge at a time, however many lanes wait: each takes several times the size of its request.
var merging sync.Mutex

// Merge makes one block of several of the same version and tenant, in the compression of the first. Their contents
// follow each other in the given order, so the samples of a series stay in order, in one message for each block.
func Merge(blocks []Block) (Block, error) {
	merging.Lock()
	defer merging.Unlock()
	b, err := merge(blocks)
	if err != nil {
		return Block{}, fmt.Errorf("cannot merge %d blocks: %w", len(blocks), err)
	}
	return b, nil
}

func merge(blocks []Block) (Block, error) {
	if len(blocks) == 0 {
		return Block{}, errNothing
	}
	head := blocks[0].Header
	size := head.RawSize
	for _, b := range blocks[1:] {
		if b.Version != head.Version || b.Tenant != head.Tenant {
			return Block{}, errDifferent
		}
		head.Samples += b.Samples
		head.Histograms += b.Histograms
		head.Exemplars += b.Exemplars
		head.Metadata += b.Metadata
		head.MinTime, head.MaxTime = min(head.MinTime, b.MinTime), max(head.MaxTime, b.MaxTime)
		size += b.RawSize
	}
	m := merger{body: make([]byte, 0, min(size, maxRaw)), known: map[string]uint32{}}
	for _, b := range blocks {
		raw, err := b.Raw()
		if err != nil {
			return Block{}, err
		}
		if b.Version == promwrite.V1 {
			m.body = append(m.body, raw...) // all fields of a 1.0 request may be repeated
			continue
		}
		if err := m.add(raw); err != nil {
			return Block{}, err
		}
	}
	raw := m.body
	if len(m.table) > 0 {
		m.table = append(m.table, m.body...)
		raw = m.table
	}
	head.RawSize = len(raw)
	body, err := Compress(nil, Format{Version: head.Version, Compression: head.Compression}, raw)
	return New(head, body), err
}

// merger concatenates requests of 2.0: their symbols become one table, and references are rewritten to it. Everything
// else is copied. It relies on how blocks are written: symbols come first, and references are packed.
type merger struct {
	table []byte // the symbols' fields
	known map[string]uint32
	body  []byte   // the series' fields
	refs  []uint32 // for the request being added: index in the table by symbol, or absent
	// symbols are the symbols of the request, if only those referred to go into the table; size is the number of
	// symbols in the table.
	symbols [][]byte
	size    uint32
}

// absent is a symbol that is not in the table yet.
const absent = math.MaxUint32

func (m *merger) add(raw []byte) error {
	m.refs = m.refs[:0]
	for len(raw) > 0 {
		f, err := cut(&raw)
		if err != nil {
			return err
		}
		switch f.tag {
		case wire.SymbolV2:
			m.symbol(f.content)
		case wire.SeriesV2:
			if err := m.series(f.content); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *merger) symbol(text []byte) {
	ref, ok := m.known[string(text)]
	if !ok {
		ref = uint32(len(m.known))
		m.known[string(text)] = ref
		m.table = wire.AppendBytes(m.table, wire.SymbolV2, text)
	}
	m.refs = append(m.refs, ref)
}

// ref returns the index in the table of a symbol of the request being added.
func (m *merger) ref(symbol uint64) (uint32, error) {
	if symbol >= uint64(len(m.refs)) {
		return 0, errReference
	}
	if r := m.refs[symbol]; r != absent { // fast path
		return r, nil
	}
	m.refs[symbol] = m.size
	m.size++
	m.table = wire.AppendBytes(m.table, wire.SymbolV2, m.symbols[symbol])
	return m.refs[symbol], nil
}

func (m *merger) series(msg []byte) error {
	dst, at := wire.Begin(m.body, wire.SeriesV2)
	for len(msg) > 0 {
		f, err := cut(&msg)
		if err != nil {
			return err
		}
		switch f.tag {
		case wire.RefsV2:
			dst, err = m.appendRefs(dst, f.content)
		case wire.ExemplarV2:
			dst, err = m.appendExemplar(dst, f.content)
		case wire.MetaV2:
			dst, err = m.appendMetadata(dst, f.content)
		default:
			dst = append(dst, f.whole...)
		}
		if err != nil {
			return err
		}
	}
	m.body = wire.End(dst, at)
	return nil
}

func (m *merger) appendRefs(dst, packed []byte) ([]byte, error) {
	dst, at := wire.Begin(dst, wire.RefsV2)
	for len(packed) > 0 {
		symbol, n := protowire.ConsumeVarint(packed)
		if n < 0 {
			return dst, errReference
		}
		packed = packed[n:]
		ref, err := m.ref(symbol)
		if err != nil {
			return dst, err
		}
		dst = binary.AppendUvarint(dst, uint64(ref))
	}
	return wire.End(dst, at), nil
}

func (m *merger) appendExemplar(dst, msg []byte) ([]byte, error) {
	dst, at := wire.Begin(dst, wire.ExemplarV2)
	for len(msg) > 0 {
		f, err := cut(&msg)
		if err != nil {
			return dst, err
		}
		if f.tag != wire.RefsV2 {
			dst = append(dst, f.whole...)
		} else if dst, err = m.appendRefs(dst, f.content); err != nil {
			return dst, err
		}
	}
	return wire.End(dst, at), nil
}

func (m *merger) appendMetadata(dst, msg []byte) ([]byte, error) {
	var typ, help, unit uint32
	for len(msg) > 0 {
		f, err := cut(&msg)
		if err != nil {
			return dst, err
		}
		v, _ := protowire.ConsumeVarint(f.content)
		switch f.tag {
		case wire.MetaType:
			typ = uint32(v)
			continue
		case wire.MetaHelp, wire.MetaUnit:
		default:
			continue
		}
		ref, err := m.ref(v)
		if err != nil {
			return dst, err
		}
		if f.tag == wire.MetaHelp {
			help = ref
		} else {
			unit = ref
		}
	}
	return wire.AppendMetaV2(dst, promwrite.MetricType(typ), help, unit), nil
}

// A field is cut off a message, whose memory it shares.
type field struct {
	tag            wire.Tag // 0 for fields that no request of ours has below its series
	whole, content []byte   // with the tag and the length, and without
}

// cut takes the first field off msg.
func cut(msg *[]byte) (f field, err error) {
	number, kind, n := protowire.ConsumeTag(*msg)
	if n < 0 {
		return f, protowire.ParseError(n)
	}
	size := protowire.ConsumeFieldValue(number, kind, (*msg)[n:])
	if size < 0 {
		return f, protowire.ParseError(size)
	}
	if n == 1 {
		f.tag = wire.Tag((*msg)[0])
	}
	f.whole, *msg = (*msg)[:n+size], (*msg)[n+size:]
	f.content = f.whole[n:]
	if kind == protowire.BytesType {
		f.content, _ = protowire.ConsumeBytes(f.content)
	}
	return f, nil
}
