// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/account"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/metadata"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/tally"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// mute never responds.
func mute(p *peer) error {
	for {
		if _, err := p.recv(); err != nil {
			return eof(err)
		}
	}
}

// answering responds to everything in the same way, and with success after n responses.
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

func TestAnswersMayComeInAnyOrder(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: func(p *peer) error {
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
		}}, kind)
		e := newTestExporter(t, kind, s.addr)
		e.export(0, 500)
		require.Equal(t, int64(500), e.settled().Acked)
		require.Len(t, s.seen(), 500)
		require.Zero(t, e.dest.lanes.common.slots[0].pending.Len())
	})
}

func TestExhaustedRetriesAreCounted(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: answering(otlpstream.FailedRetryable, 0)}, kind)
		for limit := 100 * time.Millisecond; ; limit *= 2 { // until it is long enough for several attempts
			require.Less(t, limit, patience)
			before := len(s.seen())
			e := newTestExporter(t, kind, s.addr, func(cfg *Config) { cfg.Retry.MaxElapsedTime = limit })
			e.export(0, 3)
			require.Equal(t, int64(3), e.settled().Dropped[account.RetriesExhausted])
			if len(s.seen()) > before+3 {
				break
			}
		}

		off := newTestExporter(t, kind, s.addr, func(cfg *Config) { cfg.Retry.Enabled = false })
		off.export(0, 1)
		require.Equal(t, int64(1), off.settled().Dropped[account.RetriesExhausted])
	})
}

func TestWithoutAServerRetriesEndToo(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		e := newTestExporter(t, kind, "localhost:1", impatient, func(cfg *Config) { cfg.Retry.MaxElapsedTime = 100 * time.Millisecond })
		e.export(0, 3)
		require.Equal(t, int64(3), e.settled().Dropped[account.RetriesExhausted])
	})
}

// forgets responds to all requests except the fourth batch the first few times.
func forgets(times int) func(*peer) error {
	var forgotten atomic.Int64
	return func(p *peer) error {
		for {
			r, err := p.recv()
			if err != nil {
				return eof(err)
			}
			if r.name != batch(3) || forgotten.Add(1) > int64(times) {
				p.ack(r.id)
			}
		}
	}
}

func TestWhatIsNotAnsweredIsSentAgain(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: forgets(2)}, kind)
		e := newTestExporter(t, kind, s.addr)
		e.export(0, 10)
		eventually(t, func() bool { return e.balanced().Acked == 9 }, "the others are answered")
		e.expire(0)
		require.Equal(t, int64(1), e.balanced().Pending, "its time begins to run")
		e.expire(2 * e.cfg.AckTimeout)
		eventually(t, func() bool { return s.names()[batch(3)] == 2 }, "it is sent again")
		e.expire(0)
		e.export(10, 1)
		eventually(t, func() bool { return e.balanced().Acked == 10 }, "one after it is answered")
		e.expire(0)
		e.expire(e.cfg.AckTimeout * 3 / 2)
		require.Equal(t, 2, s.names()[batch(3)], "the server has more time each time")
		e.expire(e.cfg.AckTimeout * 5 / 2)
		b := e.settled()
		require.Equal(t, int64(11), b.Acked)
		require.Zero(t, b.Dropped[account.AckTimeout])
		require.Equal(t, 3, s.names()[batch(3)])
		streams, _ := s.opened()
		require.Equal(t, 1, streams, "the stream has done nothing wrong")
	})
}

func TestUnansweredRequestsThatMayNotBeSentAgainAreDroppedAndCounted(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"resend_unacked is off":        func(cfg *Config) { cfg.ResendUnacked = false },
		"max_elapsed_time has elapsed": func(cfg *Config) { cfg.Retry.MaxElapsedTime = time.Hour },
	} {
		t.Run(name, func(t *testing.T) {
			bothTransports(t, func(t *testing.T, kind string) {
				s := run(t, &testServer{stream: forgets(1)}, kind)
				e := newTestExporter(t, kind, s.addr, change)
				e.export(0, 10)
				eventually(t, func() bool { return e.balanced().Acked == 9 }, "the others are answered")
				e.expire(0)
				e.expire(2 * e.cfg.AckTimeout)
				b := e.settled()
				require.Equal(t, int64(9), b.Acked)
				require.Equal(t, int64(1), b.Dropped[account.AckTimeout])
				require.Equal(t, 1, s.names()[batch(3)], "it is not sent again")
			})
		})
	}
}

