// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/account"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/metadata"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/queue"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
)

// several configures these destinations, named a, b, c and so on.
func several(addrs ...string) func(*Config) {
	return func(cfg *Config) {
		for i, addr := range addrs {
			d := EndpointConfig{Name: string(rune('a' + i)), Client: cfg.Client}
			d.Client.Endpoint = addr
			cfg.Endpoints = append(cfg.Endpoints, d)
		}
		cfg.Client.Endpoint = ""
	}
}

func TestDestinationsDoNotHoldUpEachOther(t *testing.T) {
	t.Parallel()
	bothTransports(t, func(t *testing.T, kind string) {
		const n = 1000
		live, dead, slow := run(t, &testServer{stream: echo}, kind), run(t, &testServer{stream: mute}, kind), run(t, &testServer{stream: func(p *peer) error {
			for {
				r, err := p.recv()
				if err != nil {
					return eof(err)
				}
				time.Sleep(100 * time.Microsecond) // a slow server
				p.ack(r.id)
			}
		}}, kind)
		e := newTestExporter(t, kind, "", several(live.addr, dead.addr, slow.addr, "localhost:1"), func(cfg *Config) {
			cfg.Queue.Get().QueueSize = n / 2
			cfg.Shutdown.Timeout = 100 * time.Millisecond
		})
		for i := range n {
			require.NoError(t, e.ConsumeTraces(context.Background(), spans(batch(i), 1)), "it is taken for as long as any takes it")
			if i%250 == 0 {
				settled(t, e.dests[0])
				settled(t, e.dests[2])
			}
		}
		require.Equal(t, int64(n), settled(t, e.dests[0]).Acked)
		require.Equal(t, int64(n), settled(t, e.dests[2]).Acked)
		require.Len(t, live.seen(), n)
		for _, stuck := range []*destination{e.dests[1], e.dests[3]} {
			b := balanced(t, stuck)
			require.Equal(t, int64(n), b.Received)
			require.Equal(t, int64(n/2), b.Dropped[account.QueueFull])
			require.Equal(t, int64(n/2), b.Pending+b.Queued)
		}
		require.NoError(t, e.Shutdown(context.Background()))
		for _, stuck := range []*destination{e.dests[1], e.dests[3]} {
			require.Equal(t, int64(n/2), balanced(t, stuck).Dropped[account.Shutdown])
		}
	})
}

func TestWhatNoDestinationTakesIsTheCallers(t *testing.T) {
	dead := run(t, &testServer{stream: mute}, transport.GRPC)
	e := newTestExporter(t, transport.GRPC, "", several(dead.addr, dead.addr), impatient, func(cfg *Config) {
		cfg.Queue.Get().QueueSize = 3
	})
	e.export(0, 3)
	require.Error(t, e.ConsumeTraces(context.Background(), spans("over", 1)))
	for _, d := range e.dests {
		require.Equal(t, int64(3), balanced(t, d).Received)
	}
}

// large returns a batch of about the given size that does not compress.
func large(name string, size int) ptrace.Traces {
	noise := make([]byte, size)
	for i := range noise {
		noise[i] = byte(rand.IntN(256))
	}
	td := spans(name, 1)
	td.ResourceSpans().At(0).Resource().Attributes().PutEmptyBytes("noise").FromRaw(noise)
	return td
}

// backlog returns the memory that waiting requests take with the given number of unreachable destinations.
func backlog(t *testing.T, kind string, destinations int) int64 {
	const n, size = 400, 50_000
	addrs := make([]string, destinations)
	for i := range addrs {
		addrs[i] = "localhost:1"
	}
	heap := func() int64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.GC() // the second frees what pools discarded in the first
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc + stats.StackInuse)
	}
	before := heap()
	e := newTestExporter(t, kind, "", several(addrs...), impatient, func(cfg *Config) { cfg.InFlight.Requests = 16 })
	for i := range n {
		require.NoError(t, e.ConsumeTraces(context.Background(), large(batch(i), size)))
	}
	taken := heap() - before
	for _, d := range e.dests {
		b := balanced(t, d)
		require.Equal(t, int64(n), b.Queued)
	}
	require.NoError(t, e.Shutdown(context.Background()))
	require.Greater(t, taken, int64(n*size))
	return taken
}

