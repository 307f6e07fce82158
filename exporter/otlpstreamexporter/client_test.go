// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// The names of these tests are the rows of the specification's requirements on clients.

func noQueue(cfg *Config) { cfg.Queue = configoptional.None[QueueConfig]() }

func impatient(cfg *Config) { cfg.Shutdown.WaitForAcks = false }

func TestC01BothModesDeliver(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		for _, mode := range []string{modeStream, modeUnary, modeAuto} {
			t.Run(mode, func(t *testing.T) {
				s := run(t, &server{stream: echo}, transport)
				e := newTestExporter(t, transport, s.addr, func(cfg *Config) { cfg.Mode = mode })
				e.export(0, 50)
				require.Equal(t, int64(50), e.settled().acked)
				require.Len(t, s.names(), 50)
				streams, _ := s.opened()
				require.Equal(t, mode == modeUnary, streams == 0)
			})
		}
	})
}

func TestC02C03C04OneUnaryRequestAtATime(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		var now, most atomic.Int64
		s := run(t, &server{unary: func(context.Context, string) error {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			time.Sleep(time.Millisecond) // a server that takes its time, for requests to overlap if they can
			return nil
		}}, transport)
		e := newTestExporter(t, transport, s.addr, func(cfg *Config) {
			cfg.Mode = modeUnary
			cfg.InFlight.Requests = 1
		})
		e.export(0, 20)
		require.Equal(t, int64(20), e.settled().acked)
		require.Equal(t, int64(1), most.Load())
		for _, r := range s.seen() {
			require.Zero(t, r.id, "the ID is not used")
		}
	})
}

func TestC05RequestsAreSentWithoutWaitingForAnswers(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		const n = 40
		s := run(t, &server{stream: func(p *peer) error {
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
		}}, transport)
		e := newTestExporter(t, transport, s.addr)
		e.export(0, n)
		require.Equal(t, int64(n), e.settled().acked)
	})
}

func TestC06IDsCountFromOneOnEachSlot(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		s := run(t, &server{stream: echo}, transport)
		e := newTestExporter(t, transport, s.addr, func(cfg *Config) { cfg.Rebalance.Requests = 9 })
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

func TestC07AnswersMayComeInAnyOrder(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		s := run(t, &server{stream: func(p *peer) error {
			var ids []uint64
			for {
				r, err := p.recv()
				if err != nil {
					return eof(err)
				}
				if ids = append(ids, r.id); len(ids) == 100 {
					rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
					for _, id := range ids {
						p.ack(id)
					}
					ids = ids[:0]
				}
			}
		}}, transport)
		e := newTestExporter(t, transport, s.addr)
		e.export(0, 500)
		require.Equal(t, int64(500), e.settled().acked)
		require.Len(t, s.seen(), 500)
		require.Zero(t, e.dest.slots[0].pending.Len())
	})
}

// mute never answers.
func mute(p *peer) error {
	for {
		if _, err := p.recv(); err != nil {
			return eof(err)
		}
	}
}

