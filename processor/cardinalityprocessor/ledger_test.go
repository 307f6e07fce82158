// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/gate"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/overflow"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/store"
)

// overflowed returns a processor that has added up points of all kinds.
func overflowed(t testing.TB) *rig {
	r := newRig(t, overflowing(1, func(c *RuleConfig) { c.Exceed.Gauge = "last"; c.GroupBy = []string{"metric"} }))
	for k := range kinds {
		for i := range 4 {
			p := point{name: "m", kind: k, attrs: attrs{"i": int64(i)}}
			for _, n := range []int64{3, 40, 41} {
				r.clock = r.clock.Add(time.Second)
				md := r.timed(p, r.clock, r.clock.Add(time.Millisecond), n+int64(i))
				if m := onlyMetricOf(md); k == exponential {
					m.ExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
				}
				r.consume(md)
			}
		}
	}
	return r
}

func onlyMetricOf(md pmetric.Metrics) pmetric.Metric {
	return md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
}

// TestLedgerHasAll: everything is restored, except gauges, and deltas unless the process was shut down properly.
func TestLedgerHasAll(t *testing.T) {
	for _, closed := range []bool{false, true} {
		r := overflowed(t)
		r.Overflow.Certain = 7
		again := overflow.New(r.Overflow.Budget, r.Overflow.Idle, r.clock)
		require.NoError(t, again.RestoreLedger(r.Overflow.SealedLedger(closed), 5))
		if closed {
			require.Equal(t, pcommon.Timestamp(7), again.Certain)
		} else {
			require.Equal(t, again.Begin, again.Certain)
		}
		kept := 0
		r.Overflow.SumUp(r.Overflow.Order, false)
		again.SumUp(again.Order, false)
		for fp, out := range r.Overflow.Outputs {
			if out.Class == amount.ClassGauge || out.Class == amount.ClassDelta && !closed {
				require.Nil(t, again.Outputs[fp])
				continue
			}
			kept++
			got := again.Outputs[fp]
			require.Equal(t, identities(out.Data), identities(got.Data))
			require.Equal(t, []any{out.Sum.Total, out.Class, out.Start, out.Keys, out.Sum.Members, out.Bounds.Load(), out.Rule},
				[]any{got.Sum.Total, got.Class, got.Start, got.Keys, got.Sum.Members, got.Bounds.Load(), got.Rule})
		}
		require.Len(t, again.Order, kept)
		members := everybody(again)
		require.Len(t, members, len(everybody(r.Overflow)))
		require.NotEmpty(t, members)
		for fp, m := range everybody(r.Overflow) {
			got := members[fp]
			require.Equal(t, []any{m.Last, m.Start, m.Time, m.Reason, m.Limit.Name, m.Output.FP, m.Cost, uint32(5)},
				[]any{got.Last, got.Start, got.Time, got.Reason, got.Limit.Name, got.Output.FP, got.Cost, got.Seen})
		}
	}
}

// TestDamagedLedgerIsLeftOut: first values are not trusted then.
func TestDamagedLedgerIsLeftOut(t *testing.T) {
	host := newMemory()
	before := newRig(t, withStorage(overflowing(1)))
	require.NoError(t, before.begin(host))
	before.send(aSeries(1), aSeries(2))
	require.NoError(t, before.shutdown(t.Context()))
	host.data[gate.SnapshotLedger][30] ^= 1
	after := newRig(t, withStorage(overflowing(1)))
	require.NoError(t, after.begin(host))
	require.Equal(t, after.Overflow.Begin, after.Overflow.Certain)
	require.Empty(t, after.Overflow.Outputs)
}

// TestLastWordIsSaidAgain: a series made here that will not grow any more is sent until it was accepted.
func TestLastWordIsSaidAgain(t *testing.T) {
	r := newRig(t, overflowing(1))
	r.send(point{name: "m", kind: cumulative, attrs: attrs{"i": "first"}})
	p := point{name: "m", kind: cumulative, attrs: attrs{"i": "second"}}
	require.Empty(t, identities(r.consume(r.timed(p, r.clock.Add(time.Millisecond), r.clock.Add(time.Second), 5))))
	for i := range r.Overflow.Shards {
		clear(r.Overflow.Shards[i].Members)
		if p := r.Overflow.Order[0].Subtotals[i]; p != nil {
			p.Members = 0
		}
	}
	r.next = consumertest.NewErr(errors.New("busy"))
	require.Zero(t, r.flushed(time.Minute).DataPointCount())
	r.next = r.sink
	require.Equal(t, 1, r.flushed(time.Minute).DataPointCount())
	require.Zero(t, r.flushed(time.Minute).DataPointCount())
}

// FuzzLedger: no ledger causes a panic, neither when it is restored nor later.
func FuzzLedger(f *testing.F) {
	r := overflowed(f)
	for _, closed := range []bool{false, true} {
		saved := r.Overflow.SealedLedger(closed)
		f.Add(saved[len(store.Magic) : len(saved)-4])
	}
	f.Fuzz(func(_ *testing.T, body []byte) {
		o := overflow.New(1<<20, time.Minute, time.Unix(1, 0))
		_ = o.RestoreLedger(seal(body), 0)
		for fp, m := range everybody(o) {
			metric := pmetric.NewMetric()
			m.Output.Metric.CopyTo(metric)
			addTo(o, m.Output.FP, overflow.Arrival{Metric: metric, FP: fp, Limit: m.Limit}, 0, nil)
		}
		for epoch := range uint32(3 * moment.IdleEpochs) {
			for _, s := range o.Flush(epoch, time.Unix(2, 0)) {
				o.Restore(&s)
			}
		}
	})
}
