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
	// memoryShare is the part of the process's memory that requests in flight may take up.
	memoryShare = 4
	// unknownMemory is what a process is taken to have where nothing says how much.
	unknownMemory = 2 << 30
	// leastMemory is what requests need at the least, however little there is: one of a usual size.
	leastMemory = 48 << 20
	// maxRequest is what one request may become, however much memory there is: twice what the largest that senders make on
	// purpose do.
	maxRequest = 256 << 20
)

// Memory is what requests in flight may take up together, in the order in which each needs it. Who has of one may wait for
// the next, never the other way round.
type Memory struct {
	bodies  *arrivals // as received
	plain   *budget   // decompressed, before anything is known of them
	metrics *budget   // decoded, and with the pipeline
}

// New divides so many bytes.
func New(size int) *Memory {
	return &Memory{bodies: newArrivals(size / 8), plain: newBudget(size / 4), metrics: newBudget(size / 8 * 5)}
}

// Read reads a body at the pace of its sender.
func (m *Memory) Read(ctx context.Context, w http.ResponseWriter, req *http.Request) (body []byte, done func(), err error) {
	return m.bodies.read(ctx, w, req)
}

// Held is what a request that comes has of it: nothing yet.
func (m *Memory) Held() Hold { return Hold{of: m} }

// Usage is what requests in flight have of it.
type Usage struct {
	Bodies, Plain, Metrics int // bytes
	Waiting                int // requests
}

// Usage says what is in use.
func (m *Memory) Usage() (u Usage) {
	for _, part := range [...]struct {
		of    *budget
		bytes *int
	}{{m.bodies.memory, &u.Bodies}, {m.plain, &u.Plain}, {m.metrics, &u.Metrics}} {
		taken, waiting := part.of.usage()
		*part.bytes = taken
		u.Waiting += waiting
	}
	return u
}

// Hold is what one request has of it.
//
// A request is measured, so that memory can be taken for it as a whole. That goes through all of its labels, and most requests need next to
// nothing: their series are known, and come by runs, whose metrics are counted where runs are. So it is tried without measuring first, with
// what is free at once: see [Hold.ForUsual].
type Hold struct {
	of                       *Memory
	plain, decoded, retained int
}

// ForPlain takes what a body of so many bytes needs, decompressed.
func (h *Hold) ForPlain(ctx context.Context, n int) error {
	if err := h.of.plain.take(ctx, n, nil); err != nil {
		return err
	}
	h.plain = n
	return nil
}

// Bytes that metrics take up.
const (
	PointSize     = 192 // a point without its attributes
	AttributeSize = 70
	// An exponential histogram stores all buckets from its first to its last, see denseLimit. A bucket takes a byte or more.
	denseSize     = 2 * 8 * 160
	denseByteSize = 2 * 8 * 2
)

// ForMetrics takes what the request needs as it is decoded and as metrics, and gives back what its body had.
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

// MostText is how many bytes references of a request may stand for: as many as its metrics may take up. Those of usual requests stand for less than
// half of what their points take.
func (h *Hold) MostText() int { return min(h.of.metrics.size, maxRequest) }

// ForUsual takes what a request of so many bytes needs that was not measured, as it is decoded, less what its points need. It returns false if that
// is not there at once.
func (h *Hold) ForUsual(length int) bool {
	decoded := promwrite.UsualMemory(length)
	if n := decoded + length; n > maxRequest || !h.of.metrics.try(n) {
		return false
	}
	h.decoded, h.retained = decoded, length
	return true
}

// More takes what points of it need. It returns false if that is not there at once.
func (h *Hold) More(n int) bool {
	if h.decoded+h.retained+n > maxRequest || !h.of.metrics.try(n) {
		return false
	}
	h.retained += n
	return true
}

// GiveUp gives back what a request had that has to be measured after all: who waits for memory has none of it.
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

// SizeFor is what requests in flight may take up in all, when nobody configured it, of so much memory; 0 is not known.
func SizeFor(available int64) int {
	return int(max(cmp.Or(available, unknownMemory)/memoryShare, leastMemory))
}
