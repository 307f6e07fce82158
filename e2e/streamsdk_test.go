// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/log"
	otelmetric "go.opentelemetry.io/otel/metric"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/otlpserver"
	"github.com/godwit-otel/godwit/e2e/repository"
)

// sdk holds a program's exporters.
type sdk struct {
	spans   sdktrace.SpanExporter
	metrics sdkmetric.Exporter
	logs    sdklog.Exporter
}

// use makes a span, a metric and a log record with the SDK, and sends them.
func (k sdk) use(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	flock := resource.NewSchemaless(attribute.String("service.name", "flock"))
	traces := sdktrace.NewTracerProvider(sdktrace.WithBatcher(k.spans), sdktrace.WithResource(flock))
	metrics := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(k.metrics)), sdkmetric.WithResource(flock))
	logs := sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewBatchProcessor(k.logs)), sdklog.WithResource(flock))

	ctx, span := traces.Tracer("birds").Start(ctx, "fly")
	honks, err := metrics.Meter("birds").Int64Counter("honks")
	require.NoError(t, err)
	honks.Add(ctx, 42, otelmetric.WithAttributes(attribute.String("flock", "north")))
	var record log.Record
	record.SetBody(attribute.StringValue("off we go"))
	logs.Logger("birds").Emit(ctx, record)
	span.End()
	for _, end := range []func(context.Context) error{traces.Shutdown, metrics.Shutdown, logs.Shutdown} {
		require.NoError(t, end(t.Context()))
	}
}

// Programs with OpenTelemetry's SDK can send to our receiver without changes.
func TestStreamReceiverServesTheSDK(t *testing.T) {
	t.Parallel()
	f := func(name string, exporters func(t *testing.T, r *receiving) sdk) {
		t.Run(name, func(t *testing.T) {
			destination := otlpserver.New(t, otlpserver.Options{})
			r := startReceiving(t, destination.GRPCAddr())
			exporters(t, r).use(t)

			require.Len(t, destination.Traces(), 1)
			require.Len(t, destination.Metrics(), 1)
			require.Len(t, destination.Logs(), 1)
			spans := destination.Traces()[0].ResourceSpans().At(0)
			isFlock(t, spans.Resource())
			span := spans.ScopeSpans().At(0).Spans().At(0)
			assert.Equal(t, "fly", span.Name())
			scope := destination.Metrics()[0].ResourceMetrics().At(0).ScopeMetrics().At(0)
			isFlock(t, destination.Metrics()[0].ResourceMetrics().At(0).Resource())
			assert.Equal(t, "birds", scope.Scope().Name())
			assert.Equal(t, "honks", scope.Metrics().At(0).Name())
			assert.EqualValues(t, 42, scope.Metrics().At(0).Sum().DataPoints().At(0).IntValue())
			records := destination.Logs()[0].ResourceLogs().At(0)
			isFlock(t, records.Resource())
			record := records.ScopeLogs().At(0).LogRecords().At(0)
			assert.Equal(t, "off we go", record.Body().Str())
			assert.Equal(t, span.SpanID(), record.SpanID(), "it belongs to the span")
		})
	}
	f("grpc", func(t *testing.T, r *receiving) sdk {
		spans, err := otlptracegrpc.New(t.Context(), otlptracegrpc.WithEndpoint(r.grpc), otlptracegrpc.WithInsecure())
		require.NoError(t, err)
		metrics, err := otlpmetricgrpc.New(t.Context(), otlpmetricgrpc.WithEndpoint(r.grpc), otlpmetricgrpc.WithInsecure(), otlpmetricgrpc.WithCompressor("gzip"))
		require.NoError(t, err)
		logs, err := otlploggrpc.New(t.Context(), otlploggrpc.WithEndpoint(r.grpc), otlploggrpc.WithInsecure())
		require.NoError(t, err)
		return sdk{spans, metrics, logs}
	})
	f("http", func(t *testing.T, r *receiving) sdk {
		spans, err := otlptracehttp.New(t.Context(), otlptracehttp.WithEndpoint(r.http), otlptracehttp.WithInsecure())
		require.NoError(t, err)
		metrics, err := otlpmetrichttp.New(t.Context(), otlpmetrichttp.WithEndpoint(r.http), otlpmetrichttp.WithInsecure(), otlpmetrichttp.WithCompression(otlpmetrichttp.GzipCompression))
		require.NoError(t, err)
		logs, err := otlploghttp.New(t.Context(), otlploghttp.WithEndpoint(r.http), otlploghttp.WithInsecure())
		require.NoError(t, err)
		return sdk{spans, metrics, logs}
	})
}

func isFlock(t *testing.T, r pcommon.Resource) {
	t.Helper()
	name, _ := r.Attributes().Get("service.name")
	assert.Equal(t, "flock", name.Str())
}

// The Collector's own OTLP exporter and receiver work with ours at either end of a link: data pass through a chain of
// both, each hop in its own process.
func TestStreamComponentsMixWithTheCollectorsOwn(t *testing.T) {
	t.Parallel()
	overBoth(t, func(t *testing.T, transport string) {
		destination := otlpserver.New(t, otlpserver.Options{})
		// otlp exporter -> otlpstream receiver -> otlpstream exporter, unary -> otlp receiver -> destination
		last := startOld(t, destination.GRPCAddr())
		middle := &receiving{grpc: freeport.Addr(t), http: freeport.Addr(t)}
		config := fmt.Sprintf(streamServer, middle.grpc, middle.http, last.addr(transport))
		middle.collector = startDistribution(t, repository.Full, config, fmt.Sprintf(unaryOnward, last.addr(transport), transport))
		first := startOld(t, middle.grpc)
		l := &ledger{padding: 100, withMetrics: true}
		stop := l.flood(t, first.grpc)
		flows(t, l, streamProgress)
		stop()
		ok, why := l.arrived(destination)()
		assert.True(t, ok, "each hop answers when the next has: %s", why)
		assert.Zero(t, l.repeated(t, destination))
		assert.Zero(t, middle.metric(t, "otelcol_exporter_otlpstream_streams_opened"))
	})
}

const unaryOnward = `
exporters: {otlpstream: {endpoint: %s, transport: %s, mode: unary, tls: {insecure: true}, sending_queue: {enabled: false}}}
service: {pipelines: {traces: {exporters: [otlpstream]}, logs: {exporters: [otlpstream]}, metrics: {exporters: [otlpstream]}}}
`
