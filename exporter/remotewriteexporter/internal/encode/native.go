// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/promwrite"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block/wire"
)

// The resolutions that native histograms have.
const (
	minScale = -4
	maxScale = 8
	// leastZero stands for a zero bucket of no width.
	leastZero = 1e-128
)

// exponential is what an exponential histogram counts.
type exponential struct {
	scale     int32
	zeroCount uint64
	threshold float64
	positive  []bucket
	negative  []bucket
	count     uint64
	sum       float64
	start     int64
}

// bucket is a bucket that is not empty, by its index as OTLP has it. Buckets are sorted.
type bucket struct {
	index int64
	count uint64
}

func (w *walk) exponentials(points pmetric.ExponentialHistogramDataPointSlice) {
	delta := w.family.temporality == pmetric.AggregationTemporalityDelta
	for i := range points.Len() {
		dp := points.At(i)
		stale := dp.Flags().NoRecordedValue()
		p, ok := w.point(dp.Attributes(), nil, dp.Timestamp(), stale)
		if !ok {
			continue
		}
		time := millis(dp.Timestamp())
		n := w.s.histogram(time)
		x := &w.s.exponential
		*x = exponential{start: w.start(dp.StartTimestamp())}
		if dp.Scale() < minScale {
			w.e.dropped(ReasonScale, w.family.name, 1)
			continue
		}
		if stale {
			n.Sum = math.Float64frombits(promwrite.StaleNaN)
			n.Schema = min(dp.Scale(), maxScale)
		} else if reason := w.native(n, x, dp, p, delta); reason != "" {
			w.e.dropped(reason, w.family.name, 1)
			continue
		}
		w.s.encoded = wire.AppendHistogram(w.s.encoded[:0], n)
		w.s.addHistogram(p.one, time, x.start, kindNative)
		if dp.Exemplars().Len() > 0 {
			w.exemplars(dp.Exemplars(), p, nil, time)
		}
	}
}

// histogram is a native histogram to fill, valid until the next.
func (s *scratch) histogram(time int64) *promwrite.Histogram {
	n := &s.native
	*n = promwrite.Histogram{
		Timestamp:     time,
		PositiveSpans: n.PositiveSpans[:0], PositiveDeltas: n.PositiveDeltas[:0],
		NegativeSpans: n.NegativeSpans[:0], NegativeDeltas: n.NegativeDeltas[:0],
		CustomValues: n.CustomValues[:0],
	}
	return n
}

// native fills n from dp.
func (w *walk) native(
	n *promwrite.Histogram, x *exponential, dp pmetric.ExponentialHistogramDataPoint, p known, delta bool,
) Reason {
	x.scale = min(dp.Scale(), maxScale)
	shift := uint32(dp.Scale() - x.scale)
	x.zeroCount, x.threshold, x.count = dp.ZeroCount(), dp.ZeroThreshold(), dp.Count()
	if dp.HasSum() {
		x.sum = dp.Sum()
	}
	x.positive = appendBuckets(w.s.positive[:0], dp.Positive(), shift)
	x.negative = appendBuckets(w.s.negative[:0], dp.Negative(), shift)
	w.s.positive, w.s.negative = x.positive, x.negative
	if delta {
		if reason := w.e.deltas.exponential(w.key(p), x, dp.StartTimestamp(), dp.Timestamp()); reason != "" {
			return reason
		}
		x.start = w.startMillis(x.start)
		w.s.positive, w.s.negative = x.positive, x.negative
	}
	total := x.zeroCount
	positive := spans{spans: n.PositiveSpans, deltas: n.PositiveDeltas}
	for _, b := range x.positive {
		positive.add(b.index+1, b.count) // OTLP counts from the lower bound, Prometheus from the upper
		total += b.count
	}
	negative := spans{spans: n.NegativeSpans, deltas: n.NegativeDeltas}
	for _, b := range x.negative {
		negative.add(b.index+1, b.count)
		total += b.count
	}
	// Prometheus refuses the whole request for a histogram whose buckets do not add up to its count.
	switch {
	case positive.invalid, negative.invalid, total > x.count, total < x.count && !math.IsNaN(x.sum):
		return ReasonBuckets
	}
	n.PositiveSpans, n.PositiveDeltas = positive.spans, positive.deltas
	n.NegativeSpans, n.NegativeDeltas = negative.spans, negative.deltas
	n.Schema, n.Count.Int, n.Sum, n.ZeroCount.Int = x.scale, x.count, x.sum, x.zeroCount
	n.ZeroThreshold = x.threshold
	if n.ZeroThreshold == 0 {
		n.ZeroThreshold = leastZero
	}
	return ""
}

// appendBuckets appends the buckets that are not empty, 2^shift of them as one.
func appendBuckets(dst []bucket, b pmetric.ExponentialHistogramDataPointBuckets, shift uint32) []bucket {
	counts, offset := b.BucketCounts(), int64(b.Offset())
	for i := range counts.Len() {
		if count := counts.At(i); count != 0 {
			dst = appendBucket(dst, bucket{(int64(i) + offset) >> shift, count})
		}
	}
	return dst
}

// appendBucket adds to the last bucket or begins the next.
func appendBucket(dst []bucket, b bucket) []bucket {
	if n := len(dst); n > 0 && dst[n-1].index == b.index {
		dst[n-1].count += b.count
		return dst
	}
	return append(dst, b)
}

// coarsen merges 2^shift buckets into one, in place.
func coarsen(buckets []bucket, shift uint32) []bucket {
	out := buckets[:0]
	for _, b := range buckets {
		out = appendBucket(out, bucket{b.index >> shift, b.count})
	}
	return out
}

// merge appends the sum of a and b to dst.
func merge(dst, a, b []bucket) []bucket {
	for len(a) > 0 || len(b) > 0 {
		if len(b) == 0 || len(a) > 0 && a[0].index <= b[0].index {
			dst = appendBucket(dst, a[0])
			a = a[1:]
		} else {
			dst = appendBucket(dst, b[0])
			b = b[1:]
		}
	}
	return dst
}
