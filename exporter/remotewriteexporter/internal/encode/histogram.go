// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/promwrite"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block/wire"
)

// explicit is what a histogram of explicit bounds counts.
type explicit struct {
	bounds []float64 // without +Inf
	counts []uint64  // one more than bounds, or fewer where the last are empty
	count  uint64
	sum    float64
	hasSum bool
	start  int64
}

func (w *walk) histograms(points pmetric.HistogramDataPointSlice) {
	delta := w.family.temporality == pmetric.AggregationTemporalityDelta
	for i := range points.Len() {
		dp := points.At(i)
		bounds, counts := dp.ExplicitBounds(), dp.BucketCounts()
		w.s.bounds, w.s.counts = w.s.bounds[:0], w.s.counts[:0]
		for j := range bounds.Len() {
			if math.IsInf(bounds.At(j), 1) {
				break // said rather than implied, as the last always is
			}
			w.s.bounds = append(w.s.bounds, bounds.At(j))
		}
		for j := range counts.Len() {
			w.s.counts = append(w.s.counts, counts.At(j))
		}
		stale := dp.Flags().NoRecordedValue()
		p, ok := w.point(dp.Attributes(), w.s.bounds, dp.Timestamp(), stale)
		if !ok {
			continue
		}
		h := explicit{
			bounds: w.s.bounds, counts: w.s.counts, count: dp.Count(), sum: dp.Sum(), hasSum: dp.HasSum(),
			start: w.start(dp.StartTimestamp()),
		}
		if p.one == nil && w.e.cfg.CustomBuckets { // else there is one, but for rules
			w.ruledOut++
		}
		if p.one == nil && !slices.ContainsFunc(p.parts, isSeries) { // by rules: nothing is left to sum up for
			w.classic(p.parts, &h, millis(dp.Timestamp()), stale)
			continue
		}
		if delta && !stale {
			reason := w.e.deltas.explicit(w.key(p), &h, dp.StartTimestamp(), dp.Timestamp())
			if reason != "" {
				w.e.dropped(reason, w.family.name, 1)
				continue
			}
			h.start = w.startMillis(h.start)
		}
		time := millis(dp.Timestamp())
		if p.one != nil {
			w.customBuckets(p.one, &h, time, stale)
		}
		if p.parts != nil {
			w.classic(p.parts, &h, time, stale)
		}
		if dp.Exemplars().Len() > 0 {
			w.exemplars(dp.Exemplars(), p, w.s.bounds, time)
		}
	}
}

// classic adds a series for each part. A stale histogram has no counts, but its series are known by its bounds.
func (w *walk) classic(parts []*series, h *explicit, time int64, stale bool) {
	if h.hasSum || stale {
		w.part(parts[partSum], time, orStale(h.sum, stale), h.start)
	}
	count := orStale(float64(h.count), stale)
	w.part(parts[partCount], time, count, h.start)
	sum := uint64(0)
	for i := range h.bounds {
		if i < len(h.counts) {
			sum += h.counts[i]
		} else if !stale {
			break
		}
		w.part(parts[partBound+i], time, orStale(float64(sum), stale), h.start)
	}
	w.part(parts[len(parts)-1], time, count, h.start)
}

// customBuckets adds a native histogram whose bounds are listed.
func (w *walk) customBuckets(s *series, h *explicit, time int64, stale bool) {
	n := w.s.histogram(time)
	n.Schema = promwrite.CustomBucketsSchema
	if stale {
		n.Sum = math.Float64frombits(promwrite.StaleNaN)
	} else if !w.fillCustom(n, h) {
		w.e.dropped(ReasonBuckets, w.family.name, 1)
		return
	}
	w.s.encoded = wire.AppendHistogram(w.s.encoded[:0], n)
	w.s.addHistogram(s, time, h.start, kindCustom)
}

func (w *walk) fillCustom(n *promwrite.Histogram, h *explicit) bool {
	s := spans{spans: n.PositiveSpans, deltas: n.PositiveDeltas}
	pending, total := uint64(0), uint64(0) // pending: of bounds listed twice, which belong to the next bucket
	for i, bound := range h.bounds {
		if math.IsNaN(bound) || i > 0 && bound < h.bounds[i-1] {
			return false
		}
		count := uint64(0)
		if i < len(h.counts) {
			count = h.counts[i]
		}
		total += count
		if i > 0 && bound == h.bounds[i-1] {
			pending += count
			continue
		}
		s.add(int64(len(n.CustomValues)), count+pending)
		pending = 0
		n.CustomValues = append(n.CustomValues, bound)
	}
	// What no bucket accounts for is in the last one.
	for _, count := range h.counts[min(len(h.bounds), len(h.counts)):] {
		pending += count
		total += count
	}
	if h.count > total {
		pending += h.count - total
		total = h.count
	}
	s.add(int64(len(n.CustomValues)), pending)
	if s.invalid || total > math.MaxInt64 {
		return false
	}
	n.PositiveSpans, n.PositiveDeltas = s.spans, s.deltas
	n.Count.Int = total
	if h.hasSum {
		n.Sum = h.sum
	}
	return true
}

// spans builds the sparse form of buckets that are added in order.
type spans struct {
	spans   []promwrite.Span
	deltas  []int64
	next    int64 // the index after the last bucket
	last    int64 // its count
	invalid bool  // an index or a count does not fit
}

// maxGap is how many empty buckets are cheaper to list than a new span.
const maxGap = 2

func (s *spans) add(index int64, count uint64) {
	if count == 0 {
		return
	}
	if count > math.MaxInt64 || index < math.MinInt32 || index > math.MaxInt32 {
		s.invalid = true
		return
	}
	if len(s.spans) == 0 {
		s.spans = append(s.spans, promwrite.Span{Offset: int32(index)})
	} else if gap := index - s.next; gap > maxGap {
		if gap > math.MaxInt32 {
			s.invalid = true
			return
		}
		s.spans = append(s.spans, promwrite.Span{Offset: int32(gap)})
	} else {
		for range gap {
			s.push(0)
		}
	}
	s.push(int64(count))
	s.next = index + 1
}

func (s *spans) push(count int64) {
	s.spans[len(s.spans)-1].Length++
	s.deltas = append(s.deltas, count-s.last)
	s.last = count
}

// key names the sum of a delta point: its series, whatever the point looks like, of its resource.
func (w *walk) key(p known) deltaKey {
	s := p.one
	if s == nil {
		s = p.parts[partCount]
	}
	if s.layout == 0 {
		s = p.parts[slices.IndexFunc(p.parts, isSeries)]
	}
	return deltaKey{s, w.resource.labels}
}
