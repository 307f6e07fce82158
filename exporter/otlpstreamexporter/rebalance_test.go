// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/metadata"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/server"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/tally"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

func TestStreamsAreReopenedAtTheirAge(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: echo}, kind)
		e := newTestExporter(t, kind, s.addr, func(cfg *Config) { cfg.Rebalance.Timeout = 20 * time.Millisecond })
		i := 0
		eventually(t, func() bool {
			e.export(i, 1)
			i++
			streams, _ := s.opened()
			return streams >= 5
		}, "streams come and go")
		b := e.settled()
		require.Equal(t, int64(i), b.Acked)
		require.Len(t, s.seen(), i, "and nothing was resent")
		eventually(t, func() bool { _, open := s.opened(); return open <= 1 }, "the old ones are closed")
	})
}

func TestAnIdleStreamKeepsNoPlace(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: echo}, kind)
		e := newTestExporter(t, kind, s.addr, func(cfg *Config) { cfg.Rebalance.Timeout = 20 * time.Millisecond })
		e.export(0, 1)
		e.settled()
		eventually(t, func() bool {
			e.expire(0)
			_, open := s.opened()
			return open == 0
		}, "at its age it is closed")
		eventually(t, func() bool { return e.dest.tally.Closed[tally.Done].Load() == 1 }, "and counted, once the server's end has come back")
		streams, _ := s.opened()
		require.Equal(t, 1, streams, "and has no successor")
		e.export(1, 1)
		require.Equal(t, int64(2), e.settled().Acked)
	})
}

func TestStreamsAreReopenedAfterMoreThanSoManyRequests(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: echo}, kind)
		e := newTestExporter(t, kind, s.addr, func(cfg *Config) { cfg.Rebalance.Requests = 10 })
		e.export(0, 55)
		e.settled()
		perStream := map[int]int{}
		for _, r := range s.seen() {
			perStream[r.stream]++
		}
		require.Equal(t, map[int]int{0: 11, 1: 11, 2: 11, 3: 11, 4: 11}, perStream)
		eventually(t, func() bool { return e.dest.tally.Closed[tally.Done].Load() == 5 }, "and each is closed")
	})
}

func TestStreamsAreReopenedAfterMoreThanSoManyBytes(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: echo}, kind)
		e := newTestExporter(t, kind, s.addr, func(cfg *Config) { cfg.Rebalance.Bytes = 10 * int64(len(testRequest(t, batch(10)))) })
		e.export(10, 55)
		e.settled()
		perStream := map[int]int{}
		for _, r := range s.seen() {
			perStream[r.stream]++
		}
		require.Equal(t, map[int]int{0: 11, 1: 11, 2: 11, 3: 11, 4: 11}, perStream)
	})
}

// A server before its shutdown, or a misconfigured proxy, may end each stream immediately.
func TestAServerThatDrainsEachStreamAtOnceIsLeftInPeace(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		var well atomic.Bool
		const enough = 20
		var mu sync.Mutex
		var opened []time.Time
		s := run(t, &testServer{stream: func(p *peer) error {
			if well.Load() {
				return echo(p)
			}
			mu.Lock()
			opened = append(opened, time.Now())
			mu.Unlock()
			if err := p.send(otlpstream.Response{Drain: true}); err != nil {
				return err
			}
			for {
				if _, err := p.recv(); err != nil {
					return eof(err)
				}
			}
		}}, kind)
		core, logs := observer.New(zap.InfoLevel)
		set := exportertest.NewNopSettings(metadata.Type)
		set.Logger = zap.New(core)
		e := startExporter(t, set, componenttest.NewNopHost(), testConfig(kind, s.addr))
		e.export(0, 3)
		eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return len(opened) >= enough }, "it is tried again and again")
		mu.Lock()
		took := opened[enough-1].Sub(opened[0])
		mu.Unlock()
		// From the third on, the pauses are at least half of the longest interval.
		require.Greater(t, took, (enough-4)*e.cfg.Retry.MaxInterval/2, "with pauses between")
		eventually(t, func() bool { return logs.FilterMessageSnippet("does not answer").Len() == 1 }, "and the log says so, once")
		well.Store(true)
		require.Equal(t, int64(3), e.settled().Acked)
		require.True(t, e.dest.snapshot().Healthy)
		require.Len(t, s.names(), 3)
	})
}

