// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"cmp"
	"context"

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

// memory is what requests in flight may take up together, in the order in which each needs it. Who has of one may wait for
// the next, never the other way round.
type memory struct {
	bodies  *arrivals // as received
	plain   *budget   // decompressed, before anything is known of them
	metrics *budget   // decoded, and with the pipeline
}

func newMemory(size int) *memory {
	return &memory{bodies: newArrivals(size / 8), plain: newBudget(size / 4), metrics: newBudget(size / 8 * 5)}
}

// hold is what one request has of it.
//
// A request is measured, so that memory can be taken for it as a whole. That goes through all of its labels, and most requests need next to
// nothing: their series are known, and come by runs, whose metrics are counted where runs are. So it is tried without measuring first, with
// what is free at once: see [hold.forUsual].
type hold struct {
	of                       *memory
	plain, decoded, retained int
}

// forPlain takes what a body of so many bytes needs, decompressed.
func (h *hold) forPlain(ctx context.Context, n int) error {
	if err := h.of.plain.take(ctx, n, nil); err != nil {
		return err
	}
	h.plain = n
	return nil
}

// Bytes that metrics take up.
const (
	pointSize     = 192 // a point without its attributes
	attributeSize = 70
	// An exponential histogram stores all buckets from its first to its last, see denseLimit. A bucket takes a byte or more.
	denseSize     = 2 * 8 * 160
	denseByteSize = 2 * 8 * 2
)

// forMetrics takes what the request needs as it is decoded and as metrics, and gives back what its body had.
func (h *hold) forMetrics(ctx context.Context, body int, s *promwrite.Size) error {
	points := s.Samples + s.Histograms + s.Exemplars
	decoded := s.Memory()
	retained := body + points*pointSize + s.PointLabels*attributeSize + s.ExemplarBytes/2*attributeSize +
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

// mostText is how many bytes references of a request may stand for: as many as its metrics may take up. Those of usual requests stand for less than
// half of what their points take.
func (h *hold) mostText() int { return min(h.of.metrics.size, maxRequest) }

// forUsual takes what a request of so many bytes needs that was not measured, as it is decoded, less what its points need. It is false if that
// is not there at once.
func (h *hold) forUsual(length int) bool {
	decoded := promwrite.UsualMemory(length)
	if n := decoded + length; n > maxRequest || !h.of.metrics.try(n) {
		return false
	}
	h.decoded, h.retained = decoded, length
	return true
}

// more takes what points of it need. It is false if that is not there at once.
func (h *hold) more(n int) bool {
	if h.decoded+h.retained+n > maxRequest || !h.of.metrics.try(n) {
		return false
	}
	h.retained += n
	return true
}

// giveUp gives back what a request had that has to be measured after all: who waits for memory has none of it.
func (h *hold) giveUp() {
	h.of.metrics.give(h.decoded + h.retained)
	h.decoded, h.retained = 0, 0
}

// translated gives back what only decoding needed.
func (h *hold) translated() {
	h.of.metrics.give(h.decoded)
	h.of.plain.give(h.plain)
	h.decoded, h.plain = 0, 0
}

// done gives back all.
func (h *hold) done() {
	h.of.plain.give(h.plain)
	h.of.metrics.give(h.decoded + h.retained)
	*h = hold{of: h.of}
}

// memoryFor is what requests in flight may take up in all, when nobody configured it, of so much memory; 0 is not known.
func memoryFor(available int64) int {
	return int(max(cmp.Or(available, unknownMemory)/memoryShare, leastMemory))
}
