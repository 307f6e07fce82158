// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// bulky exports n batches of one span and 100 kB each.
func (e *testExporter) bulky(n int) {
	for i := range n {
		require.NoError(e.tb, e.ConsumeTraces(e.tb.Context(), spans(batch(i)+strings.Repeat("x", 100_000), 1)))
	}
}

func TestASlowLinkLosesNothing(t *testing.T) {
	t.Parallel()
	bothTransports(t, func(t *testing.T, transport string) {
		t.Parallel() // most of it is waiting
		const n = 40
		s := run(t, &server{stream: echo}, transport)
		p := newProxy(t, s.addr, func(p *proxy) { p.rate = 500_000 })
		e := newTestExporter(t, transport, p.addr, func(cfg *Config) {
			cfg.Client.Compression = "none"
			cfg.InFlight.Requests = 32 // which the link takes six seconds for
			cfg.AckTimeout = 2 * time.Second
			cfg.Rebalance.Requests = 25
			if transport == transportGRPC {
				cfg.Rebalance.Requests = 6 // streams that share a connection wait for each other
			}
			keepalive := cfg.Client.Keepalive.Get()
			keepalive.Time, keepalive.Timeout = time.Second, time.Second
			if transport == transportWebSocket {
				keepalive.Timeout = patience // a new connection waits for all that is under way on the old one
			}
		})
		e.bulky(n)
		b := e.settled()
		require.Equal(t, int64(n), b.acked, "%+v", b)
		require.Zero(t, e.dest.tally.closed[endBroken].Load(), "no stream is cut")
		require.Len(t, s.seen(), n, "so nothing is sent twice")
		require.Zero(t, e.dest.tally.unexpected.Load())
	})
}

func TestAnAnswerThatNeverComesIsNoticedOnABusyStream(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		s := run(t, &server{stream: func(p *peer) error {
			for {
				r, err := p.recv()
				if err != nil {
					return eof(err)
				}
				if r.name != batch(3) {
					p.ack(r.id)
				}
			}
		}}, transport)
		e := newTestExporter(t, transport, s.addr, func(cfg *Config) {
			cfg.AckTimeout = time.Second
			cfg.Rebalance.Requests = 0
		})
		e.export(0, 4)
		next := 4
		eventually(t, func() bool {
			e.export(next, 1)
			next++
			return e.balanced().dropped[dropAckTimeout] > 0
		}, "it is given up while others are answered")
		b := e.settled()
		require.Equal(t, int64(1), b.dropped[dropAckTimeout])
		require.Equal(t, int64(next-1), b.acked)
		streams, _ := s.opened()
		require.Equal(t, 1, streams, "the stream has done nothing wrong")
	})
}

func TestAStuckStreamIsReplacedWhileOthersWork(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		s := run(t, &server{stream: func(p *peer) error {
			if p.number == 0 {
				return mute(p)
			}
			return echo(p)
		}}, transport)
		e := newTestExporter(t, transport, s.addr, func(cfg *Config) {
			cfg.AckTimeout = time.Second
			cfg.Streams = 2
			cfg.Rebalance.Requests = 0
			cfg.Rebalance.Timeout = 0
		})
		next := 0
		eventually(t, func() bool {
			if e.balanced().pending < 64 {
				e.export(next, 1)
				next++
			}
			streams, open := s.opened()
			return streams == 3 && open == 2
		}, "another stream is in its place")
		b := e.settled()
		require.Positive(t, b.dropped[dropAckTimeout])
		require.Equal(t, int64(next), b.acked+b.dropped[dropAckTimeout])
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