func TestC08WhatIsUnacknowledgedIsBounded(t *testing.T) {
	data := int64(len(testRequest(t, batch(0))))
	for name, limit := range map[string]func(*Config){
		"requests": func(cfg *Config) { cfg.InFlight.Requests = 5 },
		"bytes":    func(cfg *Config) { cfg.InFlight.Bytes = 5*data + data/2 },
		"credit":   func(*Config) {},
	} {
		t.Run(name, func(t *testing.T) {
			bothTransports(t, func(t *testing.T, transport string) {
				limits := otlpstream.Limits{}
				if name == "credit" {
					limits.Requests = 5
				}
				var answer atomic.Bool
				s := run(t, &server{header: limits.Headers(), stream: func(p *peer) error {
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
				}}, transport)
				e := newTestExporter(t, transport, s.addr, limit, impatient, func(cfg *Config) {
					cfg.Queue.Get().QueueSize = 20
				})
				if name == "credit" {
					// The server's word has to arrive before there is a window.
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
				require.Equal(t, int64(5), b.pending)
				require.Equal(t, int64(3), b.queued)
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

func testRequest(tb testing.TB, name string) []byte {
	r, err := (&streamExporter{cfg: testConfig(transportGRPC, "x")}).fromTraces(context.Background(), spans(name, 1))
	require.NoError(tb, err)
	return r.(*request).data
}

// breaking breaks its first stream once it has n requests.
func breaking(n int, err error) func(*peer) error {
	return func(p *peer) error {
		for i := 0; p.number > 0 || i < n; i++ {
			r, err := p.recv()
			if err != nil {
				return eof(err)
			}
			if p.number > 0 {
				p.ack(r.id)
			}
		}
		return err
	}
}

func TestC09C11UnacknowledgedRequestsAreResent(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		require.True(t, createDefaultConfig().(*Config).ResendUnacked)
		const k = 20
		s := run(t, &server{stream: breaking(k, status.Error(codes.Unavailable, "gone"))}, transport)
		e := newTestExporter(t, transport, s.addr)
		e.export(0, k)
		require.Equal(t, int64(k), e.settled().acked)
		ids := map[string]uint64{}
		for _, r := range s.seen() {
			if r.stream == 0 {
				require.Zero(t, r.attempt)
				ids[r.name] = r.id
			} else {
				require.Equal(t, ids[r.name], r.id, "under the same ID")
				require.Equal(t, uint64(1), r.attempt)
			}
		}
		require.Len(t, ids, k)
		require.Len(t, s.seen(), 2*k)
	})
}

func TestC10ResendingCanBeTurnedOff(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		const k = 20
		s := run(t, &server{stream: breaking(k, status.Error(codes.Unavailable, "gone"))}, transport)
		e := newTestExporter(t, transport, s.addr, func(cfg *Config) { cfg.ResendUnacked = false })
		e.export(0, k)
		require.Equal(t, int64(k), e.settled().dropped[dropStreamLost])
		require.Len(t, s.seen(), k)
		e.export(k, 1)
		require.Equal(t, int64(1), e.settled().acked)
	})
}

func TestC12C14ShutdownWaitsForAcks(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		release := make(chan struct{})
		s := run(t, &server{stream: func(p *peer) error {
			r, err := p.recv()
			if err != nil {
				return err
			}
			<-release
			p.ack(r.id)
			return echo(p)
		}}, transport)
		e := newTestExporter(t, transport, s.addr)
		e.export(0, 5)
		eventually(t, func() bool { return len(s.seen()) == 1 }, "it arrives")
		stopped := make(chan error)
		go func() { stopped <- e.Shutdown(context.Background()) }()
		select {
		case <-stopped:
			require.Fail(t, "it must wait")
		case <-time.After(20 * time.Millisecond):
		}
		close(release)
		require.NoError(t, <-stopped)
		require.Equal(t, int64(5), e.balanced().acked)

		muted := run(t, &server{stream: mute}, transport)
		e = newTestExporter(t, transport, muted.addr, func(cfg *Config) { cfg.Shutdown.Timeout = 50 * time.Millisecond })
		e.export(0, 5)
		eventually(t, func() bool { return len(muted.seen()) == 5 }, "they arrive")
		require.NoError(t, e.Shutdown(context.Background()))
		require.Equal(t, int64(5), e.balanced().dropped[dropShutdown])
	})
}

func TestC12ShutdownEndsWithItsContext(t *testing.T) {
	s := run(t, &server{stream: mute}, transportGRPC)
	e := newTestExporter(t, transportGRPC, s.addr)
	e.export(0, 1)
	eventually(t, func() bool { return len(s.seen()) == 1 }, "it arrives")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.NoError(t, e.Shutdown(ctx))
	require.Equal(t, int64(1), e.balanced().dropped[dropShutdown])
}

func TestC13C27WithoutWaitingShutdownCountsTheLoss(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		s := run(t, &server{stream: mute}, transport)
		e := newTestExporter(t, transport, s.addr, impatient, func(cfg *Config) { cfg.InFlight.Requests = 3 })
		e.export(0, 10)
		eventually(t, func() bool { return len(s.seen()) == 3 }, "the window is full")
		begun := time.Now()
		require.NoError(t, e.Shutdown(context.Background()))
		require.Less(t, time.Since(begun), patience/2)
		b := e.balanced()
		require.Equal(t, int64(10), b.dropped[dropShutdown], "pending and queued alike")
		require.Equal(t, b.received, b.dropped[dropShutdown])
	})
}

func TestC14ExhaustedRetriesAreCounted(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		s := run(t, &server{stream: answering(otlpstream.FailedRetryable, 0)}, transport)
		e := newTestExporter(t, transport, s.addr, func(cfg *Config) { cfg.Retry.MaxElapsedTime = 100 * time.Millisecond })
		e.export(0, 3)
		require.Equal(t, int64(3), e.settled().dropped[dropRetriesExhausted])
		require.Greater(t, len(s.seen()), 3)

		off := newTestExporter(t, transport, s.addr, func(cfg *Config) { cfg.Retry.Enabled = false })
		off.export(0, 1)
		require.Equal(t, int64(1), off.settled().dropped[dropRetriesExhausted])
	})
}

