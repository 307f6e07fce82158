// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

func TestStreamsKeepLessTheMoreThereAre(t *testing.T) {
	const limit, streams = 1 << 30, 10_000
	m := Memory{Limit: limit}
	first, caps := m.Grant(otlpstream.Metrics, otlpstream.AllCaps)
	require.Equal(t, otlpstream.Keep{Window: otlpstream.FullWindow, History: mostHistory}, first)
	require.NotZero(t, caps&otlpstream.CapDelta)
	keeps := []otlpstream.Keep{first}
	for len(keeps) < streams {
		keep, _ := m.Grant(otlpstream.Metrics, otlpstream.AllCaps)
		keeps = append(keeps, keep)
		require.LessOrEqual(t, m.granted, limit)
	}
	// Each is granted and released, in any order.
	for range 20 * streams {
		i := rand.IntN(streams)
		m.Release(keeps[i])
		keeps[i], _ = m.Grant(otlpstream.Metrics, otlpstream.AllCaps)
		require.LessOrEqual(t, m.granted, limit)
	}
	require.Greater(t, m.granted, limit/3)
	have := 0
	for _, keep := range keeps {
		if keep.History > 0 {
			have++
		}
	}
	require.Greater(t, have, streams*9/10, "all have come to have a part")
	for _, keep := range keeps {
		m.Release(keep)
	}
	require.Zero(t, m.granted)
}

func TestClientsAreGrantedWhatTheyKnow(t *testing.T) {
	f := func(limit int, signal otlpstream.Signal, client otlpstream.Caps, window int, history bool) {
		t.Helper()
		m := Memory{Limit: limit}
		keep, caps := m.Grant(signal, client)
		require.Equal(t, window, keep.Window)
		require.Equal(t, history, keep.History > 0)
		require.Equal(t, window != otlpstream.NoWindow, caps&otlpstream.CapWindow != 0)
		require.Equal(t, history, caps&otlpstream.CapDelta != 0)
		require.Equal(t, keep.Memory(), m.granted)
	}
	const all, old, full = otlpstream.AllCaps, otlpstream.AllCaps &^ otlpstream.CapDelta, otlpstream.FullWindow
	f(1<<30, otlpstream.Metrics, all, full, true)
	f(1<<30, otlpstream.Metrics, old, full, false)
	f(1<<30, otlpstream.Logs, all, full, false)
	f(8<<20, otlpstream.Logs, all, full, false)
	f(8<<20, otlpstream.Metrics, all, full/4, true)
	f(8<<19, otlpstream.Logs, all, full/2, false)
	f(8<<19, otlpstream.Metrics, old, otlpstream.NoWindow, false)
	f(8*40_000, otlpstream.Metrics, all, otlpstream.LeastWindow, false)
	f(8*20_000, otlpstream.Traces, all, otlpstream.NoWindow, false)
	f(0, otlpstream.Metrics, all, otlpstream.NoWindow, false)
}
