// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/account"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/metadata"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/server"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// traced runs an exporter, and returns its telemetry, which collects spans.
func traced(t *testing.T, cfg *Config) (*testExporter, *componenttest.Telemetry) {
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	set := exporter.Settings{ID: exportertest.NewNopSettings(metadata.Type).ID, TelemetrySettings: tel.NewTelemetrySettings()}
	return startExporter(t, set, componenttest.NewNopHost(), cfg), tel
}

// requestSpan is the content of a request's span, without the helper's own events.
type requestSpan struct {
	attributes map[attribute.Key]string
	events     []string
	status     otelcodes.Code
	trace      trace.TraceID
	span       trace.SpanID
}

func requestSpans(tel *componenttest.Telemetry) (out []requestSpan) {
	for _, span := range tel.SpanRecorder.Ended() {
		if !strings.HasPrefix(span.Name(), "exporter/") || !strings.HasSuffix(span.Name(), "/traces") {
			continue
		}
		s := requestSpan{attributes: map[attribute.Key]string{}, status: span.Status().Code, trace: span.SpanContext().TraceID(), span: span.SpanContext().SpanID()}
		for _, a := range span.Attributes() {
			s.attributes[a.Key] = a.Value.String()
		}
		for _, e := range span.Events() {
			if e.Name == "Sending request." {
				continue
			}
			words := []string{e.Name}
			for _, a := range e.Attributes {
				words = append(words, fmt.Sprintf("%s=%s", a.Key, a.Value.String()))
			}
			s.events = append(s.events, strings.Join(words, " "))
		}
		out = append(out, s)
	}
	return out
}

// spansEnd waits for the spans of the given number of requests. Each ends shortly after its request.
func spansEnd(t *testing.T, tel *componenttest.Telemetry, n int) {
	eventually(t, func() bool { return len(requestSpans(tel)) == n }, "one for each request")
}

func TestTheSpanOfARequestTellsWhereItWentAndWhatBecameOfIt(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: func(p *peer) error {
			for i := 0; ; i++ {
				r, err := p.recv()
				switch {
				case err != nil:
					return eof(err)
				case p.number == 0 && i == 0:
					_ = p.send(otlpstream.Response{ID: r.id, Code: otlpstream.FailedRetryable, Message: "later"})
				case p.number == 0 && i == 1:
					return status.Error(codes.Unavailable, "gone")
				case r.name == "bad":
					_ = p.send(otlpstream.Response{ID: r.id, Code: otlpstream.FailedNoneRetryable, Message: "no"})
				default:
					p.ack(r.id)
				}
			}
		}}, kind)
		e, tel := traced(t, testConfig(kind, "", several(s.addr)))
		ctx, batch := tel.NewTelemetrySettings().TracerProvider.Tracer("test").Start(t.Context(), "batch")
		defer batch.End()
		require.NoError(t, e.ConsumeTraces(ctx, spans("good", 1)))
		spansEnd(t, tel, 1)
		require.NoError(t, e.ConsumeTraces(t.Context(), spans("bad", 2)))
		e.settled()
		require.NoError(t, e.Shutdown(t.Context()))
		all := requestSpans(tel)
		require.Len(t, all, 2)

		good := all[0]
		require.Equal(t, batch.SpanContext().TraceID(), good.trace, "it is part of what the batch is part of")
		require.Equal(t, "a", good.attributes["destination"])
		require.Equal(t, "0", good.attributes["stream"])
		require.Equal(t, fmt.Sprint(len(testRequest(t, "good"))), good.attributes["bytes"])
		require.Equal(t, "1", good.attributes["items.sent"])
		require.Equal(t, resultAcked, good.attributes["result"])
		require.Equal(t, otelcodes.Unset, good.status)
		require.Len(t, good.events, 5, "%v", good.events)
		require.Equal(t, "sent id=1 attempt=0", good.events[0])
		require.Regexp(t, `^retry delay=.*ms error=later$`, good.events[1])
		require.Equal(t, "sent id=2 attempt=1", good.events[2])
		require.Regexp(t, `^stream lost error=.*gone`, good.events[3])
		require.Equal(t, "sent id=2 attempt=2", good.events[4], "the same ID on another stream")

		bad := all[1]
		require.Equal(t, account.Rejected.String(), bad.attributes["result"])
		require.Equal(t, "2", bad.attributes["items.failed"])
		require.Equal(t, otelcodes.Error, bad.status)
	})
}

func TestTheSpanOfAUnaryRequestTellsItsAttempts(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		failures := 1
		s := run(t, &testServer{unary: func(context.Context, string) error {
			if failures--; failures >= 0 {
				return status.Error(codes.Unavailable, "busy")
			}
			return nil
		}}, kind)
		e, tel := traced(t, testConfig(kind, s.addr, func(cfg *Config) { cfg.Mode = server.Unary }))
		e.export(0, 1)
		e.settled()
		require.NoError(t, e.Shutdown(t.Context()))
		all := requestSpans(tel)
		require.Len(t, all, 1)
		require.Equal(t, resultAcked, all[0].attributes["result"])
		require.NotContains(t, all[0].attributes, attribute.Key("stream"))
		require.Len(t, all[0].events, 3, "%v", all[0].events)
		require.Equal(t, "sent attempt=0", all[0].events[0])
		require.Equal(t, "sent attempt=1", all[0].events[2])
	})
}

