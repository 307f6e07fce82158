// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/exporter/exportertest"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/account"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/metadata"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// keeper is a server that keeps order, or claims to. It responds late and out of order, and records how many requests
// were unanswered.
type keeper struct {
	mu               sync.Mutex
	unanswered, most int
	perStream        int // requests after which it ends a stream; 0 means never
}

func (k *keeper) serve(p *peer) error {
	var answers sync.WaitGroup
	defer answers.Wait()
	for n := 0; k.perStream == 0 || n < k.perStream; n++ {
		r, err := p.recv()
		if err != nil {
			return eof(err)
		}
		k.mu.Lock()
		k.unanswered++
		k.most = max(k.most, k.unanswered)
		k.mu.Unlock()
		answers.Go(func() {
			time.Sleep(time.Duration(rand.IntN(int(2 * time.Millisecond))))
			k.mu.Lock()
			k.unanswered--
			k.mu.Unlock()
			p.ack(r.id)
		})
	}
	return p.send(otlpstream.Response{Drain: true})
}

func inOrder(cfg *Config) { cfg.Ordered, cfg.Streams = true, 4 }

// firsts returns the names of requests in the order of their first attempts.
func (s *testServer) firsts() (names []string) {
	seen := map[string]bool{}
	for _, r := range s.seen() {
		if !seen[r.name] {
			names = append(names, r.name)
		}
		seen[r.name] = true
	}
	return names
}

func batches(n int) (names []string) {
	for i := range n {
		names = append(names, batch(i))
	}
	return names
}

var keepsOrder = []string{otlpstream.HeaderCaps, otlpstream.CapOrdered.String()}

func TestRequestsAreSentInOrder(t *testing.T) {
	const n = 300
	bothTransports(t, func(t *testing.T, kind string) {
		for name, c := range map[string]struct {
			header  []string
			change  func(*Config)
			without bool // no streams
			most    int  // unanswered at a time
		}{
			"to a server that keeps it":        {header: keepsOrder, change: func(*Config) {}, most: 128},
			"through streams that come and go": {header: keepsOrder, change: func(cfg *Config) { cfg.Rebalance.Requests = 10 }, most: 128},
			"to one that does not":             {change: func(*Config) {}, most: 1},
			"to one without streams":           {change: func(*Config) {}, without: true},
			"without a queue":                  {header: keepsOrder, change: noQueue, most: 1},
			"of several tenants":               {header: keepsOrder, change: byTenant(2), most: 128},
		} {
			t.Run(name, func(t *testing.T) {
				k := &keeper{}
				s := &testServer{header: c.header}
				if !c.without {
					s.stream = k.serve
				}
				run(t, s, kind)
				e := newTestExporter(t, kind, s.addr, inOrder, c.change)
				for i := range n {
					ctx, _ := originNamed("a")
					eventually(t, func() bool { return e.ConsumeTraces(ctx, spans(batch(i), 1)) == nil }, "there is room")
				}
				require.Equal(t, int64(n), e.settled().Acked)
				require.Equal(t, batches(n), s.firsts())
				require.LessOrEqual(t, k.most, c.most)
				if c.most > 1 {
					require.Greater(t, k.most, 1, "they do not wait for each other's answers")
				}
			})
		}
	})
}

func TestAQueueOnDiskIsSentInOrder(t *testing.T) {
	const n, window = 200, 5
	bothTransports(t, func(t *testing.T, kind string) {
		silent := run(t, &testServer{stream: mute, header: keepsOrder}, kind)
		d := &disk{data: map[string][]byte{}}
		set := exportertest.NewNopSettings(metadata.Type)
		first := startExporter(t, set, d, testConfig(kind, silent.addr, onDisk, impatient, inOrder, func(cfg *Config) { cfg.InFlight.Requests = window }))
		first.export(0, n)
		eventually(t, func() bool { return len(silent.seen()) == window }, "the window is full")
		require.Equal(t, batches(window), silent.firsts())
		require.NoError(t, first.Shutdown(context.Background()))

		s := run(t, &testServer{stream: (&keeper{}).serve, header: keepsOrder}, kind)
		second := startExporter(t, set, d, testConfig(kind, s.addr, onDisk, inOrder))
		eventually(t, func() bool { return second.balanced().Acked == n }, "all is delivered")
		require.ElementsMatch(t, batches(n), s.firsts())
		var waited []string
		behind := map[string]bool{}
		for _, name := range batches(window) {
			behind[name] = true
		}
		for _, name := range s.firsts() {
			if !behind[name] {
				waited = append(waited, name)
			}
		}
		require.Equal(t, batches(n)[window:], waited, "what had not been sent is in order")
	})
}

// A request that is given up does not delay those after it.
func TestOrderOutlivesRequestsThatAreGivenUp(t *testing.T) {
	s := run(t, &testServer{header: keepsOrder, stream: func(p *peer) error {
		for {
			r, err := p.recv()
			if err != nil {
				return eof(err)
			}
			if r.id%3 == 0 {
				_ = p.send(otlpstream.Response{ID: r.id, Code: otlpstream.FailedNoneRetryable, Message: "no"})
				continue
			}
			p.ack(r.id)
		}
	}}, transport.GRPC)
	e := newTestExporter(t, transport.GRPC, s.addr, inOrder, func(cfg *Config) { cfg.Queue.Get().QueueSize = 5 })
	const n = 99
	e.export(0, n) // the queue refuses some at first
	b := e.settled()
	require.Equal(t, int64(n/3), b.Dropped[account.Rejected])
	require.Equal(t, int64(n-n/3), b.Acked)
	require.Equal(t, batches(n), s.firsts())
}
