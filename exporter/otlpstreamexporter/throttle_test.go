// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// hasClosed tells whether the gate is closed, or was.
func (g *gate) hasClosed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.until.IsZero()
}

func TestRetryInfoHoldsTheWholeDestination(t *testing.T) {
	const delay = 300 * time.Millisecond
	for name, refuse := range map[string]func(p *peer, id uint64) error{
		"status": func(*peer, uint64) error { return otlpstream.Busy("busy", delay).Err() },
		"answer": func(p *peer, id uint64) error {
			_ = p.send(otlpstream.Response{ID: id, Code: otlpstream.FailedRetryable, Delay: delay})
			return echo(p)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bothTransports(t, func(t *testing.T, kind string) {
				var refused atomic.Pointer[time.Time]
				s := run(t, &server{stream: func(p *peer) error {
					r, err := p.recv()
					if err != nil {
						return eof(err)
					}
					now := time.Now()
					if refused.CompareAndSwap(nil, &now) {
						return refuse(p, r.id)
					}
					p.ack(r.id)
					return echo(p)
				}}, kind)
				e := newTestExporter(t, kind, s.addr, func(cfg *Config) { cfg.Streams = 3 })
				e.export(0, 1)
				eventually(t, e.dest.gate.hasClosed, "the gate closes")
				from := len(s.seen())
				e.export(1, 30)
				require.Equal(t, int64(31), e.settled().Acked)
				for _, r := range s.seen()[from:] {
					require.GreaterOrEqual(t, r.at.Sub(*refused.Load()), delay-20*time.Millisecond)
				}
			})
		})
	}
}

func TestUnaryRequestsObeyRetryInfo(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		var refused atomic.Pointer[time.Time]
		s := run(t, &server{unary: func(context.Context, string) error {
			now := time.Now()
			if refused.CompareAndSwap(nil, &now) {
				return otlpstream.Busy("busy", time.Second).Err()
			}
			return nil
		}}, kind)
		e := newTestExporter(t, kind, s.addr, func(cfg *Config) { cfg.Mode = modeUnary })
		e.export(0, 1)
		eventually(t, e.dest.gate.hasClosed, "the gate closes")
		e.export(1, 10)
		require.Equal(t, int64(11), e.settled().Acked)
		for _, r := range s.seen()[1:] {
			require.GreaterOrEqual(t, r.at.Sub(*refused.Load()), 980*time.Millisecond)
		}
	})
}

func TestDelaysGrowToACap(t *testing.T) {
	cfg := createDefaultConfig().(*Config).Retry
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

	require.GreaterOrEqual(t, retryDelay(cfg, 1, 3*time.Second), 3*time.Second, "never sooner than the server asks")
	require.LessOrEqual(t, retryDelay(cfg, 100, time.Minute), 90*time.Second)

	g := gate{multiplier: 2, ceiling: 10 * time.Second}
	now := time.Unix(1000, 0)
	var delays []time.Duration
	for range 6 {
		g.hold(time.Second, now)
		require.Zero(t, g.hold(time.Second, now), "all streams of one moment count once")
		delays = append(delays, g.left(now))
		now = now.Add(g.left(now) + 1)
	}
	require.Equal(t, []time.Duration{1e9, 2e9, 4e9, 8e9, 10e9, 10e9}, delays)
	g.succeeded()
	g.hold(time.Second, now)
	require.Equal(t, time.Second, g.left(now))

	require.Zero(t, reconnect(cfg, 0))
	for failures := 1; failures < 100; failures++ {
		require.Positive(t, reconnect(cfg, failures))
		require.LessOrEqual(t, reconnect(cfg, failures), 2*cfg.MaxInterval)
	}
}

func TestEachRetryComesLaterThanTheLast(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &server{stream: func(p *peer) error {
			for i := 0; ; i++ {
				r, err := p.recv()
				if err != nil {
					return eof(err)
				}
				if i < 4 {
					_ = p.send(otlpstream.Response{ID: r.id, Code: otlpstream.FailedRetryable})
					continue
				}
				p.ack(r.id)
			}
		}}, kind)
		e := newTestExporter(t, kind, s.addr, func(cfg *Config) {
			cfg.Retry.InitialInterval, cfg.Retry.MaxInterval = 20*time.Millisecond, 80*time.Millisecond
			cfg.Retry.Multiplier, cfg.Retry.RandomizationFactor = 2, 0
		})
		e.export(0, 1)
		require.Equal(t, int64(1), e.settled().Acked)
		all := s.seen()
		require.Len(t, all, 5)
		for i, atLeast := range []int64{20, 40, 80, 80} {
			require.GreaterOrEqual(t, all[i+1].at.Sub(all[i].at).Milliseconds(), atLeast)
		}
	})
}
