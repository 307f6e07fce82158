// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"context"
	"math"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBreakerLetsOneProbeThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(Breaker{Failures: 3, OpenFor: time.Minute})
		for n := range 3 {
			require.False(t, g.isOpen())
			require.NoError(t, g.enter(t.Context()))
			require.Equal(t, n+1, g.failed())
		}
		require.True(t, g.isOpen())

		began := time.Now()
		entered := make(chan time.Duration, 2)
		for range 2 {
			go func() {
				if g.enter(t.Context()) == nil {
					entered <- time.Since(began)
				}
			}()
		}
		require.Equal(t, time.Minute, <-entered)
		synctest.Wait()
		require.Empty(t, entered, "the other waits for the probe")
		require.Equal(t, 4, g.failed())
		require.Equal(t, 2*time.Minute, <-entered)
		g.succeeded()
		require.False(t, g.isOpen())
		require.NoError(t, g.enter(t.Context()))
	})
}

func TestProbeThatEndsWithoutAnAnswerIsNotTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(Breaker{Failures: 1, OpenFor: time.Minute})
		g.failed()
		require.NoError(t, g.enter(t.Context()))
		entered := make(chan error, 1)
		go func() { entered <- g.enter(t.Context()) }()
		synctest.Wait()
		g.leave()
		require.NoError(t, <-entered)
	})
}

func TestGateEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(Breaker{})
		g.holdFor(time.Hour)
		g.holdFor(time.Minute) // does not shorten the hour
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
		defer cancel()
		require.ErrorIs(t, g.enter(ctx), context.DeadlineExceeded)
	})
}

func TestIntervalsGrow(t *testing.T) {
	r := Retry{InitialInterval: time.Second, MaxInterval: 5 * time.Second, Multiplier: 2}
	for attempt, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second} {
		require.Equal(t, want, r.interval(attempt, false, r.spread()))
	}
	require.Equal(t, 5*time.Second, r.interval(0, true, 1))
	require.Equal(t, 5*time.Second, r.interval(1<<20, false, 1), "no overflow")
}

// TestPausesOfARequestNeverShrink, although the pauses of many requests are spread.
func TestPausesOfARequestNeverShrink(t *testing.T) {
	r := Retry{InitialInterval: time.Second, MaxInterval: 5 * time.Second, Multiplier: 2, RandomizationFactor: 0.5}
	least, most := time.Hour, time.Duration(0)
	for range 100 {
		spread, last := r.spread(), time.Duration(0)
		for attempt := range 6 {
			d := r.interval(attempt, false, spread)
			require.GreaterOrEqual(t, d, last)
			last = d
		}
		first := r.interval(0, false, spread)
		require.InDelta(t, time.Second, first, float64(time.Second)/2)
		least, most = min(least, first), max(most, first)
	}
	require.Greater(t, most-least, time.Second/2, "of a hundred that fail together")
}

// TestNoRequestIsRepeatedWithoutAPause, however far pauses are spread.
func TestNoRequestIsRepeatedWithoutAPause(t *testing.T) {
	r := Retry{InitialInterval: time.Second, MaxInterval: 5 * time.Second, Multiplier: 2, RandomizationFactor: 1}
	least, most, sum := time.Hour, time.Duration(0), time.Duration(0)
	const draws = 10_000
	for range draws {
		d := r.interval(0, false, r.spread())
		least, most, sum = min(least, d), max(most, d), sum+d
	}
	require.GreaterOrEqual(t, least, time.Second/10)
	require.Less(t, least, time.Second/5, "some are that short")
	require.Greater(t, most, 19*time.Second/10, "and some twice as long as configured")
	require.InDelta(t, 1.05, (sum / draws).Seconds(), 0.05, "alike often between the two")
}

func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := func(value string, want time.Duration) {
			t.Helper()
			require.Equal(t, want, parseRetryAfter(value))
		}
		f("", 0)
		f("7", 7*time.Second)
		f("-7", 0)
		f("soon", 0)
		f("99999999999999", math.MaxInt32*time.Second)
		f("-99999999999999", 0)
		f(time.Now().Add(90*time.Second).UTC().Format(http.TimeFormat), 90*time.Second)
		f(time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat), 0)
	})
}