func TestThreeDestinationsTakeTheMemoryOfOne(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		one, three := backlog(t, kind, 1), backlog(t, kind, 3)
		t.Logf("one destination takes %d KiB, three take %d KiB", one>>10, three>>10)
		require.Less(t, float64(three), 1.3*float64(one))
	})
}

func TestPayloadsAreMarshalledOnceForAllDestinations(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		a, b := run(t, &testServer{stream: echo}, kind), run(t, &testServer{}, kind)
		e := newTestExporter(t, kind, "", several(a.addr, b.addr))
		var mu sync.Mutex
		shared := make(map[*byte]int)
		for _, d := range e.dests {
			deliver := d.queue.Deliver
			d.queue.Deliver = func(ctx context.Context, r *queue.Request) error {
				mu.Lock()
				shared[&r.Data[0]]++
				mu.Unlock()
				return deliver(ctx, r)
			}
		}
		e.export(0, 20)
		for _, d := range e.dests {
			require.Equal(t, int64(20), settled(t, d).Acked, "streamed to one, unary to the other, which wants other bytes")
		}
		require.Len(t, shared, 20)
		for _, times := range shared {
			require.Equal(t, 2, times)
		}
		require.Equal(t, a.names(), b.names())
	})
}

func TestEachDestinationHasAQueueOnDisk(t *testing.T) {
	const n = 20
	live := run(t, &testServer{stream: echo}, transport.GRPC)
	away := &testServer{stream: echo, addr: freePort(t)}
	d := newDisks()
	configure := func() *Config {
		return testConfig(transport.GRPC, "", several(live.addr, away.addr), onDisk, impatient)
	}
	set := exportertest.NewNopSettings(metadata.Type)
	first := startExporter(t, set, d, configure())
	first.export(0, n)
	require.Equal(t, int64(n), settled(t, first.dests[0]).Acked)
	require.NoError(t, first.Shutdown(context.Background()))
	require.Equal(t, int64(n), balanced(t, first.dests[1]).Queued, "it waits on disk")
	require.Len(t, d.disks, 3, "one is where the names of destinations are stored")

	run(t, away, transport.GRPC)
	second := startExporter(t, set, d, configure())
	eventually(t, func() bool { return balanced(t, second.dests[1]).Acked == n }, "what was kept arrives")
	require.Zero(t, balanced(t, second.dests[0]).Received, "and is not sent again where it was acknowledged")
	require.Len(t, live.seen(), n)
}

func TestSnapshotTellsWhatEachDestinationDoes(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		live, old := run(t, &testServer{stream: echo}, kind), run(t, &testServer{}, kind)
		silent := run(t, &testServer{stream: mute}, kind)
		e := newTestExporter(t, kind, "", several(live.addr, old.addr, silent.addr), impatient)
		before := e.Snapshot()
		require.Equal(t, kind, before.Transport)
		require.Equal(t, "traces", before.Signal)
		e.export(0, 10)
		settled(t, e.dests[0])
		settled(t, e.dests[1])
		eventually(t, func() bool { return balanced(t, e.dests[2]).Pending == 10 }, "all is sent")
		s := e.Snapshot().Destinations
		require.Len(t, s, 3)
		require.Equal(t, "a", s[0].Name)
		require.Equal(t, live.addr, s[0].Endpoint)
		require.Equal(t, Items{Received: 10, Acked: 10, Dropped: map[string]int64{}}, s[0].Items)
		require.True(t, s[0].Streaming)
		require.Equal(t, 1, s[0].Open)
		require.Equal(t, int64(1), s[0].Opened)
		require.Equal(t, 10, s[0].AckLatency.Count)
		require.Positive(t, s[0].AckLatency.P50)
		require.GreaterOrEqual(t, s[0].AckLatency.P99, s[0].AckLatency.P50)
		require.False(t, s[1].Streaming)
		require.Equal(t, int64(10), s[1].Items.Acked)
		require.Equal(t, int64(10), s[2].InFlightRequests)
		require.Equal(t, int64(10*len(testRequest(t, batch(0)))), s[2].InFlightBytes)

		require.NoError(t, e.Shutdown(context.Background()))
		s = e.Snapshot().Destinations
		closed := s[0].Closed
		require.Equal(t, int64(1), closed["done"]+closed["broken"], "by force, where the machine takes more than a moment")
		require.Equal(t, map[string]int64{"shutdown": 10}, s[2].Items.Dropped)
		require.Zero(t, s[0].Open+s[0].Draining)
		require.Zero(t, s[2].InFlightRequests)
	})
}
