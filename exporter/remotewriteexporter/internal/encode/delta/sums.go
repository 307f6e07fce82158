// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package delta converts delta points to cumulative ones, since Remote Write has no delta.
//
// Sums keep a copy of what they need. Their number is limited; Expire forgets those that are idle.
package delta

import (
	"slices"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/histogram"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/loss"
)

// Sums are cumulative sums by key, each of one kind of point. A sum begins with the first point, and again when the
// shape of a histogram changes. They may be used from any goroutine.
type Sums[K comparable] struct {
	mu   sync.Mutex
	most int
	sums map[K]*sum
}

type sum struct {
	start int64 // milliseconds
	last  pcommon.Timestamp
	// restartAt is the time of the last point, in milliseconds: where a new sum begins if the next point needs one.
	restartAt int64
	idle      int // calls of Expire since the last point

	value       float64
	explicit    histogram.Explicit
	exponential histogram.Exponential
}

// New makes room for most sums.
func New[K comparable](most int) *Sums[K] {
	return &Sums[K]{most: most, sums: map[K]*sum{}}
}

// Len is how many there are.
func (d *Sums[K]) Len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.sums)
}

// sum returns the sum that a point at this time adds to, which it begins if needed. d must be locked.
func (d *Sums[K]) sum(k K, start, time pcommon.Timestamp) (s *sum, fresh bool, reason loss.Reason) {
	s = d.sums[k]
	switch {
	case s == nil && len(d.sums) >= d.most:
		return nil, false, loss.DeltaLimit
	case s == nil:
		if start == 0 {
			start = time
		}
		s = &sum{start: max(millis(start), 1), last: time}
		d.sums[k] = s
		return s, true, ""
	case time <= s.last:
		return nil, false, loss.DeltaOrder
	}
	s.restartAt, s.last, s.idle = millis(s.last), time, 0
	return s, false, ""
}

func millis(t pcommon.Timestamp) int64 { return int64(t / 1e6) }

// Number adds value to the sum and returns it, and when that began, in milliseconds.
func (d *Sums[K]) Number(k K, value float64, start, time pcommon.Timestamp) (total float64, began int64, reason loss.Reason) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, _, reason := d.sum(k, start, time)
	if reason != "" {
		return 0, 0, reason
	}
	s.value += value
	return s.value, s.start, ""
}

// Explicit adds h to the sum and replaces h by it, in h's memory. It returns when the sum began.
func (d *Sums[K]) Explicit(k K, h *histogram.Explicit, start, time pcommon.Timestamp) (began int64, reason loss.Reason) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, fresh, reason := d.sum(k, start, time)
	if reason != "" {
		return 0, reason
	}
	if !fresh && (!histogram.SameBounds(s.explicit.Bounds, h.Bounds) || len(s.explicit.Counts) != len(h.Counts)) {
		s.start, fresh = s.restartAt, true
	}
	total := &s.explicit
	if fresh {
		*total = histogram.Explicit{Bounds: slices.Clone(h.Bounds), Counts: make([]uint64, len(h.Counts)), HasSum: true}
	}
	for i, n := range h.Counts {
		total.Counts[i] += n
		h.Counts[i] = total.Counts[i]
	}
	total.Count += h.Count
	total.Sum += h.Sum
	total.HasSum = total.HasSum && h.HasSum // once one part of it is unknown, it stays so
	h.Count, h.Sum, h.HasSum = total.Count, total.Sum, total.HasSum
	return s.start, ""
}

// Exponential adds x to the sum and replaces x by it, with a copy of its buckets. It returns when the sum began.
func (d *Sums[K]) Exponential(k K, x *histogram.Exponential, start, time pcommon.Timestamp) (began int64, reason loss.Reason) {
	if !x.IsPossible() {
		return 0, loss.Buckets
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s, fresh, reason := d.sum(k, start, time)
	if reason != "" {
		return 0, reason
	}
	total := &s.exponential
	if !fresh && total.Threshold != x.Threshold {
		s.start, fresh = s.restartAt, true
	}
	if fresh {
		*total = histogram.Exponential{Scale: x.Scale, Threshold: x.Threshold}
	}
	total.Add(x)
	x.CopyOf(total)
	return s.start, ""
}

// Expire forgets sums that were idle for more than the given number of generations, and passes the keys of the others
// to keep. ends reports whether a generation ends.
func (d *Sums[K]) Expire(generations int, ends bool, keep func(K)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for k, s := range d.sums {
		if ends {
			s.idle++
		}
		if s.idle > generations {
			delete(d.sums, k)
			continue
		}
		keep(k)
	}
}
