// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stencil

import (
	"bytes"
	"sync"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// resourceTag is the tag of a ResourceMetrics in a request.
const resourceTag = 1<<3 | typeBytes

// Encoder encodes metrics that it knows. It is safe for concurrent use.
type Encoder struct {
	shelf *shelf
	works sync.Pool
}

// NewEncoder returns an encoder that keeps stencils of at most limit bytes.
func NewEncoder(limit int64) *Encoder {
	return &Encoder{shelf: newShelf(limit), works: sync.Pool{New: func() any { return new(work) }}}
}

// Used returns how many bytes the stencils take.
func (e *Encoder) Used() int64 { return e.shelf.size() }

// Encode encodes metrics as an ExportMetricsServiceRequest if it knows all of them. Otherwise it returns nil: they must
// be encoded by pdata's marshaler, and then given to Learn. It keeps no reference to them.
func (e *Encoder) Encode(md pmetric.Metrics) *otlpstream.Memory {
	if !usable() {
		return nil
	}
	return e.encode(md)
}

// Learn learns metrics from their encoded request. It keeps no reference to either.
func (e *Encoder) Learn(md pmetric.Metrics, request []byte) {
	if usable() {
		e.learn(md, request)
	}
}

// work is what one goroutine needs to encode.
type work struct {
	filling

	head    tail // an encoded resource
	heads   []byte
	parts   []part
	scratch []byte // text that is to become a stencil
}

// part is a resource of a request, with the size of its encoded head.
type part struct {
	root    *root
	stencil *stencil
	head    int
}

func (p part) size() int { return len(p.stencil.text) + p.head }

func (e *Encoder) encode(md pmetric.Metrics) *otlpstream.Memory {
	w := e.works.Get().(*work)
	defer e.done(w)
	all, now := md.ResourceMetrics(), e.shelf.now()
	w.parts, w.heads = w.parts[:0], w.heads[:0]
	size := 0
	for i := range all.Len() {
		w.head.reset()
		if !w.head.resource(all.At(i).Resource()) {
			return nil
		}
		r, known := e.shelf.known(w.head.written(), now)
		if known == nil {
			return nil
		}
		w.heads = append(w.heads, w.head.written()...)
		w.parts = append(w.parts, part{r, known, w.head.size()})
		n := w.parts[i].size()
		size += 1 + sizeOfVarint(uint64(n)) + n
	}
	m := otlpstream.NewMemory(size)
	if !w.write(m.Bytes(), all) {
		m.Release()
		return nil
	}
	return m
}

// write fills a request, which has the size of its parts.
func (w *work) write(request []byte, all pmetric.ResourceMetricsSlice) bool {
	at, head := 0, 0
	for i, p := range w.parts {
		n := sizeOfVarint(uint64(p.size()))
		request[at] = resourceTag
		putVarint(request[at+1:at+1+n], uint64(p.size()))
		at += 1 + n
		w.text, w.out, w.at, w.mask = p.stencil.text, request[at:at+len(p.stencil.text)], 0, ^uint64(0)
		copy(w.out, w.text)
		if !w.scopes(all.At(i)) {
			return false
		}
		p.root.hit()
		at += len(w.out)
		at += copy(request[at:], w.heads[head:head+p.head])
		head += p.head
	}
	return true
}

func (e *Encoder) learn(md pmetric.Metrics, request []byte) {
	w := e.works.Get().(*work)
	defer e.done(w)
	all, now := md.ResourceMetrics(), e.shelf.now()
	for i := range all.Len() {
		if len(request) == 0 || request[0] != resourceTag {
			return
		}
		content, n := protowire.ConsumeBytes(request[1:])
		if n < 0 {
			return
		}
		request = request[1+n:]
		w.head.reset()
		if !w.head.resource(all.At(i).Resource()) || !bytes.HasSuffix(content, w.head.written()) {
			continue
		}
		r := e.shelf.missed(w.head.written(), now)
		if r == nil {
			continue
		}
		w.scratch = append(w.scratch[:0], content[:len(content)-w.head.size()]...)
		w.text, w.out, w.at, w.mask = w.scratch, w.scratch, 0, 0
		if w.scopes(all.At(i)) {
			e.shelf.keep(r, w.scratch)
		}
	}
}

// done puts work back, without references to what is not its own.
func (e *Encoder) done(w *work) {
	const mostScratch = 1 << 20 // one huge request must not hold memory for ever
	if cap(w.scratch) > mostScratch {
		w.scratch = nil
	}
	w.text, w.out = nil, nil
	clear(w.parts)
	e.works.Put(w)
}
