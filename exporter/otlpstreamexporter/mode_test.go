// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/server"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
)

func TestUnimplementedFallsBackToUnaryAndProbesAgain(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		old := run(t, &testServer{}, kind)
		e := newTestExporter(t, kind, old.addr, func(cfg *Config) { cfg.ReprobeInterval = 100 * time.Millisecond })
		e.export(0, 50)
		require.Equal(t, int64(50), e.settled().Acked)
		require.Len(t, old.names(), 50)
		require.Len(t, old.seen(), 50, "what the refused stream had was not lost, nor doubled")
		require.False(t, e.dest.server.Streaming())

		old.stop()
		upgraded := &testServer{stream: echo, addr: old.addr}
		upgraded.start(t, kind)
		i := 50
		eventually(t, func() bool {
			e.export(i, 1)
			i++
			return e.dest.server.Streaming()
		}, "it streams")
		require.Equal(t, int64(i), e.settled().Acked)
	})
}

func TestUnavailableDoesNotFallBack(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: func(p *peer) error {
			if p.number < 5 {
				return status.Error(codes.Unavailable, "not yet")
			}
			return echo(p)
		}}, kind)
		e := newTestExporter(t, kind, s.addr)
		e.export(0, 10)
		require.Equal(t, int64(10), e.settled().Acked)
		for _, r := range s.seen() {
			require.NotEqual(t, -1, r.stream)
		}
	})
}

func TestUnaryStatusesDecide(t *testing.T) {
	allTransports(t, func(t *testing.T, kind string) {
		var calls atomic.Int64
		s := run(t, &testServer{unary: func(_ context.Context, name string) error {
			calls.Add(1)
			if name == "bad" {
				return status.Error(codes.InvalidArgument, "bad")
			}
			if calls.Load()%2 == 1 {
				return status.Error(codes.Unavailable, "later")
			}
			return nil
		}}, kind)
		e := newTestExporter(t, kind, s.addr, noQueue, func(cfg *Config) { cfg.Mode = server.Unary })
		require.NoError(t, e.ConsumeTraces(context.Background(), spans("good", 1)))
		require.Equal(t, int64(2), calls.Load())
		require.True(t, consumererror.IsPermanent(e.ConsumeTraces(context.Background(), spans("bad", 1))))
		require.Equal(t, int64(3), calls.Load())
	})
}

// An expired token will be renewed. A token from a client is the client's responsibility.
func TestUnaryRequestsOutliveAnExpiredToken(t *testing.T) {
	allTransports(t, func(t *testing.T, kind string) {
		var calls atomic.Int64
		s := run(t, &testServer{unary: func(_ context.Context, name string) error {
			if calls.Add(1) <= 3 || name == "client's" {
				return status.Error(codes.Unauthenticated, "the token has expired")
			}
			return nil
		}}, kind)
		e := newTestExporter(t, kind, s.addr, noQueue, func(cfg *Config) { cfg.Mode = server.Unary })
		require.NoError(t, e.ConsumeTraces(context.Background(), spans("good", 1)))
		require.Equal(t, int64(4), calls.Load())
		ctx := client.NewContext(context.Background(), client.Info{Metadata: client.NewMetadata(map[string][]string{"token": {"old"}})})
		require.True(t, consumererror.IsPermanent(e.ConsumeTraces(ctx, spans("client's", 1))))
		require.Equal(t, int64(5), calls.Load())
	})
}

func TestAMixOfOldAndNewServersBehindABalancerLosesNothing(t *testing.T) {
	// Each stream may reach either server; the address stays the same.
	turn := 0
	s := run(t, &testServer{stream: func(p *peer) error {
		p.testServer.mu.Lock()
		turn++
		old := turn > 1 && turn%2 == 0
		p.testServer.mu.Unlock()
		if old {
			return status.Error(codes.Unimplemented, "unknown service")
		}
		return echo(p)
	}}, transport.GRPC)
	e := newTestExporter(t, transport.GRPC, s.addr, func(cfg *Config) { cfg.Rebalance.Requests = 10 })
	e.export(0, 300)
	require.Equal(t, int64(300), e.settled().Acked)
	require.Len(t, s.names(), 300)
	require.True(t, e.dest.server.Streaming(), "one server that refuses is no reason to stop streaming")
}
