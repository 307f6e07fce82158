// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/server"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// The tests in this package are named after the rows of the specification's requirements for clients.

func TestBothModesDeliver(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		for _, mode := range []string{server.Stream, server.Unary, server.Auto} {
			t.Run(mode, func(t *testing.T) {
				s := run(t, &testServer{stream: echo}, kind)
				e := newTestExporter(t, kind, s.addr, func(cfg *Config) { cfg.Mode = mode })
				e.export(0, 50)
				require.Equal(t, int64(50), e.settled().Acked)
				require.Len(t, s.names(), 50)
				streams, _ := s.opened()
				require.Equal(t, mode == server.Unary, streams == 0)
			})
		}
	})
}

func TestOneUnaryRequestAtATime(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		var now, most atomic.Int64
		s := run(t, &testServer{unary: func(context.Context, string) error {
			if n := now.Add(1); n > 1 {
				most.Store(n)
			}
			defer now.Add(-1)
			time.Sleep(time.Millisecond) // a slow server, so that requests can overlap
			return nil
		}}, kind)
		e := newTestExporter(t, kind, s.addr, func(cfg *Config) {
			cfg.Mode = server.Unary
			cfg.InFlight.Requests = 1
		})
		e.export(0, 20)
		require.Equal(t, int64(20), e.settled().Acked)
		require.Zero(t, most.Load(), "so many at a time")
		for _, r := range s.seen() {
			require.Zero(t, r.id, "the ID is not used")
		}
	})
}

func TestRequestsAreSentWithoutWaitingForAnswers(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		const n = 40
		s := run(t, &testServer{stream: func(p *peer) error {
			var ids []uint64
			for len(ids) < n {
				r, err := p.recv()
				if err != nil {
					return err
				}
				ids = append(ids, r.id)
			}
			for _, id := range ids {
				p.ack(id)
			}
			return echo(p)
		}}, kind)
		e := newTestExporter(t, kind, s.addr)
		e.export(0, n)
		require.Equal(t, int64(n), e.settled().Acked)
	})
}

func TestIDsCountFromOneOnEachSlot(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: echo}, kind)
		e := newTestExporter(t, kind, s.addr, func(cfg *Config) { cfg.Rebalance.Requests = 9 })
		e.export(0, 100)
		e.settled()
		streams, _ := s.opened()
		require.Greater(t, streams, 5)
		seen := s.seen()
		slices.SortFunc(seen, func(a, b received) int { return int(a.id) - int(b.id) })
		for i, r := range seen {
			require.Equal(t, uint64(i+1), r.id, "across all streams of the slot")
		}
	})
}

func TestWhatIsUnacknowledgedIsBounded(t *testing.T) {
	data := int64(len(testRequest(t, batch(0))))
	for name, limit := range map[string]func(*Config){
		"requests": func(cfg *Config) { cfg.InFlight.Requests = 5 },
		"bytes":    func(cfg *Config) { cfg.InFlight.Bytes = 5*data + data/2 },
		"credit":   func(*Config) {},
	} {
		t.Run(name, func(t *testing.T) {
			bothTransports(t, func(t *testing.T, kind string) {
				limits := otlpstream.Limits{}
				if name == "credit" {
					limits.Requests = 5
				}
				var answer atomic.Bool
				s := run(t, &testServer{header: limits.Headers(), stream: func(p *peer) error {
					var ids []uint64
					for {
						r, err := p.recv()
						if err != nil {
							return eof(err)
						}
						if ids = append(ids, r.id); answer.Load() {
							for _, id := range ids {
								p.ack(id)
							}
							ids = nil
						}
					}
				}}, kind)
				e := newTestExporter(t, kind, s.addr, limit, impatient, func(cfg *Config) {
					cfg.Queue.Get().QueueSize = 20
				})
				if name == "credit" {
					// The window is known only after a response of the server.
					answer.Store(true)
					e.export(100, 1)
					e.settled()
					answer.Store(false)
				}
				before := len(s.seen())
				e.export(0, 8)
				eventually(t, func() bool { return len(s.seen()) == before+5 }, "the window is full")
				require.Never(t, func() bool { return len(s.seen()) > before+5 }, 50*time.Millisecond, time.Millisecond)
				b := e.balanced()
				require.Equal(t, int64(5), b.Pending)
				require.Equal(t, int64(3), b.Queued)
				require.Error(t, func() (err error) {
					for i := 0; i < 30 && err == nil; i++ {
						err = e.ConsumeTraces(context.Background(), spans("over", 1))
					}
					return err
				}(), "the queue is full at last")
				e.balanced()
			})
		})
	}
}

func TestNothingIsAskedBeforeTheFirstRequest(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: echo, quiet: true}, kind)
		e := newTestExporter(t, kind, s.addr)
		e.export(0, 1)
		e.settled()
		require.Len(t, s.seen(), 1)
		require.Equal(t, uint64(1), s.seen()[0].id)
	})
}

func TestCapabilitiesAreAnnouncedAndAbsenceIsFine(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: echo}, kind)
		e := newTestExporter(t, kind, s.addr)
		e.export(0, 10)
		e.settled()
		require.Equal(t, []string{otlpstream.AllCaps.String()}, s.caps)
	})
}
