// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var errLimited = errors.New(MemoryLimited)

func TestTheDelayFollowsHowLongRequestsStay(t *testing.T) {
	a := Admission{Limit: 1000}
	now := time.Unix(1000, 0)
	refused := func() time.Duration {
		wait, ok := a.acquire(1000, now)
		require.False(t, ok)
		return wait
	}
	_, ok := a.acquire(5000, now)
	require.True(t, ok, "alone it goes, however large")
	require.Equal(t, LeastDelay, refused(), "nothing is known yet")
	now = now.Add(2 * time.Second)
	require.Equal(t, 2*time.Second, refused(), "it stands still")
	now = now.Add(time.Hour)
	require.Equal(t, maxDelay, refused(), "it is stuck")
	a.release(4000, now.Add(-8*time.Second), now)
	require.Equal(t, time.Second, refused(), "it moves, if not fast")
	for range 100 {
		a.release(1, now, now)
	}
	require.Equal(t, LeastDelay, refused(), "it has recovered")
	a.release(900, now, now)
	require.Zero(t, a.InFlight())
	_, ok = a.acquire(1000, now)
	require.True(t, ok)
}

// A request that weighs more than the limit is admitted when it is alone, like a large one.
func TestAHeavyRequestGoesAlone(t *testing.T) {
	a := &Admission{Limit: 1000}
	h := Hold{of: a, bytes: 100}
	a.used = 100
	require.NoError(t, h.MakeRoom(1<<20))
	require.Greater(t, a.InFlight(), 1000)
	h.Release()
	require.Zero(t, a.InFlight())
}

func TestPressureGrowsAndPasses(t *testing.T) {
	var p Pressure
	now := time.Now()
	require.Zero(t, p.Left(now))
	for want := LeastPressure; want < 20*MostPressure; want *= 2 {
		delay := min(want, MostPressure)
		told := p.Refused(now)
		require.GreaterOrEqual(t, told, delay)
		require.LessOrEqual(t, told, delay*3/2)
		require.GreaterOrEqual(t, p.Refused(now.Add(delay/2)), delay/2, "another one that was let in before")
		require.LessOrEqual(t, p.Left(now.Add(delay/2)), delay, "does not make it longer")
		now = now.Add(delay)
		require.Zero(t, p.Left(now))
	}
	p.Taken()
	require.LessOrEqual(t, p.Refused(now), LeastPressure*3/2)
	p.Taken()
	require.Zero(t, p.Left(now))
}

func TestOnlyMemoryLimitersMakePressure(t *testing.T) {
	for err, want := range map[error]bool{
		errLimited:                                  true,
		fmt.Errorf("wrapped: %w", errLimited):       true,
		errors.Join(errors.New("full"), errLimited): true,
		errors.New("rpc error: " + MemoryLimited):   false,
		errors.New("sending queue is full"):         false,
	} {
		require.Equal(t, want, Limited(err), strings.ReplaceAll(err.Error(), "\n", " "))
	}
	require.False(t, Limited(nil))
}

// How long requests stay, and so the delay that clients get, is correct even if the wall clock is set meanwhile.
func TestStepsOfTheClockAreNotSeen(t *testing.T) {
	a := Admission{Limit: 1000}
	held, _ := a.Acquire(10, time.Now())
	time.Sleep(time.Millisecond) // until any clock has advanced
	held.Release()
	require.Contains(t, a.progress.String(), " m=")
	require.Positive(t, a.stay)
	require.Less(t, a.stay, time.Minute)
}