// A late response counts: its request is not sent a third time.
func TestAnAnswerThatIsLateCounts(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		blocked := make(chan struct{})
		s := run(t, &testServer{stream: func(p *peer) error {
			for {
				r, err := p.recv()
				if err != nil {
					return eof(err)
				}
				if r.name == batch(0) && r.attempt == 0 {
					go func() { <-blocked; p.ack(r.id) }()
				} else if r.name != batch(0) {
					p.ack(r.id)
				}
			}
		}}, kind)
		e := newTestExporter(t, kind, s.addr)
		e.export(0, 1)
		eventually(t, func() bool { return len(s.seen()) == 1 }, "it is sent first")
		e.export(1, 1)
		eventually(t, func() bool { return e.balanced().Acked == 1 }, "the other is answered")
		e.expire(0)
		e.expire(2 * e.cfg.AckTimeout)
		eventually(t, func() bool { return s.names()[batch(0)] == 2 }, "it is sent again")
		close(blocked)
		require.Equal(t, int64(2), e.settled().Acked)
		require.Equal(t, 2, s.names()[batch(0)])
	})
}

// A receiver whose pipeline is blocked reports that it is working, as long as necessary.
func TestAServerThatIsAtWorkIsWaitedFor(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		notices, finish := make(chan struct{}), make(chan struct{})
		s := run(t, &testServer{stream: func(p *peer) error {
			r, err := p.recv()
			if err != nil {
				return eof(err)
			}
			for {
				select {
				case <-notices:
					_ = p.send(otlpstream.Response{IDs: []uint64{r.id}, Working: true})
				case <-finish:
					p.ack(r.id)
					return echo(p)
				}
			}
		}}, kind)
		e := newTestExporter(t, kind, s.addr, func(cfg *Config) { cfg.Retry.MaxElapsedTime = time.Minute })
		e.export(0, 3) // the server does not read two of them
		eventually(t, func() bool { return len(s.seen()) == 1 && e.balanced().Pending == 3 }, "the pipeline has it")
		heard := func() time.Time {
			slot := e.dest.lanes.common.slots[0]
			slot.mu.Lock()
			defer slot.mu.Unlock()
			at, _ := slot.links[0].progress.snapshot()
			return at
		}
		for range 3 {
			before := heard()
			notices <- struct{}{}
			eventually(t, func() bool { return heard().After(before) }, "the notice comes")
			e.expire(e.cfg.AckTimeout * 9 / 10)
		}
		require.Equal(t, int64(3), e.balanced().Pending)
		close(finish)
		require.Equal(t, int64(3), e.settled().Acked)
		require.Len(t, s.seen(), 3, "nothing was sent twice")
		require.Zero(t, e.dest.tally.Unexpected.Load(), "a notice is no answer")
	})
}

func TestTheAckTimeoutIsMuchLongerThanAnswersTake(t *testing.T) {
	require.GreaterOrEqual(t, createDefaultConfig().(*Config).AckTimeout, 30*time.Second)
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: func(p *peer) error {
			for {
				r, err := p.recv()
				if err != nil {
					return eof(err)
				}
				time.AfterFunc(250*time.Millisecond, func() { p.ack(r.id) })
			}
		}}, kind)
		core, logs := observer.New(zap.WarnLevel)
		set := exportertest.NewNopSettings(metadata.Type)
		set.Logger = zap.New(core)
		e := startExporter(t, set, componenttest.NewNopHost(), testConfig(kind, s.addr, func(cfg *Config) {
			cfg.AckTimeout = 2 * time.Second
		}))
		e.export(0, 120)
		eventually(t, func() bool {
			e.export(0, 1)
			return logs.FilterMessageSnippet("`ack_timeout`").Len() == 1
		}, "there is a warning")
		e.settled()
		require.Equal(t, 1, logs.FilterMessageSnippet("`ack_timeout`").Len(), "once")
	})
}

func TestRejectedRequestsAreDroppedAndCounted(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: answering(otlpstream.FailedNoneRetryable, 0)}, kind)
		e := newTestExporter(t, kind, s.addr, noQueue)
		err := e.ConsumeTraces(context.Background(), spans(batch(0), 7))
		require.True(t, consumererror.IsPermanent(err))
		require.ErrorContains(t, err, "because")
		require.Len(t, s.seen(), 1)
		require.Equal(t, int64(7), e.balanced().Dropped[account.Rejected])
		require.Zero(t, e.dest.lanes.common.slots[0].pending.Len())
	})
}