func TestC14WithoutAServerRetriesEndToo(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		e := newTestExporter(t, transport, "localhost:1", impatient, func(cfg *Config) { cfg.Retry.MaxElapsedTime = 100 * time.Millisecond })
		e.export(0, 3)
		require.Equal(t, int64(3), e.settled().dropped[dropRetriesExhausted])
	})
}

// answering answers everything the same way, and after n answers with success.
func answering(code otlpstream.ResultCode, n int) func(*peer) error {
	return func(p *peer) error {
		for i := 0; ; i++ {
			r, err := p.recv()
			if err != nil {
				return eof(err)
			}
			if n > 0 && i >= n {
				p.ack(r.id)
			} else {
				_ = p.send(otlpstream.Response{ID: r.id, Code: code, Message: "because"})
			}
		}
	}
}

func TestC15C16UnansweredRequestsAreDroppedAndCounted(t *testing.T) {
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
		e := newTestExporter(t, transport, s.addr, func(cfg *Config) { cfg.AckTimeout = 200 * time.Millisecond })
		e.export(0, 10)
		b := e.settled()
		require.Equal(t, int64(9), b.acked)
		require.Equal(t, int64(1), b.dropped[dropAckTimeout])
		require.Equal(t, 1, s.names()[batch(3)], "it is not sent again")
	})
}

func TestC17TheAckTimeoutIsMuchLongerThanAnswersTake(t *testing.T) {
	require.GreaterOrEqual(t, createDefaultConfig().(*Config).AckTimeout, 30*time.Second)
}

func TestC18C19C20RejectedRequestsAreDroppedAndCounted(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		s := run(t, &server{stream: answering(otlpstream.FailedNoneRetryable, 0)}, transport)
		e := newTestExporter(t, transport, s.addr, noQueue)
		err := e.ConsumeTraces(context.Background(), spans(batch(0), 7))
		require.True(t, consumererror.IsPermanent(err))
		require.ErrorContains(t, err, "because")
		require.Len(t, s.seen(), 1)
		require.Equal(t, int64(7), e.balanced().dropped[dropRejected])
		require.Zero(t, e.dest.slots[0].pending.Len())
	})
}

func TestC21C22RetryableFailuresAreRetried(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		s := run(t, &server{stream: answering(otlpstream.FailedRetryable, 3)}, transport)
		e := newTestExporter(t, transport, s.addr, noQueue)
		require.NoError(t, e.ConsumeTraces(context.Background(), spans(batch(0), 1)))
		seen := s.seen()
		require.Len(t, seen, 4)
		for i, r := range seen {
			require.Equal(t, uint64(i), r.attempt)
			require.Equal(t, uint64(i+1), r.id, "as a new request")
		}
		require.Equal(t, int64(1), e.balanced().acked)
	})
}

func TestC23C24RetryInfoHoldsTheWholeDestination(t *testing.T) {
	const delay = 300 * time.Millisecond
	for name, refuse := range map[string]func(p *peer, id uint64) error{
		"status": func(*peer, uint64) error { return otlpstream.Busy("busy", delay).Err() },
		"answer": func(p *peer, id uint64) error {
			_ = p.send(otlpstream.Response{ID: id, Code: otlpstream.FailedRetryable, Delay: delay})
			return echo(p)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bothTransports(t, func(t *testing.T, transport string) {
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
				}}, transport)
				e := newTestExporter(t, transport, s.addr, func(cfg *Config) { cfg.Streams = 3 })
				e.export(0, 1)
				eventually(t, func() bool { return e.dest.gate.left(time.Now()) > 0 }, "the gate closes")
				from := len(s.seen())
				e.export(1, 30)
				require.Equal(t, int64(31), e.settled().acked)
				for _, r := range s.seen()[from:] {
					require.GreaterOrEqual(t, r.at.Sub(*refused.Load()), delay-20*time.Millisecond)
				}
			})
		})
	}
}

