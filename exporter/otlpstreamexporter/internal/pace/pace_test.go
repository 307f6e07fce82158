// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configretry"
)

func TestDelaysGrowToACap(t *testing.T) {
	cfg := configretry.NewDefaultBackOffConfig()
	cfg.RandomizationFactor = 0
	last := time.Duration(0)
	for failures := 1; failures < 50; failures++ {
		delay := backoff(cfg, failures)
		require.GreaterOrEqual(t, delay, last)
		require.LessOrEqual(t, delay, cfg.MaxInterval)
		last = delay
	}
	require.Equal(t, cfg.MaxInterval, last)
	cfg.RandomizationFactor = 0.5
	one := backoff(cfg, 1)
	require.NotEqual(t, one, backoff(cfg, 1), "jitter")

	require.GreaterOrEqual(t, Retry(cfg, 1, 3*time.Second), 3*time.Second, "never sooner than the server asks")
	require.LessOrEqual(t, Retry(cfg, 100, time.Minute), 90*time.Second)

	g := Gate{Multiplier: 2, Ceiling: 10 * time.Second}
	now := time.Unix(1000, 0)
	var delays []time.Duration
	for range 6 {
		g.Hold(time.Second, now)
		require.Zero(t, g.Hold(time.Second, now), "all streams of one moment count once")
		delays = append(delays, g.Left(now))
		now = now.Add(g.Left(now) + 1)
	}
	require.Equal(t, []time.Duration{1e9, 2e9, 4e9, 8e9, 10e9, 10e9}, delays)
	g.Succeeded()
	g.Hold(time.Second, now)
	require.Equal(t, time.Second, g.Left(now))

	require.Zero(t, Reconnect(cfg, 0))
	for failures := 1; failures < 100; failures++ {
		require.Positive(t, Reconnect(cfg, failures))
		require.LessOrEqual(t, Reconnect(cfg, failures), 2*cfg.MaxInterval)
	}
}

// The wall clock may be set while the gate is closed.
func TestAGateIsNotClosedByTheWallClock(t *testing.T) {
	var g Gate
	g.Hold(time.Second, time.Now())
	require.NotEqual(t, g.until.String(), g.until.Round(0).String(), "it has a reading of a clock that nobody sets")
}
