// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.uber.org/zap/zaptest"

	exportermetadata "github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/metadata"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/tally"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
)

// bulky exports n batches of one span and 100 kB each.
func (e *testExporter) bulky(n int) {
	for i := range n {
		require.NoError(e.tb, e.ConsumeTraces(e.tb.Context(), spans(batch(i)+strings.Repeat("x", 100_000), 1)))
	}
}

func TestASlowLinkLosesNothing(t *testing.T) {
	t.Parallel()
	bothTransports(t, func(t *testing.T, kind string) {
		t.Parallel() // most of it is waiting
		// If the machine pauses for longer than the link takes for a request, the machine is too slow. All times are
		// longer then.
		const slowest = 8
		want := slowLink{acked: slowLinkRequests, seen: slowLinkRequests} // no stream is cut, so nothing is sent twice
		for slower := 1; ; slower *= 2 {
			stalled := stalls()
			got := overASlowLink(t, kind, slower)
			if s := stalled(); got != want && s > time.Duration(slower)*200*time.Millisecond && slower < slowest {
				t.Logf("the machine stood still for %v: %+v", s, got)
				continue
			}
			require.Equal(t, want, got)
			return
		}
	})
}

// stalls measures the longest pause of the process until the returned function is called.
func stalls() (longest func() time.Duration) {
	most := time.Duration(0)
	over := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			begun := time.Now()
			select {
			case <-over:
				return
			case <-time.After(time.Millisecond):
				most = max(most, time.Since(begun))
			}
		}
	})
	return func() time.Duration {
		close(over)
		watching.Wait()
		return most
	}
}

const slowLinkRequests = 40

// slowLink is the result of the requests: how many are acknowledged, how many the server receives, how many streams are
// cut, and how many responses are unexpected.
type slowLink struct{ acked, seen, cut, unexpected int }

// overASlowLink sends more at a time than a slow link can carry within the time limits.
func overASlowLink(t *testing.T, kind string, slower int) slowLink {
	s := run(t, &testServer{stream: echo}, kind)
	p := newProxy(t, s.addr, func(p *proxy) { p.rate = 500_000 / slower })
	set := exportertest.NewNopSettings(exportermetadata.Type)
	set.Logger = zaptest.NewLogger(t) // logs why a stream is cut
	e := startExporter(t, set, componenttest.NewNopHost(), testConfig(kind, p.addr, func(cfg *Config) {
		cfg.Client.Compression = "none"
		cfg.InFlight.Requests = 32 // for which the link takes six seconds
		cfg.AckTimeout = time.Duration(slower) * 2 * time.Second
		cfg.Rebalance.Requests = 25
		if kind == transport.GRPC {
			cfg.Rebalance.Requests = 6 // streams that share a connection wait for each other
		}
		keepalive := cfg.Client.Keepalive.Get()
		keepalive.Time, keepalive.Timeout = time.Duration(slower)*time.Second, time.Duration(slower)*time.Second
		if kind == transport.WebSocket {
			keepalive.Timeout = time.Duration(slower) * patience // a new connection waits for everything in progress on the old one
		}
	}))
	e.bulky(slowLinkRequests)
	b := e.settled()
	return slowLink{
		acked: int(b.Acked), seen: len(s.seen()),
		cut: int(e.dest.tally.Closed[tally.Broken].Load() + e.dest.tally.Closed[tally.Silent].Load()), unexpected: int(e.dest.tally.Unexpected.Load()),
	}
}

func TestAnAnswerThatNeverComesIsNoticedOnABusyStream(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: forgets(1)}, kind)
		e := newTestExporter(t, kind, s.addr)
		half := e.cfg.AckTimeout / 2
		e.export(0, 4)
		eventually(t, func() bool { return e.balanced().Acked == 3 }, "the others are answered")
		e.export(4, 1)
		eventually(t, func() bool { return e.balanced().Acked == 4 }, "so is one that is sent later")
		for i, at := range []time.Duration{0, half, 3 * half} {
			require.Equal(t, 1, s.names()[batch(3)])
			e.export(5+i, 1)
			eventually(t, func() bool { return e.balanced().Acked == int64(5+i) }, "others are answered all the time")
			e.expire(at)
		}
		require.Equal(t, int64(8), e.settled().Acked)
		require.Equal(t, 2, s.names()[batch(3)])
		streams, _ := s.opened()
		require.Equal(t, 1, streams, "the stream has done nothing wrong")
	})
}

func TestAStuckStreamIsReplacedWhileOthersWork(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: func(p *peer) error {
			if p.number == 0 {
				return mute(p)
			}
			return echo(p)
		}}, kind)
		e := newTestExporter(t, kind, s.addr, func(cfg *Config) {
			cfg.AckTimeout = time.Second
			cfg.Streams = 2
			cfg.Rebalance.Requests = 0
		})
		next := 0
		eventually(t, func() bool {
			if b := e.balanced(); b.Queued+b.Pending < 64 {
				e.export(next, 1)
				next++
			}
			streams, open := s.opened()
			return streams >= 3 && open == 2 // more if all responses are late
		}, "another stream is in its place")
		require.Equal(t, int64(next), e.settled().Acked, "what the stuck one carried comes over another")
		require.Positive(t, e.dest.tally.Closed[tally.Silent].Load())
	})
}

func TestTheTimeOfARequestRunsWhileNothingIsAnswered(t *testing.T) {
	start := time.Now()
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	for name, c := range map[string]struct {
		stream, destination [][2]int // when a request was sent, and answered
		due                 int
	}{
		"nothing is answered": {due: 10},
		"what was sent before is answered": {
			stream: [][2]int{{8, 12}}, destination: [][2]int{{8, 12}}, due: 12,
		},
		"what was sent before is answered on another stream": {
			destination: [][2]int{{8, 12}}, due: 12,
		},
		"what was sent after is answered": {
			stream: [][2]int{{11, 12}, {9, 15}}, destination: [][2]int{{11, 12}, {9, 15}}, due: 20,
		},
		"what was sent after is answered on another stream": {
			destination: [][2]int{{11, 12}}, due: 20,
		},
		"another stream is faster": {
			stream: [][2]int{{8, 25}}, destination: [][2]int{{11, 12}, {8, 25}}, due: 25,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var stream, destination progress
			for _, a := range c.stream {
				stream.answered(at(a[0]), at(a[1]))
			}
			for _, a := range c.destination {
				destination.answered(at(a[0]), at(a[1]))
			}
			var o overtakings
			require.Equal(t, at(c.due), o.dueSince(at(10), at(20), &stream, &destination))
			require.Equal(t, at(c.due), o.dueSince(at(10), at(30), &stream, &destination), "it is noticed once")
		})
	}
}
