// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"fmt"
	rand "math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/gate"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/series"
)

// What is no longer known may have been counted: series that may have been members do not count from their start.

func (a *absent) end() {
	a.clock = a.clock.Add(time.Second)
	md := a.timed(a.point, a.start, a.clock, 0)
	amount.Silence(onlyMetricOf(md), 0)
	a.consume(md)
}

// A member that ended is forgotten immediately if memory is short. It comes back soon if only a scrape had failed.
func TestAMemberForgottenForMemoryIsNotCountedTwice(t *testing.T) {
	for _, k := range []kind{cumulative, histogram, summary} {
		for _, restart := range []bool{false, true} {
			host := newMemory()
			a := newAbsent(t, k, withStorage(func(*Config) {}))
			a.keep(host)
			budget := a.Overflow.Budget
			a.Overflow.Budget = 0
			a.end()
			a.Overflow.Budget = budget
			require.Len(t, everybody(a.Overflow), 1)
			if restart {
				require.NoError(t, a.shutdown(t.Context()))
				after := newRig(t, withStorage(overflowing(1)))
				require.NoError(t, after.begin(host.killed()))
				after.clock = a.clock
				a.rig = after
			}
			require.Zero(t, a.say(130))
			require.Equal(t, int64(200), a.total(), "kind %d: it has been counted", k)
			require.Equal(t, int64(1), a.unaccounted("baseline"))
			require.Zero(t, a.say(140))
			require.Equal(t, int64(210), a.total(), "kind %d: from there on it counts", k)
			a.start = a.clock
			a.point.attrs = attrs{"new": true}
			require.Zero(t, a.say(5))
			require.Equal(t, int64(215), a.total(), "kind %d: who began later counts from the beginning", k)
		}
	}
}

// If a part of the saved places is damaged, the series that had them are refused as if they were new.
func TestWhatHadAPlaceIsNotCountedAgainAfterDamage(t *testing.T) {
	for name, damage := range map[string]func(part []byte) []byte{
		"changed": func(part []byte) []byte { part[len(part)-9] ^= 1; return part },
		"missing": func([]byte) []byte { return nil },
	} {
		host := newMemory()
		config := withStorage(overflowing(200))
		before := newRig(t, config)
		require.NoError(t, before.begin(host))
		start := before.clock
		before.clock = before.clock.Add(time.Second)
		for i := range 250 { // fifty of them are added to others
			before.consume(before.timed(aSeries(i), start, before.clock, 100))
		}
		require.NoError(t, before.shutdown(t.Context()))
		for part := range series.PartCount {
			host.data[gate.SnapshotKey(part)] = damage(host.data[gate.SnapshotKey(part)])
		}
		after := newRig(t, config)
		after.clock = before.clock.Add(time.Second)
		after.Overflow.Begin = pcommon.NewTimestampFromTime(after.clock)
		require.NoError(t, after.begin(host))
		for i := range 200 {
			require.Len(t, after.send(aSeries(1000+i)), 1, "there is room for others")
		}
		for i := range 250 {
			require.Zero(t, after.consume(after.timed(aSeries(i), start, after.clock, 101)).DataPointCount())
		}
		n, _ := reading(onlyMetric(t, after.flushed(time.Second)), 0)
		require.Equal(t, int64(50*101), n, name)
		require.Equal(t, int64(200), after.unaccounted("baseline"), name)
	}
}

// A series that loses its place restarts, while its value as a member has a later timestamp: the same value cannot be
// recorded there again.
func TestWhatCouldNotBeNotedOfALastPointIsNotCountedTwice(t *testing.T) {
	r := newRig(t, overflowing(1))
	begun := r.clock
	others := func(places ...int) { // one has the place, and one is a member as long as there is an overflow
		for _, i := range append(places, 3) {
			r.consume(r.timed(aSeries(i), begun, r.clock.Add(time.Second), 7))
		}
	}
	say := func(start, at time.Time, n int64) (passed int) {
		return r.consume(r.timed(aSeries(1), start, at, n)).DataPointCount()
	}
	r.send(point{name: "first"})
	others()
	require.Zero(t, say(begun, begun.Add(time.Second), 100))
	for range 2 * (moment.IdleEpochs + 3) { // the first one leaves its place
		r.epochs(1)
		if say(begun, r.clock.Add(50*time.Minute), 110) > 0 {
			break
		}
		others()
		r.flushed(0)
	}
	require.Equal(t, 1, say(begun, r.clock.Add(50*time.Minute+time.Second), 130), "a series of its own")
	ahead := r.clock.Add(50*time.Minute + time.Second)
	for r.Limiter.Peek(fingerprintsOf(metricsOf(aSeries(1)))[0]) {
		r.epochs(1)
		others()
		r.flushed(0)
	}
	others(2)

	second := r.clock
	var got []int64
	total := int64(0)
	for i := range 90 {
		r.clock = r.clock.Add(time.Minute)
		others(2)
		md := r.consume(r.timed(aSeries(1), second, r.clock, 500+int64(i)))
		if md.DataPointCount() > 0 && !amount.WhenAt(onlyMetricOf(md), 0).NoValue {
			n, _ := reading(onlyMetricOf(md), 0)
			got = append(got, n)
		}
		total, _ = reading(onlyMetric(t, r.flushed(0)), 0)
	}
	require.True(t, ahead.After(second) && r.clock.After(ahead))
	require.Equal(t, []int64{500}, got, "by itself")
	require.LessOrEqual(t, total, int64(7+7+110+89), "by others: what it has grown by since, at most")
}

