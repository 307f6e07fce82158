// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/account"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/server"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// itemsOf returns how many items a server has received, by the counts in its requests.
func (s *testServer) itemsOf(name string) (items int) {
	for _, r := range s.seen() {
		if r.name == name {
			items += int(r.items)
		}
	}
	return items
}

func TestTooLargeRequestsAreSentInParts(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{header: otlpstream.Limits{MaxMessage: 500}.Headers(), stream: echo}, kind)
		e := newTestExporter(t, kind, s.addr)
		e.export(0, 1)
		e.settled()
		require.NoError(t, e.ConsumeTraces(context.Background(), spans("big", 1000)))
		e.export(1, 9)
		b := e.settled()
		require.Equal(t, int64(1010), b.Acked)
		require.Equal(t, b.Received, b.Acked)
		require.Equal(t, 1000, s.itemsOf("big"))
		require.Greater(t, s.names()["big"], 10)
		require.Equal(t, int64(1), e.Snapshot().Destinations[0].Divided)
	})
}

func TestAnItemThatIsTooLargeAloneIsDroppedAlone(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		for _, at := range []int{1, 50, 99} { // the last one is all that is left of the whole when its turn comes
			s := run(t, &testServer{header: otlpstream.Limits{MaxMessage: 500}.Headers(), stream: echo}, kind)
			e := newTestExporter(t, kind, s.addr)
			e.export(0, 1)
			e.settled()
			td := spans("fine", 100)
			poison := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
			poison.At(at).SetName(strings.Repeat("x", 1000))
			require.NoError(t, e.ConsumeTraces(context.Background(), td))
			b := e.settled()
			require.Equal(t, int64(1), b.Dropped[account.TooLarge], at)
			require.Equal(t, int64(100), b.Acked, at)
			require.Equal(t, 99, s.itemsOf("fine"), at)
		}
	})
}

// strict is a server that accepts messages with a limited number of items, and refuses larger ones like servers that do
// not announce their limits.
func strict(s *testServer, most int, refusal error) *testServer {
	s.stream = func(p *peer) error {
		for {
			r, err := p.recv()
			switch {
			case err != nil:
				return eof(err)
			case int(r.items) > most:
				return refusal
			}
			p.ack(r.id)
		}
	}
	return s
}

func TestTheLimitIsLearntFromRefusals(t *testing.T) {
	one := len(testRequest(t, "big"))
	for name, refusal := range map[string]error{
		"said":   status.Errorf(codes.ResourceExhausted, "grpc: received message larger than max (%d vs. %d)", 1<<20, 10*one),
		"unsaid": status.Error(codes.ResourceExhausted, "received message larger than max"),
	} {
		t.Run(name, func(t *testing.T) {
			bothTransports(t, func(t *testing.T, kind string) {
				if kind == transport.WebSocket {
					refusal = otlpstream.ErrTooLarge("1009")
				}
				s := run(t, strict(&testServer{}, 10, refusal), kind)
				e := newTestExporter(t, kind, s.addr)
				require.NoError(t, e.ConsumeTraces(context.Background(), spans("big", 100)))
				e.export(0, 5)
				b := e.settled()
				require.Equal(t, b.Received, b.Acked, "%+v", b)
				taken := 0
				for _, r := range s.seen() {
					if r.name == "big" && r.items <= 10 {
						taken += int(r.items)
					}
				}
				require.GreaterOrEqual(t, taken, 100)
			})
		})
	}
}

func TestUnaryRequestsAreDividedToo(t *testing.T) {
	s := &testServer{}
	s.unary = func(_ context.Context, name string) error {
		if strings.HasPrefix(name, "big") {
			return status.Error(codes.ResourceExhausted, "grpc: received message larger than max (2000 vs. 200)")
		}
		return nil
	}
	run(t, s, transport.GRPC)
	e := newTestExporter(t, transport.GRPC, s.addr, func(cfg *Config) { cfg.Mode = server.Unary })
	td := spans("big", 100)
	list := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	for i := range 99 {
		list.At(i + 1).SetName(fmt.Sprintf("small-%d", i))
	}
	require.NoError(t, e.ConsumeTraces(context.Background(), td))
	b := e.settled()
	require.Positive(t, b.Dropped[account.TooLarge], "the part with what it will not have")
	require.Equal(t, int64(100), b.Acked+b.Dropped[account.TooLarge])
	require.Less(t, b.Dropped[account.TooLarge], int64(20))
}

// VictoriaMetrics answers 400 to a request that is too large, and says so in the text.
func TestRequestsAreDividedWhereOnlyTheTextSaysWhy(t *testing.T) {
	const limit = 1 << 10
	var s *plainServer
	s = startPlain(t, func(_ int64, w http.ResponseWriter) {
		if _, body := s.last(); len(body) > limit {
			http.Error(w, "cannot read data: too big data size exceeding -opentelemetry.maxRequestSize=1024 bytes", http.StatusBadRequest)
		}
	})
	e := newTestExporter(t, transport.HTTP, s.URL, func(cfg *Config) { cfg.InFlight.Requests = 1 })
	require.NoError(t, e.ConsumeTraces(t.Context(), spans(strings.Repeat("x", 50), 100)))
	require.Equal(t, int64(100), e.settled().Acked)
	require.Greater(t, s.calls.Load(), int64(4))
}

func TestPartsSurviveAShutdownOnDisk(t *testing.T) {
	s := run(t, &testServer{header: otlpstream.Limits{MaxMessage: 300}.Headers(), stream: func(p *peer) error {
		for i := 0; ; i++ {
			r, err := p.recv()
			if err != nil {
				return eof(err)
			}
			if i < 3 {
				p.ack(r.id)
			}
		}
	}}, transport.GRPC)
	e := startOnDisk(t, s.addr, newDisks())
	e.export(0, 1)
	e.settled()
	require.NoError(t, e.ConsumeTraces(context.Background(), spans("big", 100)))
	eventually(t, func() bool { b := e.balanced(); return b.Acked > 1 && b.Pending > 0 }, "some parts are acknowledged")
	require.NoError(t, e.Shutdown(context.Background()))
	b := e.balanced()
	require.Zero(t, b.Dropped)
	require.Equal(t, int64(101), b.Acked+b.Queued)
}
