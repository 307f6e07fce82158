// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/overflow"
)

// absent is a series that is added to an overflow series, in addition to another one that stays.
type absent struct {
	*rig

	start time.Time
	point point
}

// newAbsent has sent 100 with each of them.
func newAbsent(t *testing.T, k kind, change ...func(*Config)) *absent {
	r := newRig(t, func(c *Config) {
		overflowing(1)(c)
		for _, f := range change {
			f(c)
		}
	})
	r.send(point{name: "other"})
	a := &absent{rig: r, start: r.clock, point: aSeries(1)}
	a.point.kind = k
	a.say(100)
	a.stay(100)
	require.Equal(t, int64(200), a.total())
	return a
}

func (a *absent) say(n int64) (passed int) {
	a.clock = a.clock.Add(time.Second)
	return a.consume(a.timed(a.point, a.start, a.clock, n)).DataPointCount()
}

func (a *absent) stay(n int64) {
	a.clock = a.clock.Add(time.Second)
	p := aSeries(2)
	p.kind = a.point.kind
	a.consume(a.timed(p, a.start, a.clock, n))
}

// total returns the total of the overflow series.
func (a *absent) total() int64 {
	md := a.flushed(time.Second)
	require.Equal(a.t, 1, md.MetricCount())
	n, _ := reading(md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0), 0)
	return n
}

// leave makes it silent for n idle timeouts.
func (a *absent) leave(n int) {
	for range n * (moment.IdleEpochs + 3) {
		a.epochs(1)
		a.stay(100)
		a.send(point{name: "other"}) // otherwise there would be room
		a.flush(a.t.Context())
	}
	require.Equal(a.t, int64(1), a.gaugeNow("r"))
}

// A member that was silent continues at its last value: its total is not counted once more, neither here nor in a place
// of its own.
func TestSilentMemberGoesOnWhereItWas(t *testing.T) {
	for _, k := range []kind{cumulative, histogram, summary} {
		a := newAbsent(t, k)
		a.leave(3)
		require.Equal(t, int64(1), a.gauge("overflow_members", ""))
		require.Equal(t, int64(200), a.total())
		require.Zero(t, a.say(130))
		require.Equal(t, int64(230), a.total())
		require.Equal(t, int64(2), a.gauge("overflow_members", ""))
	}
}

// When a scrape fails, all series of its target end. When it works again, they continue.
func TestMemberThatSaidItEndsGoesOn(t *testing.T) {
	for _, k := range []kind{cumulative, histogram, summary} {
		a := newAbsent(t, k)
		a.leave(1)
		for i, n := range []int64{110, 125, 125} {
			a.clock = a.clock.Add(time.Second)
			md := a.timed(a.point, []time.Time{a.start, {}, a.start}[i], a.clock, 0)
			amount.Silence(md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0), 0)
			require.Zero(t, a.consume(md).DataPointCount())
			require.Equal(t, int64(1), a.gauge("overflow_members", ""))
			require.Zero(t, a.say(n))
			require.Equal(t, 100+n, a.total())
		}
	}
}

func TestSilentMembersOutliveARestart(t *testing.T) {
	host := newMemory()
	a := newAbsent(t, cumulative, withStorage(func(*Config) {}))
	a.keep(host)
	a.leave(1)
	require.NoError(t, a.Snapshot.Save(t.Context()))
	require.NoError(t, a.Snapshot.SaveLedger(t.Context(), true))
	a.Snapshot.Storage = nil
	after := newRig(t, withStorage(overflowing(1)))
	require.NoError(t, after.begin(host.killed()))
	after.Snapshot.Storage, after.clock = nil, a.clock
	a.rig = after
	require.Zero(t, a.say(130))
	require.Equal(t, int64(230), a.total())
}

// Members that do not come back take a part of the memory, and only as long as it is not needed.
func TestSilentMembersAreForgottenForOthers(t *testing.T) {
	racetest.Sequential(t)
	a := newAbsent(t, cumulative, func(c *Config) { c.Memory.OverflowStateMiB = 1 })
	send := func(from, n int) (taken int) {
		before := a.rejected("r", "max_series", "overflow")
		for i := range n {
			p := aSeries(from + i)
			a.consume(a.timed(p, a.start, a.clock.Add(time.Second), 1))
		}
		return int(a.rejected("r", "max_series", "overflow") - before)
	}
	most := send(1000, 5000)
	require.Less(t, most, 5000)
	for round := range 4 {
		a.leave(1)
		members, used := int(a.gauge("overflow_members", "")), a.gauge("overflow_state", "")
		require.Equal(t, 1, members)
		require.LessOrEqual(t, used, int64(1<<20/overflow.RestPart+(2+len(a.Overflow.Shards)/4)*overflow.OutputCost+overflow.MemberCost))
		require.Greater(t, used, int64(1<<20/overflow.RestPart-overflow.MemberCost))
		require.GreaterOrEqual(t, send(10_000*(1+round), 5000), most)
		require.LessOrEqual(t, a.gauge("overflow_state", ""), int64(1<<20))
	}
	for range overflow.OverEpochs + 3 { // no members are left, nor their outputs
		a.epochs(1)
		a.flush(t.Context())
	}
	require.Zero(t, a.gauge("overflow_state", ""))
	require.Empty(t, everybody(a.Overflow))
	require.Empty(t, a.Overflow.Accounts)
	require.Zero(t, a.Overflow.All.Rested.Load())
	for i := range a.Overflow.Shards {
		sh := &a.Overflow.Shards[i]
		require.Empty(t, sh.Silent)
		require.Zero(t, sh.Asleep)
		require.Zero(t, sh.Rested)
	}
}

