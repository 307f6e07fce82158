// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"errors"
	"fmt"
	"math"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

var (
	errBuckets     = errors.New("spans and buckets of the histogram differ in number")
	errSpan        = errors.New("a histogram span begins before the end of the one before it")
	errBucketRange = errors.New("histogram buckets lie outside the range of a float64")
	errCount       = errors.New("a histogram count is negative, not finite or too large")
	errTotal       = errors.New("histogram buckets do not add up to the histogram's count")
	errBounds      = errors.New("custom bounds are not ascending numbers below +Inf")
)

// histograms adds a series' native histograms: exponential ones, and explicit ones where the bounds are listed.
func (t *translator) histograms(index int, s *promwrite.Series, set *labelSet, of *target) {
	var last pmetric.ExemplarSlice
	written := 0
	for i := range s.Histograms {
		h := &s.Histograms[i]
		at, ok := timeOf(h.Timestamp)
		if !ok {
			t.rejects.add(reasonTimestamp, 1, index, set.name, errTimestamp)
			continue
		}
		start, _ := nanoseconds(h.StartTimestamp)
		stale := math.Float64bits(h.Sum) == promwrite.StaleNaN
		if !stale {
			if err := t.buckets.load(h); err != nil {
				t.rejects.add(reasonHistogram, 1, index, set.name, err)
				continue
			}
		}
		if h.Schema == promwrite.CustomBucketsSchema {
			p := t.layout.histogram(of, t.layout.family(set, s), pmetric.MetricTypeHistogram).Histogram().DataPoints().AppendEmpty()
			p.SetTimestamp(at)
			p.SetStartTimestamp(start)
			set.put(&t.slabs, p.Attributes())
			if stale {
				p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
			} else {
				p.SetSum(h.Sum)
				p.SetCount(t.buckets.count)
				p.ExplicitBounds().FromRaw(h.CustomValues)
				p.BucketCounts().FromRaw(t.buckets.positive.counts)
			}
			last = p.Exemplars()
		} else {
			p := t.layout.histogram(of, t.layout.family(set, s), pmetric.MetricTypeExponentialHistogram).ExponentialHistogram().DataPoints().AppendEmpty()
			p.SetTimestamp(at)
			p.SetStartTimestamp(start)
			set.put(&t.slabs, p.Attributes())
			if stale {
				p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
			} else {
				p.SetSum(h.Sum)
				p.SetCount(t.buckets.count)
				p.SetZeroCount(t.buckets.zeroCount)
				p.SetZeroThreshold(h.ZeroThreshold)
				p.SetScale(t.buckets.scale)
				t.buckets.positive.copyTo(p.Positive())
				t.buckets.negative.copyTo(p.Negative())
			}
			last = p.Exemplars()
		}
		written++
	}
	if written > 0 {
		t.written.Histograms += written
		t.last, t.hasLast = last, true
	}
}

// bucketScratch is a native histogram with its buckets spread out as OTLP wants them: one count for each bucket from
// the first to the last, the gaps between spans filled with zeros.
type bucketScratch struct {
	count, zeroCount   uint64
	scale              int32
	positive, negative side
}

// side is one sign's buckets. Index i of OTLP is the bucket (base^i, base^(i+1)], which Prometheus numbers i+1.
type side struct {
	sparse []uint64 // the counts of the message, in its order
	first  int64    // index of counts[0]
	counts []uint64
}

// denseLimit limits the buckets of one side after spreading. Gaps cost a sender nothing, so an honest-looking handful
// of bytes could ask for gigabytes; beyond the limit resolution is halved until the buckets fit, which loses detail
// but stays correct. What honest senders send, some 160 buckets over a few orders of magnitude, fits.
func denseLimit(populated int) int64 { return 160 + 4*int64(populated) }

// load checks h and spreads it.
func (b *bucketScratch) load(h *promwrite.Histogram) (err error) {
	if b.count, err = whole(h.Count); err != nil {
		return err
	}
	if b.zeroCount, err = whole(h.ZeroCount); err != nil {
		return err
	}
	total := b.zeroCount
	for _, s := range [...]struct {
		side   *side
		deltas []int64
		counts []float64
	}{{&b.positive, h.PositiveDeltas, h.PositiveCounts}, {&b.negative, h.NegativeDeltas, h.NegativeCounts}} {
		if total, err = s.side.read(h.Count.IsFloat, s.deltas, s.counts, total); err != nil {
			return err
		}
	}
	if h.Schema == promwrite.CustomBucketsSchema {
		err = b.loadCustom(h)
	} else {
		err = b.loadExponential(h)
	}
	if err != nil {
		return err
	}
	// Observations of NaN are in no bucket, and their sum is NaN.
	switch apart := max(total, b.count) - min(total, b.count); {
	case apart == 0, total < b.count && math.IsNaN(h.Sum):
	case h.Count.IsFloat && apart <= b.rounding():
		b.count = total // each part was rounded separately
	default:
		return errTotal
	}
	return nil
}

// rounding is the maximum difference between the count of a float histogram and the sum of its parts: one half for
// each, and the error of floats.
func (b *bucketScratch) rounding() uint64 {
	return uint64(len(b.positive.sparse)+len(b.negative.sparse))/2 + 1 + b.count/1000
}