// Series that take the last place in turn, end, and come back when another one has it, take no more memory than what
// may be remembered.
func TestWhoLeavesAgainAndAgainTakesNoMoreThanItsPart(t *testing.T) {
	const most = 40
	for _, onExceed := range []string{"drop", "overflow"} {
		r := newRig(t, func(c *Config) {
			c.Memory.MaxSeries, c.Defaults.Exceed.OnExceed = most, []string{onExceed}
		})
		start := r.clock
		say := func(i int) {
			r.clock = r.clock.Add(time.Millisecond)
			r.consume(r.timed(aSeries(i), start, r.clock, 1))
		}
		end := func(i int) {
			r.clock = r.clock.Add(time.Millisecond)
			md := r.timed(aSeries(i), start, r.clock, 1)
			amount.Silence(onlyMetricOf(md), 0)
			r.consume(md)
		}
		for i := range most - 1 {
			say(i)
		}
		for i := 1000; i < 2000; i++ {
			say(i) // gets the place
			end(i)
			say(i + 1) // now has it
			say(i)     // is refused, and sends its value once more
			end(i + 1)
		}
		require.LessOrEqual(t, r.Limiter.Series.Len(), most+most/4+1, onExceed)
		require.Positive(t, r.Limiter.Ended.Load())
		requireWithinLimits(t, r)
	}
}

// TestForgottenMembersNeverCountTwice: with hardly any memory for silent members, with ends, restarts and kills, no sum
// is greater than the input.
func TestForgottenMembersNeverCountTwice(t *testing.T) {
	racetest.Sequential(t)
	forgotten, got := 0, int64(0)
	for seed := range seeds(t, 8) {
		f := forgetful(t, seed)
		forgotten += f.forgotten
		got += f.got
	}
	require.Positive(t, forgotten)
	require.Positive(t, got)
}

// forgetfulLife is a series of processes with little memory.
type forgetfulLife struct {
	*rig

	last      map[pcommon.Timestamp]int64 // of the series that everything is added to, by start
	got, want int64
	forgotten int
}

func forgetful(t *testing.T, seed uint64) *forgetfulLife {
	random := rand.New(rand.NewPCG(seed, 31))
	host, config := newMemory(), withStorage(overflowing(1))
	f := &forgetfulLife{last: map[pcommon.Timestamp]int64{}}
	again := func(now time.Time, from *memory) {
		host = from
		f.rig = newRig(t, config)
		f.clock = now
		f.Overflow.Begin = pcommon.NewTimestampFromTime(now)
		require.NoError(t, f.begin(host))
		f.Overflow.Budget = int64(12_000 + random.IntN(20_000))
	}
	again(time.Unix(1_000_000, 0), host)
	type input struct {
		id        int
		start     time.Time
		now, said int64
	}
	var inputs []*input
	for range 250 {
		f.clock = f.clock.Add(time.Duration(random.IntN(5)) * time.Second)
		f.send(point{name: "other"}) // takes the only place
		if random.IntN(4) == 0 {
			inputs = append(inputs, &input{id: 10 + len(inputs), start: f.clock.Add(-time.Millisecond)})
		}
		for _, in := range inputs {
			switch random.IntN(12) {
			case 0:
				before := len(everybody(f.Overflow))
				md := f.timed(aSeries(in.id), in.start, f.clock, 0)
				amount.Silence(onlyMetricOf(md), 0)
				f.consume(md)
				f.forgotten += before - len(everybody(f.Overflow))
			case 1, 2, 3:
				in.now += int64(random.IntN(20))
				require.Zero(t, f.consume(f.timed(aSeries(in.id), in.start, f.clock, in.now)).DataPointCount())
				f.want += in.now - in.said
				in.said = in.now
			}
		}
		switch random.IntN(40) {
		case 0:
			require.NoError(t, f.shutdown(t.Context()))
			f.count()
			again(f.clock.Add(time.Second), host)
		case 1:
			after := host.killed()
			f.Snapshot.Storage = nil
			again(f.clock.Add(time.Second), after)
		case 2, 3, 4, 5, 6:
			f.flush(t.Context())
			f.count()
		case 7, 8:
			f.epochs(1)
		}
		require.LessOrEqual(t, f.got, f.want, "seed %d", seed)
	}
	return f
}

// count adds up what was sent since the last call.
func (f *forgetfulLife) count() {
	for _, md := range f.sink.AllMetrics() {
		f.countIn(md)
	}
	f.sink.Reset()
}

func (f *forgetfulLife) countIn(md pmetric.Metrics) {
	for i, id := range identities(md) {
		m := md.ResourceMetrics().At(i).ScopeMetrics().At(0).Metrics().At(0)
		if m.Name() == "other" || amount.WhenAt(m, 0).NoValue {
			continue
		}
		n, start := reading(m, 0)
		require.GreaterOrEqual(f.t, n, f.last[start], fmt.Sprint(id, start))
		f.got += n - f.last[start]
		f.last[start] = n
	}
}
