// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/server"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// throttled reports whether the server has asked for a pause.
func (e *testExporter) throttled() bool { return e.dest.tally.ThrottledFor.Load() > 0 }

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
				s := run(t, &testServer{stream: func(p *peer) error {
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
				eventually(t, e.throttled, "the gate closes")
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
		s := run(t, &testServer{unary: func(context.Context, string) error {
			now := time.Now()
			if refused.CompareAndSwap(nil, &now) {
				return otlpstream.Busy("busy", time.Second).Err()
			}
			return nil
		}}, kind)
		e := newTestExporter(t, kind, s.addr, func(cfg *Config) { cfg.Mode = server.Unary })
		e.export(0, 1)
		eventually(t, e.throttled, "the gate closes")
		e.export(1, 10)
		require.Equal(t, int64(11), e.settled().Acked)
		for _, r := range s.seen()[1:] {
			require.GreaterOrEqual(t, r.at.Sub(*refused.Load()), 980*time.Millisecond)
		}
	})
}

func TestEachRetryComesLaterThanTheLast(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: func(p *peer) error {
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