// Schemas of exponential histograms: from minSchema to maxSchema in use, up to maxReserved reserved by Prometheus.
// Reserved ones are accepted at the resolution of maxSchema.
const (
	minSchema   = -4
	maxSchema   = 8
	maxReserved = 52
)

func (b *bucketScratch) loadExponential(h *promwrite.Histogram) error {
	if h.Schema < minSchema || h.Schema > maxReserved {
		return fmt.Errorf("histogram schema %d is not between %d and %d, nor %d", h.Schema, minSchema, maxReserved, promwrite.CustomBucketsSchema)
	}
	positive, err := extentOf(h.PositiveSpans, len(b.positive.sparse))
	if err != nil {
		return err
	}
	negative, err := extentOf(h.NegativeSpans, len(b.negative.sparse))
	if err != nil {
		return err
	}
	shift := max(positive.shift(), negative.shift(), h.Schema-maxSchema)
	if b.scale = h.Schema - shift; b.scale < minSchema {
		return errBucketRange // at that scale the limit covers every float64
	}
	b.positive.spread(h.PositiveSpans, positive, shift)
	b.negative.spread(h.NegativeSpans, negative, shift)
	return nil
}

// loadCustom spreads the positive side over one bucket for each bound and one above them all.
func (b *bucketScratch) loadCustom(h *promwrite.Histogram) error {
	if len(b.negative.sparse) > 0 || len(h.NegativeSpans) > 0 || b.zeroCount > 0 {
		return errBuckets
	}
	for i, bound := range h.CustomValues {
		if math.IsNaN(bound) || math.IsInf(bound, 1) || i > 0 && bound <= h.CustomValues[i-1] {
			return errBounds
		}
	}
	e, err := extentOf(h.PositiveSpans, len(b.positive.sparse))
	if err != nil {
		return err
	}
	// Custom buckets are numbered from 0, where extentOf expects Prometheus's numbering from 1 up.
	if e.populated > 0 && (e.first < -1 || e.last >= int64(len(h.CustomValues))) {
		return errBuckets
	}
	e.first, e.last = -1, int64(len(h.CustomValues))-1
	b.positive.spread(h.PositiveSpans, e, 0)
	return nil
}

// read takes one side's counts, integers as differences or floats as they are, and adds them to total.
func (s *side) read(isFloat bool, deltas []int64, floats []float64, total uint64) (uint64, error) {
	s.sparse = emptied(s.sparse)
	add := func(n uint64) bool {
		s.sparse = append(s.sparse, n)
		total += n
		return total >= n
	}
	if isFloat {
		for _, f := range floats {
			n, err := whole(promwrite.Number{Float: f, IsFloat: true})
			if err != nil || !add(n) {
				return 0, errCount
			}
		}
		return total, nil
	}
	var n int64
	for _, d := range deltas {
		if n += d; n < 0 || !add(uint64(n)) {
			return 0, errCount
		}
	}
	return total, nil
}

// extent is where the buckets of one side lie, in OTLP's numbering. Without buckets, last is before first.
type extent struct {
	populated   int
	first, last int64
}

func extentOf(spans []promwrite.Span, buckets int) (extent, error) {
	e := extent{populated: buckets, last: -1}
	var next, n int64 = -1, 0 // the index after the spans so far, and the buckets in them
	for i, s := range spans {
		if i > 0 && s.Offset < 0 {
			return e, errSpan
		}
		next += int64(s.Offset)
		if s.Length == 0 {
			continue
		}
		if n == 0 {
			e.first = next
		}
		next += int64(s.Length)
		n += int64(s.Length)
		e.last = next - 1
	}
	if n != int64(buckets) {
		return e, errBuckets
	}
	if e.first < math.MinInt32 || e.last > math.MaxInt32 {
		return e, errBucketRange
	}
	return e, nil
}

// shift is how many times the resolution must be halved for the extent to fit.
func (e extent) shift() int32 {
	var shift int32
	for e.last>>shift-e.first>>shift >= denseLimit(e.populated) {
		shift++
	}
	return shift
}

// spread places the counts of the message. Halving the resolution of a base-2 scale merges buckets 2i and 2i+1.
func (s *side) spread(spans []promwrite.Span, e extent, shift int32) {
	s.first = e.first >> shift
	s.counts = append(emptied(s.counts), make([]uint64, e.last>>shift-s.first+1)...)
	index, sparse := int64(-1), s.sparse
	for _, span := range spans {
		index += int64(span.Offset)
		for range span.Length {
			s.counts[index>>shift-s.first] += sparse[0]
			sparse = sparse[1:]
			index++
		}
	}
}

// emptied keeps the memory of a scratch slice, unless a monstrous histogram has grown it.
func emptied(s []uint64) []uint64 {
	if cap(s) > maxRetained {
		return nil
	}
	return s[:0]
}

func (s *side) copyTo(dst pmetric.ExponentialHistogramDataPointBuckets) {
	dst.SetOffset(int32(s.first))
	dst.BucketCounts().FromRaw(s.counts)
}

// whole returns a count as an integer. Floats of a computed histogram, from a recording rule for example, are rounded.
func whole(n promwrite.Number) (uint64, error) {
	if !n.IsFloat {
		return n.Int, nil
	}
	if !(n.Float >= 0 && n.Float < 1<<63) {
		return 0, errCount
	}
	return uint64(math.Round(n.Float)), nil
}
