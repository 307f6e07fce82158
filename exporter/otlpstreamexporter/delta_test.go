// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

func TestAStreamKeepsWhatBothEndsKeep(t *testing.T) {
	f := func(signal otlpstream.Signal, own int, granted otlpstream.Keep, caps otlpstream.Caps, want otlpstream.Keep) {
		t.Helper()
		s := &slot{lane: &lane{destination: &destination{streamExporter: &streamExporter{signal: signal, cfg: &Config{HistoryBytes: own}}}}}
		require.Equal(t, want, s.keep(granted, caps))
	}
	const all = otlpstream.AllCaps
	f(otlpstream.Metrics, 10, otlpstream.Keep{Window: 1 << 14, History: 20}, all, otlpstream.Keep{Window: 1 << 14, History: 10})
	f(otlpstream.Metrics, 30, otlpstream.Keep{Window: 1 << 14, History: 20}, all, otlpstream.Keep{Window: 1 << 14, History: 20})
	f(otlpstream.Metrics, 0, otlpstream.Keep{History: 20}, all, otlpstream.Keep{})
	f(otlpstream.Metrics, 30, otlpstream.Keep{History: 20}, all&^otlpstream.CapDelta, otlpstream.Keep{}) // a server without deltas
	f(otlpstream.Logs, 30, otlpstream.Keep{Window: 1 << 14, History: 20}, all, otlpstream.Keep{Window: 1 << 14})
}

func TestStreamsWithAHistoryAreKeptLonger(t *testing.T) {
	now := time.Unix(1000, 0)
	cfg := Rebalance{Timeout: time.Second, Requests: 3}
	stream := func(age time.Duration, sent int, learned bool) *link {
		l := &link{opened: now.Add(-age), maxAge: cfg.Timeout, deltaAge: time.Minute, sent: sent}
		l.learned.Store(learned)
		return l
	}
	require.True(t, stream(2*time.Second, 1, false).over(cfg, now))
	require.True(t, stream(0, 9, false).over(cfg, now))
	require.False(t, stream(2*time.Second, 9, true).over(cfg, now))
	require.True(t, stream(2*time.Minute, 1, true).over(cfg, now))
	l := stream(0, 1, true)
	l.retiring = true
	require.True(t, l.over(cfg, now), "the server wants it to")
}