func TestRetryableFailuresAreRetried(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: answering(otlpstream.FailedRetryable, 3)}, kind)
		e := newTestExporter(t, kind, s.addr, noQueue)
		require.NoError(t, e.ConsumeTraces(context.Background(), spans(batch(0), 1)))
		seen := s.seen()
		require.Len(t, seen, 4)
		for i, r := range seen {
			require.Equal(t, uint64(i), r.attempt)
			require.Equal(t, uint64(i+1), r.id, "as a new request")
		}
		require.Equal(t, int64(1), e.balanced().Acked)
		require.Equal(t, int64(3), e.dest.tally.Retryable.Load(), "they are on record")
	})
}

func TestDuplicateAndUnknownAcksAreHarmless(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: func(p *peer) error {
			for {
				r, err := p.recv()
				if err != nil {
					return eof(err)
				}
				p.ack(r.id + 1000)
				_ = p.send(otlpstream.Response{ID: r.id, IDs: []uint64{r.id, 0, 1 << 63}})
				p.ack(r.id)
			}
		}}, kind)
		e := newTestExporter(t, kind, s.addr)
		e.export(0, 100)
		require.Equal(t, int64(100), e.settled().Acked)
		eventually(t, func() bool { return e.dest.tally.Unexpected.Load() == 5*100 }, "all of them are counted")
		require.Zero(t, e.dest.lanes.common.slots[0].pending.Len())
		require.Zero(t, e.dest.tally.Closed[tally.Broken].Load(), "the stream lives on")
	})
}

func TestACallerThatGivesUpIsCounted(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: mute}, kind)
		e := newTestExporter(t, kind, s.addr, noQueue, impatient)
		ctx, cancel := context.WithCancel(context.Background())
		result := make(chan error)
		go func() { result <- e.ConsumeTraces(ctx, spans(batch(0), 4)) }()
		eventually(t, func() bool { return len(s.seen()) == 1 }, "it arrives")
		cancel()
		require.ErrorIs(t, <-result, context.Canceled)
		require.Equal(t, int64(4), e.balanced().Dropped[account.Canceled])
	})
}

func TestWhatACallerHasGivenUpIsNotSentAgain(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		broken := make(chan struct{})
		s := run(t, &testServer{stream: func(p *peer) error {
			if p.number > 0 {
				return echo(p)
			}
			if _, err := p.recv(); err != nil {
				return eof(err)
			}
			<-broken
			return status.Error(codes.Unavailable, "it is gone")
		}}, kind)
		e := newTestExporter(t, kind, s.addr, noQueue)
		ctx, cancel := context.WithCancel(context.Background())
		result := make(chan error)
		go func() { result <- e.ConsumeTraces(ctx, spans("given up", 1)) }()
		eventually(t, func() bool { return len(s.seen()) == 1 }, "it arrives")
		cancel()
		require.ErrorIs(t, <-result, context.Canceled)
		close(broken)
		eventually(t, func() bool { return e.dest.tally.Closed[tally.Broken].Load() == 1 }, "the stream breaks")
		require.NoError(t, e.ConsumeTraces(context.Background(), spans("next", 1)))
		require.Equal(t, map[string]int{"given up": 1, "next": 1}, s.names())
		require.Zero(t, e.dest.lanes.common.slots[0].pending.Len())
	})
}

func TestUnknownFieldsAndResultsOfNewerServersAreTaken(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: func(p *peer) error {
			for first := true; ; first = false {
				r, err := p.recv()
				if err != nil {
					return eof(err)
				}
				if first {
					_ = p.send(otlpstream.Response{ID: r.id, Code: 77, Message: "a result that is yet to be invented"})
					continue
				}
				p.ack(r.id)
			}
		}, header: []string{"otlp-stream-caps", "window2,telepathy", "otlp-stream-window-requests", "many"}}, kind)
		e := newTestExporter(t, kind, s.addr)
		e.export(0, 20)
		require.Equal(t, int64(20), e.settled().Acked, "what nobody knows may pass, so it is sent again")
		require.Len(t, s.seen(), 21)
	})
}
