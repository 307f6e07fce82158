// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
)

// TestAClockThatIsAheadTakesNothingFromOthers: a series that is forgotten to save memory, and whose start time is half
// an hour in the future, only adds its growth when it comes back. All others are counted from their start meanwhile.
func TestAClockThatIsAheadTakesNothingFromOthers(t *testing.T) {
	racetest.Sequential(t)
	a := newAbsent(t, cumulative, func(c *Config) { c.Memory.OverflowStateMiB = 1 })
	const fast = 30 * time.Minute
	ahead := a.clock.Add(fast)
	say := func(n int64) {
		a.clock = a.clock.Add(time.Second)
		a.consume(a.timed(aSeries(3), ahead, a.clock.Add(fast), n))
	}
	say(10)
	require.Equal(t, int64(210), a.total())
	a.leave(1)
	start := a.clock
	a.clock = a.clock.Add(time.Second)
	for i := range 5000 { // until memory is full
		a.consume(a.timed(aSeries(1000+i), start, a.clock, 1))
	}
	require.Positive(t, a.unaccounted("state_full"))
	require.Zero(t, a.unaccounted("baseline"))
	a.leave(1) // silent series make room
	say(12)
	require.Equal(t, int64(1), a.unaccounted("baseline"), "it was forgotten")
	start = a.clock
	for i := range 100 {
		a.clock = a.clock.Add(time.Millisecond)
		a.consume(a.timed(aSeries(10_000+i), start, a.clock, 1))
	}
	require.Equal(t, int64(1), a.unaccounted("baseline"))
	total := a.total()
	say(15)
	require.Equal(t, total+3, a.total())
}

// TestWhatComesBackIsPaidForByItsOwn: an end that could not be sent is charged to the account of its rule, which was
// closed meanwhile.
func TestWhatComesBackIsPaidForByItsOwn(t *testing.T) {
	r := newRig(t, overflowing(1))
	r.send(point{name: "other"})
	up := aSeries(1)
	up.kind = upDown
	r.clock = r.clock.Add(time.Second)
	r.consume(r.timed(up, time.Time{}, r.clock, 7))
	require.Equal(t, 1, r.flushed(time.Second).DataPointCount())
	paid := func() (n int64) {
		for _, of := range r.Overflow.Accounts {
			n += of.Used.Load()
		}
		return n
	}
	require.Positive(t, paid())
	r.next = consumertest.NewErr(errors.New("not now"))
	for range 3 {
		r.idle()
		r.flush(t.Context())
		require.Positive(t, paid())
		require.Equal(t, r.Overflow.All.Used.Load(), paid())
	}
	r.next = r.sink
}

// TestABeginningInTheFutureOutlivesARestart: a series that ended, was forgotten to save memory and comes back soon,
// with its start time half an hour in the future, only adds its growth, also in the next process.
func TestABeginningInTheFutureOutlivesARestart(t *testing.T) {
	host, config := newMemory(), withStorage(func(*Config) {})
	a := newAbsent(t, cumulative, config)
	a.keep(host)
	const fast, many = 30 * time.Minute, 64 // some in each part
	ahead := a.clock.Add(fast)
	say := func(i int, n int64) pmetric.Metrics {
		a.clock = a.clock.Add(time.Millisecond)
		return a.timed(aSeries(10+i), ahead, a.clock.Add(fast), n)
	}
	for i := range many {
		a.consume(say(i, 10))
		ended := say(i, 0)
		amount.Silence(onlyMetricOf(ended), 0)
		a.consume(ended)
	}
	a.Overflow.Budget = a.Overflow.All.Used.Load() / 2 // memory is short
	a.stay(101)
	for range 2 { // the second one has not seen it itself
		a.flush(t.Context())
		require.NoError(t, a.Snapshot.Save(t.Context()))
		require.NoError(t, a.Snapshot.SaveLedger(t.Context(), true))
		a.Snapshot.Storage = nil
		after := newRig(t, func(c *Config) { overflowing(1)(c); config(c) })
		require.NoError(t, after.begin(host))
		after.clock = a.clock
		a.rig = after
	}
	total := a.total()
	for i := range many {
		a.consume(say(i, 12))
	}
	forgotten := a.unaccounted("baseline")
	require.Positive(t, forgotten)
	require.Equal(t, total+2*(many-forgotten), a.total())
	a.Snapshot.Storage = nil
}