func TestOldStreamsAreReadToTheirEnd(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		release := make(chan struct{})
		s := run(t, &testServer{stream: func(p *peer) error {
			first, err := p.recv()
			ids := []uint64{first.id}
			for err == nil {
				if first.id != 1 {
					p.ack(ids[len(ids)-1])
					ids = ids[:0]
				}
				var r received
				r, err = p.recv()
				ids = append(ids, r.id)
			}
			if first.id == 1 {
				<-release
				for _, id := range ids[:len(ids)-1] {
					p.ack(id)
				}
			}
			return eof(err)
		}}, kind)
		finish := sync.OnceFunc(func() { close(release) })
		t.Cleanup(finish) // otherwise the server would never stop
		e := newTestExporter(t, kind, s.addr, func(cfg *Config) { cfg.Rebalance.Requests = 10 })
		e.export(0, 20)
		eventually(t, func() bool { return e.balanced().Acked == 9 }, "the new stream works")
		eventually(t, func() bool { _, open := s.opened(); return open == 2 }, "while the old one is open")
		finish()
		require.Equal(t, int64(20), e.settled().Acked)
		require.Len(t, s.seen(), 20, "nothing was resent")
	})
}

func TestAServerThatDrainsGetsNothingTwice(t *testing.T) {
	t.Parallel()
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: func(p *peer) error {
			var ids []uint64
			for i := 0; ; i++ {
				r, err := p.recv()
				if err != nil {
					for _, id := range ids {
						p.ack(id)
					}
					return eof(err)
				}
				if i == 10 {
					_ = p.send(otlpstream.Response{Drain: true})
				}
				if ids = append(ids, r.id); i < 5 {
					p.ack(r.id)
					ids = ids[:len(ids)-1]
				}
			}
		}}, kind)
		e := newTestExporter(t, kind, s.addr, impatient)
		e.export(0, 300)
		// The last stream withholds its responses until the exporter ends it.
		eventually(t, func() bool { return len(s.seen()) == 300 }, "all is sent")
		require.NoError(t, e.Shutdown(context.Background()))
		require.Len(t, s.names(), 300)
		require.Len(t, s.seen(), 300, "nothing was resent")
		streams, _ := s.opened()
		require.Greater(t, streams, 1)
	})
}

func TestABalancerOfConnectionsGetsToPlaceEachStream(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		servers := []*testServer{run(t, &testServer{stream: echo}, kind), run(t, &testServer{stream: echo}, kind)}
		var connections atomic.Int64
		balancer := newProxy(t, "", func(p *proxy) {
			p.pick = func() string { return servers[connections.Add(1)%2].addr }
		})
		e := newTestExporter(t, kind, balancer.addr, func(cfg *Config) {
			cfg.Rebalance.Scope = scopeConnection
			cfg.Rebalance.Requests = 10
		})
		e.export(0, 110)
		require.Equal(t, int64(110), e.settled().Acked)
		others := map[string]int64{transport.GRPC: 1}[kind] // for unary requests
		require.Equal(t, 10+others, connections.Load(), "one for each stream")
		require.Len(t, servers[0].seen(), 55)
		require.Len(t, servers[1].seen(), 55)
		require.NoError(t, e.Shutdown(context.Background()))
		eventually(t, func() bool {
			balancer.mu.Lock()
			defer balancer.mu.Unlock()
			return len(balancer.conns) == 0
		}, "all are closed")
	})
}

// With this scope, streams have connections of their own; unary requests share one, for as long as a stream would last.
func TestUnaryRequestsShareAConnection(t *testing.T) {
	s := run(t, &testServer{}, transport.GRPC)
	var connections atomic.Int64
	balancer := newProxy(t, "", func(p *proxy) {
		p.pick = func() string { connections.Add(1); return s.addr }
	})
	e := newTestExporter(t, transport.GRPC, balancer.addr, func(cfg *Config) {
		cfg.Rebalance.Scope = scopeConnection
		cfg.Rebalance.Timeout = time.Hour
	})
	e.export(0, 1)
	e.settled()
	first := connections.Load() // including that of the stream that the server does not support
	e.export(1, 100)
	require.Equal(t, int64(101), e.settled().Acked)
	require.Equal(t, first, connections.Load())
	require.NoError(t, e.Shutdown(context.Background()))

	e = newTestExporter(t, transport.GRPC, balancer.addr, func(cfg *Config) {
		cfg.Rebalance.Scope = scopeConnection
		cfg.Mode = server.Unary
		cfg.Rebalance.Timeout = 20 * time.Millisecond
	})
	before, i := connections.Load(), 0
	eventually(t, func() bool {
		e.export(i, 1)
		i++
		e.settled()
		return connections.Load() >= before+3
	}, "it is dialled anew in time")
	require.NoError(t, e.Shutdown(context.Background()))
	eventually(t, func() bool {
		balancer.mu.Lock()
		defer balancer.mu.Unlock()
		return len(balancer.conns) == 0
	}, "all are closed")
}
