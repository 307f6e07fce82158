// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package admission says which requests get memory, and when: bodies as they arrive, decompressed, and their metrics. Memory
// is divided so that there is no deadlock between requests that hold some and wait for more, and slow senders are cut off first.
package admission

import (
	"cmp"
	"context"
	"net/http"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

const (
	// memoryShare limits the memory of requests in flight, to one part in this many of the process's memory.
	memoryShare = 4
	// unknownMemory is the assumed memory of a process if its limit is not known.
	unknownMemory = 2 << 30
	// leastMemory is the least that requests get, enough for one of the usual size, unless that is more than one part in
	// leastShare.
	leastMemory = 24 << 20
	leastShare  = 3
	// maxRequest limits one request, however much memory there is: twice the largest that senders intend.
	maxRequest = 256 << 20
)

// Memory is what requests in flight may take together, in three budgets in the order of their use. A request may hold
// one and wait for the next, never the other way round. One body at a time may hold some of plain and wait for more: it goes before
// those that wait for plain, and for nothing that they hold, see [Memory.InTurn]; the others give theirs back without waiting for it.
type Memory struct {
	bodies  *arrivals // as received, in two parts
	plain   *budget   // decompressed, before their content is known; and one body as received that is too large for its part
	metrics *budget   // decoded, and in the pipeline
}

// New divides size bytes.
func New(size int) *Memory {
	plain := newBudget(size / 4)
	return &Memory{bodies: newArrivals(size/16, plain), plain: plain, metrics: newBudget(size / 8 * 5)}
}

// Read reads a body at the sender's pace.
func (m *Memory) Read(ctx context.Context, w http.ResponseWriter, req *http.Request) (body []byte, done func(), err error) {
	return m.bodies.read(ctx, w, req)
}

// InTurn reports whether a body of so many bytes as received is one of those that are served one at a time. Until it has
// been decompressed it keeps memory that others may wait for, so it must not wait for anything that these have.
func (m *Memory) InTurn(received int) bool { return m.bodies.borrows(received) > 0 }

// Held returns the Hold of a new request, which is empty.
func (m *Memory) Held() Hold { return Hold{of: m} }

// Usage is what requests in flight take.
type Usage struct {
	Bodies, Plain, Metrics int // bytes
	Waiting                int // requests
}

// Usage returns what is in use.
func (m *Memory) Usage() (u Usage) {
	for _, part := range [...]struct {
		of    *budget
		bytes *int
	}{{m.bodies.memory, &u.Bodies}, {m.bodies.whole, &u.Bodies}, {m.plain, &u.Plain}, {m.metrics, &u.Metrics}} {
		taken, waiting := part.of.usage()
		*part.bytes += taken
		u.Waiting += waiting
	}
	return u
}

// Hold is what one request takes.
//
// Normally a request is measured, so that memory can be taken for it as a whole. That goes through all of its labels,
// but most requests need next to nothing: their series are known, and come in runs, whose metrics are counted with the
// runs. So it is tried first without measuring, with memory that is free at once: see [Hold.ForUsual].
type Hold struct {
	of                       *Memory
	plain, decoded, retained int
}

// ForPlain takes what a decompressed body of n bytes needs, besides one as received of so many bytes.
func (h *Hold) ForPlain(ctx context.Context, n, received int) error {
	if all := n + h.of.bodies.borrows(received); all > h.of.plain.size {
		return tooMuch(all, h.of.plain.size) // it would wait for itself
	}
	err := h.of.plain.takeAt(ctx, n, h.of.InTurn(received), func(missing, all int, isStuck bool) {
		h.of.bodies.makeRoom(nil, h.of.plain, missing, all, isStuck) // of a large body that does not arrive
	})
	if err != nil {
		return err
	}
	h.plain = n
	return nil
}

// Sizes of metrics in bytes.
const (
	PointSize     = 192 // a point without its attributes
	AttributeSize = 70
	MetricSize    = 512 // a metric and what is known of its family for the request
	TargetSize    = 576 // a resource with its scope
	// An exponential histogram stores all buckets from its first to its last, see denseLimit. A bucket takes a byte or more.
	denseSize     = 2 * 8 * 160
	denseByteSize = 2 * 8 * 2
)

// ForMetrics takes what the request needs while it is decoded and as metrics, and gives back the memory of its body.
func (h *Hold) ForMetrics(ctx context.Context, body int, s *promwrite.Size) error {
	points := s.Samples + s.Histograms + s.Exemplars
	decoded := s.Memory()
	retained := body + points*PointSize + s.PointLabels*AttributeSize + s.ExemplarBytes/2*AttributeSize +
		s.Histograms*denseSize + s.HistogramBytes*denseByteSize
	if n := decoded + retained; n > maxRequest {
		return tooMuch(n, maxRequest)
	}
	if err := h.of.metrics.take(ctx, decoded+retained, nil); err != nil {
		return err
	}
	h.decoded, h.retained = decoded, retained
	h.of.plain.give(h.plain)
	h.plain = 0
	return nil
}

// MostText is how much text references of a request may stand for: as much as its metrics may take. In usual requests
// it is less than half of what their points take.
func (h *Hold) MostText() int { return min(h.of.metrics.size, maxRequest) }

// ForUsual takes what a request that was not measured needs while it is decoded, without its points. It returns false
// if that is not free at once.
func (h *Hold) ForUsual(length int) bool {
	decoded := promwrite.UsualMemory(length)
	if n := decoded + length; n > maxRequest || !h.of.metrics.try(n) {
		return false
	}
	h.decoded, h.retained = decoded, length
	return true
}

// More takes memory for its points. It returns false if that is not free at once.
func (h *Hold) More(n int) bool {
	if h.decoded+h.retained+n > maxRequest || !h.of.metrics.try(n) {
		return false
	}
	h.retained += n
	return true
}

// Short reports, of n more bytes that were not free at once, whether they ever can be.
func (h *Hold) Short(n int) error {
	if all, most := h.decoded+h.retained+n, min(h.of.metrics.size, maxRequest); all > most {
		return tooMuch(all, most)
	}
	return busy(n)
}

// GiveUp gives back everything of a request that must be measured after all: nobody may hold memory of a budget and
// wait for more of it.
func (h *Hold) GiveUp() {
	h.of.metrics.give(h.decoded + h.retained)
	h.decoded, h.retained = 0, 0
}

// Translated gives back what only decoding needed.
func (h *Hold) Translated() {
	h.of.metrics.give(h.decoded)
	h.of.plain.give(h.plain)
	h.decoded, h.plain = 0, 0
}

// Done gives back all.
func (h *Hold) Done() {
	h.of.plain.give(h.plain)
	h.of.metrics.give(h.decoded + h.retained)
	*h = h.of.Held()
}

// SizeFor is the default for what requests in flight may take together, given the available memory; 0 if that is not
// known.
func SizeFor(available int64) int {
	available = cmp.Or(available, unknownMemory)
	return int(max(available/memoryShare, min(leastMemory, available/leastShare)))
}
