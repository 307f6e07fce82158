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
)

// overflowed is a processor that has added up points of all kinds.
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

// TestLedgerHasAll: what is restored is what there was, gauges excepted, and deltas unless the process ended well.
func TestLedgerHasAll(t *testing.T) {
	for _, closed := range []bool{false, true} {
		r := overflowed(t)
		r.overflow.certain = 7
		again := newOverflow(r.overflow.budget, r.overflow.idle, r.clock)
		require.NoError(t, again.restoreLedger(r.overflow.sealedLedger(closed), 5))
		if closed {
			require.Equal(t, pcommon.Timestamp(7), again.certain)
		} else {
			require.Equal(t, again.begin, again.certain)
		}
		kept := 0
		r.overflow.sumUp(r.overflow.order, false)
		again.sumUp(again.order, false)
		for fp, out := range r.overflow.outputs {
			if out.class == classGauge || out.class == classDelta && !closed {
				require.Nil(t, again.outputs[fp])
				continue
			}
			kept++
			got := again.outputs[fp]
			require.Equal(t, identities(out.data), identities(got.data))
			require.Equal(t, []any{out.sum.total, out.class, out.start, out.keys, out.sum.members, out.bounds.Load(), out.rule},
				[]any{got.sum.total, got.class, got.start, got.keys, got.sum.members, got.bounds.Load(), got.rule})
		}
		require.Len(t, again.order, kept)
		members := again.everybody()
		require.Len(t, members, len(r.overflow.everybody()))
		require.NotEmpty(t, members)
		for fp, m := range r.overflow.everybody() {
			got := members[fp]
			require.Equal(t, []any{m.last, m.start, m.time, m.reason, m.limit.name, m.output.fp, m.cost, uint32(5)},
				[]any{got.last, got.start, got.time, got.reason, got.limit.name, got.output.fp, got.cost, got.seen})
		}
	}
}

// TestDamagedLedgerIsLeftOut: first values are not trusted then.
func TestDamagedLedgerIsLeftOut(t *testing.T) {
	host := newMemory()
	before := newRig(t, withStorage(overflowing(1)))
	require.NoError(t, before.begin(host))
	before.send(series(1), series(2))
	require.NoError(t, before.shutdown(t.Context()))
	host.data[snapshotLedger][30] ^= 1
	after := newRig(t, withStorage(overflowing(1)))
	require.NoError(t, after.begin(host))
	require.Equal(t, after.overflow.begin, after.overflow.certain)
	require.Empty(t, after.overflow.outputs)
}

// TestLastWordIsSaidAgain: a series made here that will not grow any more is sent until it was taken.
func TestLastWordIsSaidAgain(t *testing.T) {
	r := newRig(t, overflowing(1))
	r.send(point{name: "m", kind: cumulative, attrs: attrs{"i": "first"}})
	p := point{name: "m", kind: cumulative, attrs: attrs{"i": "second"}}
	require.Empty(t, identities(r.consume(r.timed(p, r.clock.Add(time.Millisecond), r.clock.Add(time.Second), 5))))
	for i := range r.overflow.shards {
		clear(r.overflow.shards[i].members)
		if p := r.overflow.order[0].subtotals[i]; p != nil {
			p.members = 0
		}
	}
	r.next = consumertest.NewErr(errors.New("busy"))
	require.Zero(t, r.flushed(time.Minute).DataPointCount())
	r.next = r.sink
	require.Equal(t, 1, r.flushed(time.Minute).DataPointCount())
	require.Zero(t, r.flushed(time.Minute).DataPointCount())
}

// FuzzLedger: whatever is in it, it does not panic, and neither does what goes on with it.
func FuzzLedger(f *testing.F) {
	r := overflowed(f)
	for _, closed := range []bool{false, true} {
		saved := r.overflow.sealedLedger(closed)
		f.Add(saved[len(snapshotMagic) : len(saved)-4])
	}
	f.Fuzz(func(_ *testing.T, body []byte) {
		o := newOverflow(1<<20, time.Minute, time.Unix(1, 0))
		_ = o.restoreLedger(seal(body), 0)
		for fp, m := range o.everybody() {
			metric := pmetric.NewMetric()
			m.output.metric.CopyTo(metric)
			o.add(m.output.fp, arrival{metric: metric, fp: fp, limit: m.limit}, 0, nil)
		}
		for epoch := range uint32(3 * idleEpochs) {
			for _, s := range o.flush(epoch, time.Unix(2, 0)) {
				o.restore(&s)
			}
		}
	})
}