func TestC23UnaryRequestsObeyRetryInfo(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		var refused atomic.Pointer[time.Time]
		s := run(t, &server{unary: func(context.Context, string) error {
			now := time.Now()
			if refused.CompareAndSwap(nil, &now) {
				return otlpstream.Busy("busy", time.Second).Err()
			}
			return nil
		}}, transport)
		e := newTestExporter(t, transport, s.addr, func(cfg *Config) { cfg.Mode = modeUnary })
		e.export(0, 1)
		eventually(t, func() bool { return e.dest.gate.left(time.Now()) > 0 }, "the gate closes")
		e.export(1, 10)
		require.Equal(t, int64(11), e.settled().acked)
		for _, r := range s.seen()[1:] {
			require.GreaterOrEqual(t, r.at.Sub(*refused.Load()), 980*time.Millisecond)
		}
	})
}

func TestC25DelaysGrowToACap(t *testing.T) {
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

func TestC26DuplicateAndUnknownAcksAreHarmless(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		s := run(t, &server{stream: func(p *peer) error {
			for {
				r, err := p.recv()
				if err != nil {
					return eof(err)
				}
				p.ack(r.id + 1000)
				_ = p.send(otlpstream.Response{ID: r.id, IDs: []uint64{r.id, 0, 1 << 63}})
				p.ack(r.id)
			}
		}}, transport)
		e := newTestExporter(t, transport, s.addr)
		e.export(0, 100)
		require.Equal(t, int64(100), e.settled().acked)
	})
}

func TestC28ADeadDestinationDoesNotHoldUpAnother(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		dead, live := run(t, &server{stream: mute}, transport), run(t, &server{stream: echo}, transport)
		stuck := newTestExporter(t, transport, dead.addr, impatient)
		e := newTestExporter(t, transport, live.addr)
		for i := range 100 {
			stuck.export(i, 1)
			e.export(i, 1)
		}
		require.Equal(t, int64(100), e.settled().acked)
		require.Zero(t, stuck.balanced().acked)
	})
}

func TestC29APayloadIsEncodedOnceAndSharedByAllAttempts(t *testing.T) {
	s := run(t, &server{stream: breaking(10, status.Error(codes.Unavailable, "gone"))}, transportGRPC)
	e := newTestExporter(t, transportGRPC, s.addr)
	data := slices.Clone(testRequest(t, batch(0)))
	req := &request{data: slices.Clone(data), items: 1, epoch: e.epoch}
	e.account.receive(1)
	e.export(1, 9)
	require.NoError(t, e.dest.deliver(context.Background(), req))
	e.settled()
	require.Equal(t, data, req.data, "sending it twice has not changed it")
	require.Equal(t, 2, s.names()[batch(0)])
}

func TestC30C31C32StreamsAreReopenedAtTheirAge(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		s := run(t, &server{stream: echo}, transport)
		e := newTestExporter(t, transport, s.addr, func(cfg *Config) { cfg.Rebalance.Timeout = 20 * time.Millisecond })
		i := 0
		eventually(t, func() bool {
			e.export(i, 1)
			i++
			streams, _ := s.opened()
			return streams >= 5
		}, "streams come and go")
		b := e.settled()
		require.Equal(t, int64(i), b.acked)
		require.Len(t, s.seen(), i, "and nothing was resent")
		eventually(t, func() bool { _, open := s.opened(); return open <= 1 }, "the old ones are closed")
	})
}

func TestC33StreamsAreReopenedAfterMoreThanSoManyRequests(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		s := run(t, &server{stream: echo}, transport)
		e := newTestExporter(t, transport, s.addr, func(cfg *Config) { cfg.Rebalance.Requests = 10 })
		e.export(0, 55)
		e.settled()
		perStream := map[int]int{}
		for _, r := range s.seen() {
			perStream[r.stream]++
		}
		require.Equal(t, map[int]int{0: 11, 1: 11, 2: 11, 3: 11, 4: 11}, perStream)
	})
}

func TestC34OldStreamsAreReadToTheirEnd(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		release := make(chan struct{})
		s := run(t, &server{stream: func(p *peer) error {
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
		}}, transport)
		e := newTestExporter(t, transport, s.addr, func(cfg *Config) { cfg.Rebalance.Requests = 10 })
		e.export(0, 20)
		eventually(t, func() bool { return e.balanced().acked == 9 }, "the new stream works")
		_, open := s.opened()
		require.Equal(t, 2, open, "while the old one is open")
		close(release)
		require.Equal(t, int64(20), e.settled().acked)
		require.Len(t, s.seen(), 20, "nothing was resent")
	})
}

