// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/godwit-otel/godwit/internal/audience"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

func TestWhoHearsOfRequests(t *testing.T) {
	unheard := func(set component.TelemetrySettings) bool { return audience.None(set, otelhttp.ScopeName) }
	require.True(t, unheard(componenttest.NewNopTelemetrySettings()))

	spans := componenttest.NewNopTelemetrySettings()
	recorder := tracetest.NewSpanRecorder()
	spans.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	require.False(t, unheard(spans))
	require.Empty(t, recorder.Ended(), "who only asks tells nothing")

	metrics := componenttest.NewNopTelemetrySettings()
	reader := sdkmetric.NewManualReader()
	metrics.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	require.False(t, unheard(metrics))
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &all))
	require.Empty(t, all.ScopeMetrics, "who only asks tells nothing")

	// The Collector's views drop them at levels below `detailed`.
	metrics.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()), sdkmetric.WithView(sdkmetric.NewView(
		sdkmetric.Instrument{Scope: instrumentation.Scope{Name: otelhttp.ScopeName}}, sdkmetric.Stream{Aggregation: sdkmetric.AggregationDrop{}},
	)))
	require.True(t, unheard(metrics))

	withPropagators(t, propagation.TraceContext{})
	require.False(t, unheard(componenttest.NewNopTelemetrySettings()), "a trace goes on behind the receiver")
}

func TestTheSpanOfARequestTellsWhichItIsAndWhatBecameOfIt(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		tel := componenttest.NewTelemetry()
		defer func() { require.NoError(t, tel.Shutdown(context.Background())) }()
		traces, err := NewFactory().CreateTraces(context.Background(),
			receiver.Settings{ID: settings().ID, TelemetrySettings: tel.NewTelemetrySettings()}, testConfig(), &pipeline{do: choosy})
		require.NoError(t, err)
		r := traces.(*sharedReceiver)
		require.NoError(t, r.Start(context.Background(), componenttest.NewNopHost()))
		c := dial(t, r, 0)
		require.NoError(t, c.send(&otlpstream.Request{ID: 1, Attempt: 2, Data: payload(t, "good")}))
		c.answer()
		require.NoError(t, c.send(&otlpstream.Request{ID: 2, Data: payload(t, "busy")}))
		c.answer()
		malformed := []byte{0x12, 2, 0xff, 0xff}
		require.NoError(t, c.send(&otlpstream.Request{ID: 3, Data: malformed}))
		c.answer()
		require.NoError(t, c.finish())
		c.end()
		require.NoError(t, r.Shutdown(context.Background()))

		type told struct {
			id, attempt, bytes, accepted, refused int64
			status                                codes.Code
		}
		var got []told
		for _, span := range tel.SpanRecorder.Ended() {
			if !strings.HasSuffix(span.Name(), "/TraceDataReceived") {
				continue
			}
			set := attribute.NewSet(span.Attributes()...)
			number := func(key attribute.Key) int64 {
				v, ok := set.Value(key)
				require.True(t, ok, key)
				return v.AsInt64()
			}
			got = append(got, told{
				number("id"), number("attempt"), number("bytes"), number("accepted_spans"), number("refused_spans"), span.Status().Code,
			})
		}
		size := int64(len(payload(t, "good")))
		require.ElementsMatch(t, []told{
			{1, 2, size, 1, 0, codes.Unset},
			{2, 0, size, 0, 1, codes.Error},
			{3, 0, int64(len(malformed)), 0, 0, codes.Error},
		}, got)
	})
}

// withPropagators sets global propagators for a test. The initial ones must not be set again: they delegate to the
// first ones that were set. So the test leaves empty ones behind, which is equivalent.
func withPropagators(t *testing.T, p propagation.TextMapPropagator) {
	otel.SetTextMapPropagator(p)
	t.Cleanup(func() { otel.SetTextMapPropagator(propagation.NewCompositeTextMapPropagator()) })
}

func TestTheSpanOfARequestGoesOnWithTheTraceOfItsClient(t *testing.T) {
	traceID, spanID := trace.TraceID{1, 15: 2}, trace.SpanID{3, 7: 4}
	sampled := otlpstream.NewTraceContext(traceID, spanID, byte(trace.FlagsSampled))
	for name, c := range map[string]struct {
		propagator propagation.TextMapPropagator
		sent       otlpstream.TraceContext
		goesOn     bool
	}{
		"a context":                     {propagation.TraceContext{}, sampled, true},
		"none":                          {propagation.TraceContext{}, otlpstream.TraceContext{}, false},
		"an invalid one":                {propagation.TraceContext{}, otlpstream.NewTraceContext(traceID, trace.SpanID{}, 1), false},
		"one that is not to be trusted": {propagation.Baggage{}, sampled, false},
	} {
		t.Run(name, func(t *testing.T) {
			withPropagators(t, c.propagator)
			bothTransports(t, func(t *testing.T, dial dialer) {
				tel := componenttest.NewTelemetry()
				defer func() { require.NoError(t, tel.Shutdown(context.Background())) }()
				p := &pipeline{}
				traces, err := NewFactory().CreateTraces(context.Background(),
					receiver.Settings{ID: settings().ID, TelemetrySettings: tel.NewTelemetrySettings()}, testConfig(), p)
				require.NoError(t, err)
				r := traces.(*sharedReceiver)
				require.NoError(t, r.Start(context.Background(), componenttest.NewNopHost()))
				client := dial(t, r, 0)
				require.NoError(t, client.send(&otlpstream.Request{ID: 1, Trace: c.sent, Data: payload(t, "x")}))
				client.answer()
				require.NoError(t, client.finish())
				client.end()
				require.NoError(t, r.Shutdown(context.Background()))

				var own, parent trace.SpanContext
				for _, span := range tel.SpanRecorder.Ended() {
					if strings.HasSuffix(span.Name(), "/TraceDataReceived") {
						own, parent = span.SpanContext(), span.Parent()
					}
				}
				require.True(t, own.IsValid())
				require.Equal(t, own, trace.SpanContextFromContext(p.ctxs[0]), "the pipeline goes on with it")
				require.Equal(t, c.goesOn, parent.IsValid())
				require.Equal(t, c.goesOn, own.TraceID() == traceID)
				if c.goesOn {
					require.Equal(t, spanID, parent.SpanID())
					require.True(t, parent.IsRemote())
				}
			})
		})
	}
}

func TestASpanThatNobodyRecordsCostsNothing(t *testing.T) {
	ctx, request := context.Background(), &otlpstream.Request{ID: 1, Data: payload(t, "x")}
	r := prepare(t, &pipeline{})
	defer r.Shutdown(context.Background())
	r.propagates = true
	s := r.newSession(&recorded{}, otlpstream.Traces, 0, transportStream, otlpstream.Limits{MaxMessage: 1 << 20})
	require.Zero(t, testing.AllocsPerRun(100, func() {
		describe(ctx, request)
		_, _ = s.traced(ctx, request)
	}))
}
