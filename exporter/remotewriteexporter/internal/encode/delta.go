// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"slices"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// maxBuckets bounds the buckets of a sum of exponential histograms; it is made coarser rather than longer.
const maxBuckets = 1024

// deltas sums up points that count since the last one. A sum begins with the first point seen, and again when the
// shape of a histogram changes.
type deltas struct {
	mu   sync.Mutex
	max  int
	sums map[deltaKey]*deltaSum
}

type deltaKey struct {
	series *series
	labels *resourceLabels
}

type deltaSum struct {
	start int64 // milliseconds
	last  pcommon.Timestamp
	// restartAt is the time of the point before, in milliseconds: when a new sum begins if this point needs one.
	restartAt int64
	idle      int // Expires since the last point

	value    float64
	explicit explicit
	expo     exponential
}

func (d *deltas) init(most int) {
	d.max, d.sums = most, map[deltaKey]*deltaSum{}
}

func (d *deltas) size() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.sums)
}

// sum finds or begins the sum that a point of a time adds to. d is locked.
func (d *deltas) sum(k deltaKey, start, time pcommon.Timestamp) (s *deltaSum, fresh bool, reason Reason) {
	s = d.sums[k]
	switch {
	case s == nil && len(d.sums) >= d.max:
		return nil, false, ReasonDeltaLimit
	case s == nil:
		if start == 0 {
			start = time
		}
		s = &deltaSum{start: max(millis(start), 1), last: time}
		d.sums[k] = s
		return s, true, ""
	case time <= s.last:
		return nil, false, ReasonDeltaOrder
	}
	s.restartAt, s.last, s.idle = millis(s.last), time, 0
	return s, false, ""
}

// number adds value to the sum and returns it.
func (d *deltas) number(k deltaKey, value float64, start, time pcommon.Timestamp) (float64, int64, Reason) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, _, reason := d.sum(k, start, time)
	if reason != "" {
		return 0, 0, reason
	}
	s.value += value
	return s.value, s.start, ""
}

// explicit adds h to the sum and puts the sum in its place. h keeps its memory.
func (d *deltas) explicit(k deltaKey, h *explicit, start, time pcommon.Timestamp) Reason {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, fresh, reason := d.sum(k, start, time)
	if reason != "" {
		return reason
	}
	if !fresh && (!sameBounds(s.explicit.bounds, h.bounds) || len(s.explicit.counts) != len(h.counts)) {
		s.start, fresh = s.restartAt, true
	}
	sum := &s.explicit
	if fresh {
		*sum = explicit{bounds: slices.Clone(h.bounds), counts: make([]uint64, len(h.counts)), hasSum: true}
	}
	for i, n := range h.counts {
		sum.counts[i] += n
		h.counts[i] = sum.counts[i]
	}
	sum.count += h.count
	sum.sum += h.sum
	sum.hasSum = sum.hasSum && h.hasSum // once a part of it is unknown, it stays so
	h.count, h.sum, h.hasSum, h.start = sum.count, sum.sum, sum.hasSum, s.start
	return ""
}

// exponential adds x to the sum and puts the sum in its place, of whose buckets x gets a copy.
func (d *deltas) exponential(k deltaKey, x *exponential, start, time pcommon.Timestamp) Reason {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, fresh, reason := d.sum(k, start, time)
	if reason != "" {
		return reason
	}
	sum := &s.expo
	if !fresh && sum.threshold != x.threshold {
		s.start, fresh = s.restartAt, true
	}
	if fresh {
		*sum = exponential{scale: x.scale, threshold: x.threshold}
	}
	scale := min(sum.scale, x.scale)
	sum.rescale(scale)
	x.rescale(scale)
	sum.positive = merge(make([]bucket, 0, len(sum.positive)+len(x.positive)), sum.positive, x.positive)
	sum.negative = merge(make([]bucket, 0, len(sum.negative)+len(x.negative)), sum.negative, x.negative)
	for len(sum.positive)+len(sum.negative) > maxBuckets && sum.scale > minScale {
		sum.rescale(sum.scale - 1)
	}
	sum.zeroCount += x.zeroCount
	sum.count += x.count
	sum.sum += x.sum
	x.positive, x.negative = append(x.positive[:0], sum.positive...), append(x.negative[:0], sum.negative...)
	x.scale, x.zeroCount, x.count, x.sum, x.start = sum.scale, sum.zeroCount, sum.count, sum.sum, s.start
	return ""
}

func (x *exponential) rescale(scale int32) {
	shift := uint32(x.scale - scale)
	x.positive, x.negative, x.scale = coarsen(x.positive, shift), coarsen(x.negative, shift), scale
}

// expire forgets sums that are idle, and says what the others keep.
func (d *deltas) expire(generations int, advance bool, keep func(deltaKey)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for k, s := range d.sums {
		if advance {
			s.idle++
		}
		if s.idle > generations {
			delete(d.sums, k)
			continue
		}
		keep(k)
	}
}
