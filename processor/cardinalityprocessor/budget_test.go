// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/racetest"
)

// heapAfter returns the size of the heap after garbage collection.
func heapAfter() int64 {
	for range 3 { // pools are emptied by the second one
		runtime.GC()
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	return int64(mem.HeapAlloc)
}

// exponentialOf returns a cumulative input of e with the given number of buckets of each sign, all with a count of n,
// after some empty ones.
func (r *rig) exponentialOf(i, empty, buckets int, n uint64, start time.Time) pmetric.Metrics {
	md := r.timed(point{name: "e", kind: exponential, attrs: attrs{"i": int64(i)}}, start, r.clock, 0)
	e := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).ExponentialHistogram()
	e.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	dp := e.DataPoints().At(0)
	counts := make([]uint64, empty+buckets)
	for j := range buckets {
		counts[empty+j] = n
	}
	dp.SetCount(2 * uint64(buckets) * n)
	dp.SetScale(0)
	for _, side := range []pmetric.ExponentialHistogramDataPointBuckets{dp.Positive(), dp.Negative()} {
		side.SetOffset(0)
		side.BucketCounts().FromRaw(counts)
	}
	return md
}

// requireBudget checks that the accounted memory is within the budget, and the heap not much more.
func (r *rig) requireBudget(before int64) {
	r.t.Helper()
	_, _, used := r.Overflow.Sizes()
	budget := int64(r.cfg.Memory.OverflowStateMiB) << 20
	require.LessOrEqual(r.t, used, budget)
	require.Greater(r.t, used, budget/2, "the test must get there")
	require.Less(r.t, heapAfter()-before, budget*3/2)
	runtime.KeepAlive(r)
}

// TestMembersThatGrowStayInTheBudget: an input of an overflow series may take more memory than when it was new.
func TestMembersThatGrowStayInTheBudget(t *testing.T) {
	racetest.Sequential(t)
	const many, mib = 10_000, 4
	r := newRig(t, func(c *Config) { overflowing(1)(c); c.Memory.OverflowStateMiB = mib })
	r.send(point{name: "other"})
	start, before := r.clock, heapAfter()
	for _, buckets := range []int{1, 160} {
		r.clock = r.clock.Add(time.Second)
		for i := range many {
			r.consume(r.exponentialOf(i, 0, buckets, uint64(buckets), start))
		}
		r.requireBudget(before)
	}
	require.Positive(t, r.unaccounted("state_full"))
	_, members, _ := r.Overflow.Sizes()
	require.Equal(t, many, members, "those that could not grow are still members")

	r.clock = r.clock.Add(time.Second)
	for i := range many { // with fewer buckets again, and with everything that was not counted yet
		md := r.exponentialOf(i, 0, 1, 1000, start)
		r.consume(md)
	}
	r.requireBudget(before)
	state := r.unaccounted("state_full")
	r.clock = r.clock.Add(time.Second)
	r.consume(r.exponentialOf(0, 0, 160, 1000, start))
	require.Equal(t, state, r.unaccounted("state_full"), "there is room again")
}

// TestEmptyBucketsTakeNoMemory, of which a point may have a million.
func TestEmptyBucketsTakeNoMemory(t *testing.T) {
	const many, mib = 2000, 1
	r := newRig(t, func(c *Config) { overflowing(1)(c); c.Memory.OverflowStateMiB = mib })
	r.send(point{name: "other"})
	start, before := r.clock, heapAfter()
	r.clock = r.clock.Add(time.Second)
	for i := range many {
		r.consume(r.exponentialOf(i, 3000, 1, 1, start))
	}
	r.requireBudget(before)
}

// TestOutputsStayInTheBudget, however large their totals become, and whatever their names are.
func TestOutputsStayInTheBudget(t *testing.T) {
	const mib = 1
	for name, send := range map[string]func(*rig, int, time.Time){
		"exponential": func(r *rig, i int, start time.Time) {
			md := r.exponentialOf(i, 0, 160, 3, start)
			e := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).ExponentialHistogram()
			e.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
			r.consume(md)
		},
		"explicit": func(r *rig, i int, start time.Time) {
			md := r.timed(point{name: "h", kind: histogram, attrs: attrs{"i": int64(i)}}, start, r.clock, 3)
			h := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Histogram()
			h.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
			var bounds []float64
			for j := range 500 {
				bounds = append(bounds, float64(j))
			}
			h.DataPoints().At(0).ExplicitBounds().FromRaw(bounds)
			h.DataPoints().At(0).BucketCounts().FromRaw(make([]uint64, len(bounds)+1))
			r.consume(md)
		},
		"tenants": func(r *rig, i int, start time.Time) {
			tenant := strings.Repeat("t", 4000) + string(rune('a'+i%26)) + string(rune('a'+i/26))
			r.consume(r.timed(point{name: "m", kind: delta, resource: attrs{"tenant": tenant}, attrs: attrs{"i": int64(i)}}, start, r.clock, 3))
		},
		"parts of something large": func(r *rig, i int, start time.Time) {
			body := strings.Repeat("b", 20_000)
			name, value, unit := body[:10]+strconv.Itoa(i), strings.Repeat("v", 1000)+body, body[:20]
			md := r.timed(point{name: body[:1000], unit: unit, kind: delta, attrs: attrs{"i": value[:1000-i]}}, start, r.clock, 3)
			md.ResourceMetrics().At(0).ScopeMetrics().At(0).Scope().SetName(name)
			r.consume(md)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(c *Config) {
				overflowing(1, func(rule *RuleConfig) { rule.Exceed.KeepLabels = []string{"i"} })(c)
				c.Memory.OverflowStateMiB, c.Statistics.Enabled = mib, false
				c.Tenant.From = []string{"resource:tenant"}
			})
			r.send(point{name: "other"})
			start, before := r.clock, heapAfter()
			r.clock = r.clock.Add(time.Second)
			for i := range 600 {
				send(r, i, start)
			}
			r.flush(t.Context()) // writes the totals
			r.sink.Reset()
			r.requireBudget(before)
		})
	}
}