func TestC35DuplicatesAreBoundedByTheWindow(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		const window, breaks, n = 8, 10, 400
		s := run(t, &server{stream: func(p *peer) error {
			for i := 0; ; i++ {
				r, err := p.recv()
				if err != nil {
					return eof(err)
				}
				if p.number < breaks && i == 20 {
					return status.Error(codes.Unavailable, "gone") // received and not acknowledged
				}
				p.ack(r.id)
			}
		}}, transport)
		e := newTestExporter(t, transport, s.addr, func(cfg *Config) { cfg.InFlight.Requests = window })
		for i := range n {
			eventually(t, func() bool { return e.ConsumeTraces(context.Background(), spans(batch(i), 1)) == nil }, "there is room")
		}
		require.Equal(t, int64(n), e.settled().acked)
		require.Len(t, s.names(), n, "at least once")
		require.LessOrEqual(t, len(s.seen())-n, window*breaks)
	})
}

func TestS14AServerThatDrainsGetsNothingTwice(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		s := run(t, &server{stream: func(p *peer) error {
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
		}}, transport)
		e := newTestExporter(t, transport, s.addr)
		e.export(0, 300)
		// The last stream keeps its answers until the exporter is done with it.
		eventually(t, func() bool { return len(s.seen()) == 300 }, "all is sent")
		require.NoError(t, e.Shutdown(context.Background()))
		require.Len(t, s.names(), 300)
		require.Len(t, s.seen(), 300, "nothing was resent")
		streams, _ := s.opened()
		require.Greater(t, streams, 1)
	})
}

func TestV05V06CapabilitiesAreAnnouncedAndAbsenceIsFine(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		s := run(t, &server{stream: echo}, transport)
		e := newTestExporter(t, transport, s.addr)
		e.export(0, 10)
		e.settled()
		require.Equal(t, []string{otlpstream.AllCaps.String()}, s.caps)
	})
}

func TestV07NothingIsAskedBeforeTheFirstRequest(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		s := run(t, &server{stream: echo, quiet: true}, transport)
		e := newTestExporter(t, transport, s.addr)
		e.export(0, 1)
		e.settled()
		require.Len(t, s.seen(), 1)
		require.Equal(t, uint64(1), s.seen()[0].id)
	})
}

func TestUnimplementedFallsBackToUnaryAndProbesAgain(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		old := run(t, &server{}, transport)
		e := newTestExporter(t, transport, old.addr, func(cfg *Config) { cfg.ReprobeInterval = 100 * time.Millisecond })
		e.export(0, 50)
		require.Equal(t, int64(50), e.settled().acked)
		require.Len(t, old.names(), 50)
		require.Len(t, old.seen(), 50, "what the refused stream had was not lost, nor doubled")
		require.False(t, e.dest.modes.streaming())

		old.stop()
		upgraded := &server{stream: echo, addr: old.addr}
		upgraded.start(t, transport)
		i := 50
		eventually(t, func() bool {
			e.export(i, 1)
			i++
			return e.dest.modes.streaming()
		}, "it streams")
		require.Equal(t, int64(i), e.settled().acked)
	})
}

func TestModesFallBackOnlyOnUnimplemented(t *testing.T) {
	now := time.Unix(1000, 0)
	m := modes{mode: modeAuto, reprobe: time.Minute}
	require.True(t, m.stream(now))
	require.True(t, m.refused(now), "at first contact one refusal is enough")
	require.False(t, m.stream(now.Add(59*time.Second)))
	require.True(t, m.stream(now.Add(time.Minute)), "one probe")
	require.False(t, m.stream(now.Add(time.Minute)), "and no more")
	require.False(t, m.refused(now.Add(time.Minute)), "no news")
	m.worked()
	require.True(t, m.streaming())
	for range refusalsToUnary - 1 {
		require.False(t, m.refused(now))
		require.True(t, m.stream(now), "it may be one old server of many")
	}
	m.worked()
	for range refusalsToUnary {
		m.refused(now)
	}
	require.False(t, m.stream(now))

	for _, mode := range []string{modeStream, modeUnary} {
		m := modes{mode: mode}
		require.False(t, m.refused(now))
		require.Equal(t, mode == modeStream, m.stream(now))
		require.Equal(t, mode == modeStream, m.streaming())
	}
}

func TestUnavailableDoesNotFallBack(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		s := run(t, &server{stream: func(p *peer) error {
			if p.number < 5 {
				return status.Error(codes.Unavailable, "not yet")
			}
			return echo(p)
		}}, transport)
		e := newTestExporter(t, transport, s.addr)
		e.export(0, 10)
		require.Equal(t, int64(10), e.settled().acked)
		for _, r := range s.seen() {
			require.NotEqual(t, -1, r.stream)
		}
	})
}

