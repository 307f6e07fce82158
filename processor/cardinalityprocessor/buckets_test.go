// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/overflow"
)

// TestNoBucketMakesWhatIsSavedUnreadable: buckets whose index cannot be represented are refused, and so are all beyond
// them.
func TestNoBucketMakesWhatIsSavedUnreadable(t *testing.T) {
	far := func(r *rig, p point, offset int32, threshold float64, counts ...uint64) pmetric.Metrics {
		p.kind = exponential
		md := r.timed(p, r.clock, r.at(1), 1)
		m := onlyMetricOf(md).ExponentialHistogram()
		m.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		dp := m.DataPoints().At(0)
		dp.SetScale(20)
		dp.SetZeroThreshold(threshold)
		dp.Positive().SetOffset(offset)
		dp.Positive().BucketCounts().FromRaw(counts)
		dp.Negative().SetOffset(offset)
		dp.Negative().BucketCounts().FromRaw(counts)
		return md
	}
	for _, c := range []struct {
		threshold float64
		counts    []uint64
		offset    int32
	}{
		{0, []uint64{0, 1}, math.MaxInt32},
		{math.MaxFloat64, []uint64{1}, math.MaxInt32},
		{math.MaxFloat64, []uint64{1, 1}, math.MaxInt32},
		{0, []uint64{1}, math.MinInt32},
		{1e-300, []uint64{0, 1}, math.MinInt32},
	} {
		r := newRig(t, overflowing(1))
		r.send(point{name: "other"})
		r.consume(r.timed(aSeries(2), r.clock, r.at(1), 5))
		r.consume(far(r, aSeries(1), c.offset, c.threshold, c.counts...))
		again := overflow.New(r.Overflow.Budget, r.Overflow.Idle, r.clock)
		require.NoError(t, again.RestoreLedger(r.Overflow.SealedLedger(false), 5), "%v", c)

		host := newMemory()
		config := withStorage(aggregating(AggregateConfig{By: []string{}}))
		a := newRig(t, config)
		require.NoError(t, a.begin(host))
		a.consume(a.timed(pod(cumulative, "a", "/"), a.clock, a.at(1), 10))
		a.consume(far(a, pod(exponential, "b", "/"), c.offset, c.threshold, c.counts...))
		a.poured(time.Second)
		after := newRig(t, config)
		require.NoError(t, after.begin(host.killed()))
		require.NotEmpty(t, after.Aggregator.Order, "%v", c)
	}
}
