// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package meter_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/consoletest"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/meter"
	"github.com/godwit-otel/godwit/internal/inspect"
)

func only(w *consoletest.World) meter.Rates { return w.Meter.Look().Rates(w.Sources.All()[0]) }

func TestRatesOfYoungComponentsBeginWithNothing(t *testing.T) {
	w := consoletest.New(t)
	w.Clock.Pass(5 * time.Second)
	receiver := w.Counter(component.KindReceiver, "fastprometheus")
	require.Nil(t, only(w).In, "no time has passed for it")
	w.Clock.Pass(2 * time.Second)
	receiver.Flow.In = 20
	require.InDelta(t, 10, *only(w).In, 0)
}

// The counters of a restarted component begin at zero again: that is not a negative rate.
func TestCountersThatGoBackAreNotKnown(t *testing.T) {
	w := consoletest.New(t)
	receiver := w.Counter(component.KindReceiver, "fastprometheus")
	receiver.Flow = inspect.Flow{In: 100, Out: -1}
	for range 2 {
		w.Pass()
	}
	receiver.Flow.In = 10
	w.Clock.Pass(meter.Interval)
	rates := only(w)
	require.Nil(t, rates.In)
	require.Nil(t, rates.Out, "not counted at all")
}

// Rates cover a period that is long enough to be smooth, and short enough to be current.
func TestRatesAreOfTheRecentPast(t *testing.T) {
	var p meter.Past[int]
	at := time.Unix(1, 0)
	f := func(later time.Duration, value, before int, age time.Duration) {
		t.Helper()
		at = at.Add(later)
		got, since := p.Since(at, value)
		require.Equal(t, before, got)
		require.Equal(t, age, since)
	}
	f(0, 1, 0, 0)
	f(time.Second/2, 2, 0, 0)
	f(time.Second/2, 3, 1, time.Second)
	f(9*time.Second, 4, 1, 10*time.Second) // is kept
	f(10*time.Second, 5, 1, 20*time.Second)
	f(10*time.Second, 6, 4, 20*time.Second)
	f(time.Hour, 7, 0, 0)
}