func TestTooLargeRequestsAreDroppedAloneAndBreakNothing(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		s := run(t, &server{header: otlpstream.Limits{MaxMessage: 500}.Headers(), stream: echo}, transport)
		e := newTestExporter(t, transport, s.addr)
		e.export(0, 1)
		e.settled()
		require.NoError(t, e.ConsumeTraces(context.Background(), spans("big", 100)))
		e.export(1, 9)
		b := e.settled()
		require.Equal(t, int64(100), b.dropped[dropTooLarge])
		require.Equal(t, int64(10), b.acked)
		require.NotContains(t, s.names(), "big")
	})
}

func TestARequestThatBreaksStreamsIsFoundOut(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		s := run(t, &server{stream: func(p *peer) error {
			for {
				r, err := p.recv()
				if err != nil {
					return eof(err)
				}
				if r.name == batch(7) {
					return status.Error(codes.InvalidArgument, "poison")
				}
				p.ack(r.id)
			}
		}}, transport)
		e := newTestExporter(t, transport, s.addr)
		e.export(0, 30)
		b := e.settled()
		require.Equal(t, int64(29), b.acked)
		require.Equal(t, int64(1), b.dropped[dropRejected])
		require.LessOrEqual(t, s.names()[batch(7)], 1+strikesOut)
	})
}

func TestACallerThatGivesUpIsCounted(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		s := run(t, &server{stream: mute}, transport)
		e := newTestExporter(t, transport, s.addr, noQueue, impatient)
		ctx, cancel := context.WithCancel(context.Background())
		result := make(chan error)
		go func() { result <- e.ConsumeTraces(ctx, spans(batch(0), 4)) }()
		eventually(t, func() bool { return len(s.seen()) == 1 }, "it arrives")
		cancel()
		require.ErrorIs(t, <-result, context.Canceled)
		require.Equal(t, int64(4), e.balanced().dropped[dropCanceled])
	})
}

func TestUnaryStatusesDecide(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		var calls atomic.Int64
		s := run(t, &server{unary: func(_ context.Context, name string) error {
			calls.Add(1)
			if name == "bad" {
				return status.Error(codes.InvalidArgument, "bad")
			}
			if calls.Load()%2 == 1 {
				return status.Error(codes.Unavailable, "later")
			}
			return nil
		}}, transport)
		e := newTestExporter(t, transport, s.addr, noQueue, func(cfg *Config) { cfg.Mode = modeUnary })
		require.NoError(t, e.ConsumeTraces(context.Background(), spans("good", 1)))
		require.Equal(t, int64(2), calls.Load())
		require.True(t, consumererror.IsPermanent(e.ConsumeTraces(context.Background(), spans("bad", 1))))
		require.Equal(t, int64(3), calls.Load())
	})
}

func TestAccountAddsUpAtAnyMoment(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		s := run(t, &server{stream: func(p *peer) error {
			for i := 0; ; i++ {
				r, err := p.recv()
				switch {
				case err != nil:
					return eof(err)
				case i%50 == 49:
					return status.Error(codes.Unavailable, "gone")
				case i%7 == 0:
					_ = p.send(otlpstream.Response{ID: r.id, Code: otlpstream.FailedRetryable})
				case i%11 == 0:
					_ = p.send(otlpstream.Response{ID: r.id, Code: otlpstream.FailedNoneRetryable})
				default:
					p.ack(r.id)
				}
			}
		}}, transport)
		e := newTestExporter(t, transport, s.addr, func(cfg *Config) {
			cfg.Streams = 2
			cfg.Shutdown.Timeout = 50 * time.Millisecond
		})
		var producers sync.WaitGroup
		var accepted atomic.Int64
		for range 4 {
			producers.Go(func() {
				for i := range 300 {
					if e.ConsumeTraces(context.Background(), spans(batch(i), 3)) == nil {
						accepted.Add(3)
					}
				}
			})
		}
		done := make(chan struct{})
		go func() { producers.Wait(); close(done) }()
		for running := true; running; {
			select {
			case <-done:
				running = false
			default:
				e.balanced()
			}
		}
		require.Eventually(t, func() bool { return e.balanced().acked > 0 }, 30*time.Second, time.Millisecond)
		require.NoError(t, e.Shutdown(context.Background()))
		b := e.balanced()
		require.Equal(t, accepted.Load(), b.received)
		require.Zero(t, b.queued)
		require.Zero(t, b.pending)
		require.Positive(t, b.acked)
	})
}
