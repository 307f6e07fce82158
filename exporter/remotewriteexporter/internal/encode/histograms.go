// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/promwrite"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block/wire"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/column"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/histogram"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/loss"
)

func (w *walk) histograms(points pmetric.HistogramDataPointSlice) {
	delta := w.family.Temporality == pmetric.AggregationTemporalityDelta
	for i := range points.Len() {
		dp := points.At(i)
		bounds, counts := dp.ExplicitBounds(), dp.BucketCounts()
		w.s.bounds, w.s.counts = w.s.bounds[:0], w.s.counts[:0]
		for j := range bounds.Len() {
			if math.IsInf(bounds.At(j), 1) {
				break // written explicitly, as the last bucket always is
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
		h := histogram.Explicit{Bounds: w.s.bounds, Counts: w.s.counts, Count: dp.Count(), Sum: dp.Sum(), HasSum: dp.HasSum()}
		time, start := millis(dp.Timestamp()), w.start(dp.StartTimestamp())
		if p.one == nil && w.e.cfg.Cache.CustomBuckets { // with rules, there may be none
			w.ruledOut++
		}
		if p.one == nil && !slices.ContainsFunc(p.parts, cache.IsSeries) { // rules have left nothing to sum up for
			w.classic(p.parts, &h, time, start, stale)
			continue
		}
		if delta && !stale {
			began, reason := w.e.deltas.Explicit(w.key(p), &h, dp.StartTimestamp(), dp.Timestamp())
			if reason != "" {
				w.e.losses.Add(reason, w.family.Name, 1)
				continue
			}
			start = w.startMillis(began)
		}
		if p.one != nil {
			w.customBuckets(p.one, &h, time, start, stale)
		}
		if p.parts != nil {
			w.classic(p.parts, &h, time, start, stale)
		}
		if dp.Exemplars().Len() > 0 {
			w.exemplars(dp.Exemplars(), p, w.s.bounds, time)
		}
	}
}

// classic adds a sample for each part. A stale histogram has no counts, so its bounds determine the series.
func (w *walk) classic(parts []*cache.Series, h *histogram.Explicit, time, start int64, stale bool) {
	if h.HasSum || stale {
		w.part(parts[cache.PartSum], time, orStale(h.Sum, stale), start)
	}
	count := orStale(float64(h.Count), stale)
	w.part(parts[cache.PartCount], time, count, start)
	sum := uint64(0)
	for i := range h.Bounds {
		if i < len(h.Counts) {
			sum += h.Counts[i]
		} else if !stale {
			break
		}
		w.part(parts[cache.PartBound+i], time, orStale(float64(sum), stale), start)
	}
	w.part(parts[len(parts)-1], time, count, start)
}

// customBuckets adds a native histogram with custom bounds.
func (w *walk) customBuckets(s *cache.Series, h *histogram.Explicit, time, start int64, stale bool) {
	n := w.s.histogram(time)
	if stale {
		n.Schema, n.Sum = promwrite.CustomBucketsSchema, math.Float64frombits(promwrite.StaleNaN)
	} else if !h.FillCustom(n) {
		w.e.losses.Add(loss.Buckets, w.family.Name, 1)
		return
	}
	w.s.encoded = wire.AppendHistogram(w.s.encoded[:0], n)
	w.s.AddHistogram(s, w.s.encoded, time, start, column.KindCustom)
}

func (w *walk) exponentials(points pmetric.ExponentialHistogramDataPointSlice) {
	delta := w.family.Temporality == pmetric.AggregationTemporalityDelta
	for i := range points.Len() {
		dp := points.At(i)
		stale := dp.Flags().NoRecordedValue()
		p, ok := w.point(dp.Attributes(), nil, dp.Timestamp(), stale)
		if !ok {
			continue
		}
		if dp.Scale() < histogram.MinScale {
			w.e.losses.Add(loss.Scale, w.family.Name, 1)
			continue
		}
		time, start := millis(dp.Timestamp()), w.start(dp.StartTimestamp())
		n, x := w.s.histogram(time), &w.s.exponential
		if stale {
			n.Schema, n.Sum = min(dp.Scale(), histogram.MaxScale), math.Float64frombits(promwrite.StaleNaN)
		} else {
			x.Read(dp)
			if delta {
				began, reason := w.e.deltas.Exponential(w.key(p), x, dp.StartTimestamp(), dp.Timestamp())
				if reason != "" {
					w.e.losses.Add(reason, w.family.Name, 1)
					continue
				}
				start = w.startMillis(began)
			}
			if !x.Fill(n) {
				w.e.losses.Add(loss.Buckets, w.family.Name, 1)
				continue
			}
		}
		w.s.encoded = wire.AppendHistogram(w.s.encoded[:0], n)
		w.s.AddHistogram(p.one, w.s.encoded, time, start, column.KindNative)
		if dp.Exemplars().Len() > 0 {
			w.exemplars(dp.Exemplars(), p, nil, time)
		}
	}
}

// histogram returns a native histogram to fill, valid until the next call.
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

// deltaKey identifies a series of a resource.
type deltaKey struct {
	series *cache.Series
	labels *cache.ResourceLabels
}

// key identifies the sum of a delta point: by its series and its resource.
func (w *walk) key(p known) deltaKey {
	s := p.one
	if s == nil {
		s = p.parts[cache.PartCount]
	}
	if s.Layout == 0 {
		s = p.parts[slices.IndexFunc(p.parts, cache.IsSeries)]
	}
	return deltaKey{s, w.resource.Labels}
}