func TestTheSpanOfARequestTellsThatItIsSentInParts(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{header: otlpstream.Limits{MaxMessage: 500}.Headers(), stream: echo}, kind)
		e, tel := traced(t, testConfig(kind, s.addr))
		e.export(0, 1)
		spansEnd(t, tel, 1)
		require.NoError(t, e.ConsumeTraces(t.Context(), spans("big", 100)))
		require.Equal(t, int64(101), e.settled().Acked)
		require.NoError(t, e.Shutdown(t.Context()))
		all := requestSpans(tel)
		require.Len(t, all, 2)
		require.Equal(t, "divided limit=500", all[1].events[0])
		require.Greater(t, len(all[1].events), 2, "each part is sent")
		require.Equal(t, resultAcked, all[1].attributes["result"])
	})
}

func TestTheSpanOfARequestEndsWithItsAcknowledgement(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		gate := make(chan struct{})
		release := sync.OnceFunc(func() { close(gate) })
		s := run(t, &testServer{stream: func(p *peer) error {
			for {
				r, err := p.recv()
				if err != nil {
					return eof(err)
				}
				<-gate
				p.ack(r.id)
			}
		}}, kind)
		e, tel := traced(t, testConfig(kind, s.addr))
		t.Cleanup(release)
		e.export(0, 3)
		eventually(t, func() bool { return e.balanced().Pending == 3 }, "all is sent")
		require.Empty(t, requestSpans(tel))
		release()
		e.settled()
		spansEnd(t, tel, 3)
		require.NoError(t, e.Shutdown(t.Context()))
		if kind == transport.GRPC {
			last := tel.SpanRecorder.Ended()[len(tel.SpanRecorder.Ended())-1]
			require.Equal(t, "otlp.StreamExporter/ExportTraces", last.Name(), "the stream has one, too")
		}
	})
}

func TestSpansTellWhatAShutdownLost(t *testing.T) {
	silent := run(t, &testServer{stream: mute}, transport.GRPC)
	for result, cfg := range map[string]*Config{
		account.Shutdown.String(): testConfig(transport.GRPC, silent.addr, impatient),
		resultKept:                testConfig(transport.GRPC, silent.addr, impatient, onDisk),
	} {
		t.Run(result, func(t *testing.T) {
			tel := componenttest.NewTelemetry()
			defer func() { require.NoError(t, tel.Shutdown(context.Background())) }()
			set := exporter.Settings{ID: exportertest.NewNopSettings(metadata.Type).ID, TelemetrySettings: tel.NewTelemetrySettings()}
			e := startExporter(t, set, newDisks(), cfg)
			e.export(0, 1)
			eventually(t, func() bool { return e.balanced().Pending == 1 }, "it is sent")
			require.NoError(t, e.Shutdown(context.Background()))
			all := requestSpans(tel)
			require.Len(t, all, 1)
			require.Equal(t, result, all[0].attributes["result"])
		})
	}
}

// withPropagators sets global propagators for a test. The initial ones must not be set again: they delegate to the
// first ones that were set. So the test leaves empty ones behind, which is equivalent.
func withPropagators(t *testing.T, p propagation.TextMapPropagator) {
	otel.SetTextMapPropagator(p)
	t.Cleanup(func() { otel.SetTextMapPropagator(propagation.NewCompositeTextMapPropagator()) })
}

func TestRequestsOnAStreamCarryTheContextOfTheirSpan(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		withPropagators(t, propagation.NewCompositeTextMapPropagator(propagation.Baggage{}, propagation.TraceContext{}))
		s := run(t, &testServer{stream: breaking(2, status.Error(codes.Unavailable, "gone"))}, kind)
		e, tel := traced(t, testConfig(kind, s.addr))
		e.export(0, 2)
		require.Equal(t, int64(2), e.settled().Acked)
		require.NoError(t, e.Shutdown(t.Context()))
		expected := map[otlpstream.TraceContext]int{}
		for _, span := range requestSpans(tel) {
			expected[otlpstream.NewTraceContext(span.trace, span.span, byte(trace.FlagsSampled))] = 2 // sent twice
		}
		got := map[otlpstream.TraceContext]int{}
		for _, r := range s.seen() {
			got[r.trace]++
		}
		require.Len(t, expected, 2)
		require.Equal(t, expected, got)
	})
}

func TestNoContextIsSentWhereTheCollectorPropagatesNone(t *testing.T) {
	for name, propagator := range map[string]propagation.TextMapPropagator{
		"none": propagation.NewCompositeTextMapPropagator(), "another": propagation.Baggage{},
	} {
		t.Run(name, func(t *testing.T) {
			bothTransports(t, func(t *testing.T, kind string) {
				withPropagators(t, propagator)
				s := run(t, &testServer{stream: echo}, kind)
				e, _ := traced(t, testConfig(kind, s.addr))
				e.export(0, 1)
				e.settled()
				require.True(t, s.seen()[0].trace.IsZero())
			})
		})
	}
}

func TestASpanThatNobodyRecordsCostsNothing(t *testing.T) {
	d := &destination{streamExporter: &streamExporter{cfg: &Config{}}}
	p := d.newDelivery(context.Background(), []byte("x"), 1)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		p.noteDestination("a")
		p.noteStreamed(1, 2, 3)
		p.noteUnary(1)
		p.noteRetry(time.Second, nil)
		p.noteStreamLost(nil)
		p.noteDivided(1)
		p.noteResult(resultAcked)
		require.True(t, p.traceContext().IsZero())
	}))
}