// TestKnownCumulativeSeriesDoNotWaitForTheOverflow: known series that are due for statistics take the slow path, and
// wait neither for a flush nor for the ledger.
func TestKnownCumulativeSeriesDoNotWaitForTheOverflow(t *testing.T) {
	r := newRig(t, threeLimits)
	md := workload(1000)
	require.Equal(t, 1000, r.consume(md).DataPointCount())
	r.epochs(moment.IdleEpochs) // each is due once
	r.Overflow.Mu.Lock()
	defer r.Overflow.Mu.Unlock()
	r.Overflow.LockAll()
	defer r.Overflow.UnlockAll()
	passed := make(chan error, 1)
	go func() {
		_, err := r.process(t.Context(), md)
		passed <- err
	}()
	select {
	case err := <-passed:
		require.NoError(t, err)
	case <-time.After(time.Minute):
		t.Error("a series that has a place waits for those that have none")
	}
}

// If all members of a series are silent, the series ends. A member that comes back and gets a place does not repeat
// what was added, not even after a restart or a kill: it continues in the series, and then by itself with its growth.
func TestWhoComesBackToASeriesThatIsOverGoesOn(t *testing.T) {
	for _, k := range []kind{cumulative, histogram, summary} {
		for _, then := range []string{"", "restart", "kill", "not taken", "ends"} {
			host := newMemory()
			r := newRig(t, withStorage(overflowing(1)))
			require.NoError(t, r.begin(host))
			again := func(from *memory) {
				now := r.clock
				r = newRig(t, withStorage(overflowing(1)))
				require.NoError(t, r.begin(from))
				r.clock = now
			}
			start, p := r.clock, aSeries(1)
			p.kind = k
			say := func(n int64) pmetric.Metrics {
				r.clock = r.clock.Add(time.Second)
				return r.consume(r.timed(p, start, r.clock, n))
			}
			r.send(point{name: "other"})
			require.Zero(t, say(100).DataPointCount())
			require.Len(t, told(r.flushed(time.Second)), 1)
			if then == "ends" {
				r.clock = r.clock.Add(time.Second)
				md := r.timed(p, start, r.clock, 0)
				amount.Silence(onlyMetricOf(md), 0)
				require.Zero(t, r.consume(md).DataPointCount())
			}
			r.idle()
			if then == "not taken" {
				r.next = consumertest.NewErr(errBusy)
				r.flush(t.Context())
				r.next = r.sink
			}
			require.True(t, amount.WhenAt(onlyMetric(t, r.flushed(time.Second)), 0).NoValue, then)
			require.Zero(t, r.gauge("overflow_series", ""))
			require.Zero(t, r.gauge("overflow_members", ""))
			switch then {
			case "restart":
				require.NoError(t, r.shutdown(t.Context()))
				again(host)
			case "kill":
				r.Snapshot.Storage = nil
				again(host.killed())
			}
			require.Zero(t, r.flushed(time.Second).DataPointCount(), then)
			require.Zero(t, say(130).DataPointCount(), then)
			n, _ := reading(onlyMetric(t, r.flushed(time.Second)), 0)
			require.Equal(t, int64(130), n, then)
			base := n
			if k == histogram && (then == "restart" || then == "kill") { // its bounds have to be seen again
				require.Zero(t, say(140).DataPointCount())
				base, _ = reading(onlyMetric(t, r.flushed(time.Second)), 0)
			}
			n, since := reading(onlyMetric(t, say(150)), 0)
			require.Equal(t, 150-base, n, then)
			require.Greater(t, since, pcommon.NewTimestampFromTime(start))
			require.NoError(t, r.shutdown(t.Context()))
		}
	}
}

// Series that are over are kept, in case members come back, as long as their memory is not needed.
func TestSeriesThatAreOverAreForgottenForOthers(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Memory.OverflowStateMiB = 1
		c.Rules = []RuleConfig{{Name: "r", LabelLimits: map[string]int{"user": 0}, Exceed: ExceedConfig{OnExceed: []string{"collapse"}}}}
	})
	say := func(i, n int) {
		p := point{name: "m", kind: cumulative, attrs: attrs{"user": "u", "i": int64(i)}}
		r.consume(r.timed(p, r.clock, r.clock.Add(time.Second), int64(n)))
	}
	series := func() int { return len(r.Overflow.Outputs) }
	for round := range 5 {
		for i := range 100 {
			say(100*round+i, 1)
		}
		require.Equal(t, 100, r.flushed(2*time.Second).DataPointCount())
		r.idle()
		require.Equal(t, 100, r.flushed(time.Second).DataPointCount(), "their ends")
		require.Zero(t, r.flushed(time.Second).DataPointCount())
		require.Positive(t, series())
		kept := int64(0)
		for _, out := range r.Overflow.Outputs {
			kept += out.Cost
		}
		require.LessOrEqual(t, kept, r.Overflow.Budget/overflow.OverPart)
	}
	for i := range 1000 { // it is available when needed
		say(1_000_000+i, 1)
	}
	r.flushed(2 * time.Second)
	n := series()
	for i := range 1000 {
		say(1_000_000+i, 2)
	}
	require.GreaterOrEqual(t, series(), n)
	r.flushed(2 * time.Second)
	for _, out := range r.Overflow.Outputs {
		require.Positive(t, out.Sum.Members, "none that is over")
	}
}
