// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/metadata"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/metadatatest"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

func point(n int64, destination string, reason ...string) []metricdata.DataPoint[int64] {
	attributes := []attribute.KeyValue{
		attribute.String("exporter", "otlpstream/test"), attribute.String("data_type", "traces"),
		attribute.String("destination", destination),
	}
	if len(reason) > 0 {
		attributes = append(attributes, attribute.String("reason", reason[0]))
	}
	return []metricdata.DataPoint[int64]{{Value: n, Attributes: attribute.NewSet(attributes...)}}
}

func TestMetricsTellWhatBecameOfEverything(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: func(p *peer) error {
			for {
				r, err := p.recv()
				if err != nil {
					return eof(err)
				}
				switch {
				case r.name == batch(1):
					_ = p.send(otlpstream.Response{ID: r.id, Code: otlpstream.FailedNoneRetryable})
				case r.name == batch(2) && r.attempt == 0:
					_ = p.send(otlpstream.Response{ID: r.id, Code: otlpstream.FailedRetryable})
				default:
					p.ack(r.id)
					p.ack(r.id)
				}
			}
		}}, kind)
		tel := componenttest.NewTelemetry()
		defer func() { require.NoError(t, tel.Shutdown(context.Background())) }()
		set := exporter.Settings{
			ID: component.NewIDWithName(metadata.Type, "test"), TelemetrySettings: tel.NewTelemetrySettings(),
		}
		e := startExporter(t, set, componenttest.NewNopHost(), testConfig(kind, s.addr))
		e.export(0, 3)
		require.Equal(t, int64(2), e.settled().Acked)

		ignore, exemplars := metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars()
		metadatatest.AssertEqualExporterOtlpstreamReceivedItems(t, tel, point(3, s.addr), ignore, exemplars)
		metadatatest.AssertEqualExporterOtlpstreamAckedItems(t, tel, point(2, s.addr), ignore, exemplars)
		metadatatest.AssertEqualExporterOtlpstreamDroppedItems(t, tel, point(1, s.addr, "rejected"), ignore, exemplars)
		metadatatest.AssertEqualExporterOtlpstreamQueuedItems(t, tel, point(0, s.addr), ignore, exemplars)
		metadatatest.AssertEqualExporterOtlpstreamPendingItems(t, tel, point(0, s.addr), ignore, exemplars)
		metadatatest.AssertEqualExporterOtlpstreamInFlightRequests(t, tel, point(0, s.addr), ignore, exemplars)
		metadatatest.AssertEqualExporterOtlpstreamInFlightBytes(t, tel, point(0, s.addr), ignore, exemplars)
		metadatatest.AssertEqualExporterOtlpstreamDividedRequests(t, tel, point(0, s.addr), ignore, exemplars)
		metadatatest.AssertEqualExporterOtlpstreamRetryableFailures(t, tel, point(1, s.addr), ignore, exemplars)
		metadatatest.AssertEqualExporterOtlpstreamResentRequests(t, tel, point(1, s.addr), ignore, exemplars)
		metadatatest.AssertEqualExporterOtlpstreamStreaming(t, tel, point(1, s.addr), ignore, exemplars)
		metadatatest.AssertEqualExporterOtlpstreamStreamsOpened(t, tel, point(1, s.addr), ignore, exemplars)
		eventually(t, func() bool {
			m, err := tel.GetMetric("otelcol_exporter_otlpstream_unexpected_acks")
			return err == nil && m.Data.(metricdata.Sum[int64]).DataPoints[0].Value == 2
		}, "repeated acks are counted")
		require.NoError(t, e.Shutdown(context.Background()))
	})
}

func TestEachSignalHasAnAccountOnThePage(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: echo}, kind)
		tel := componenttest.NewTelemetry()
		defer func() { require.NoError(t, tel.Shutdown(context.Background())) }()
		set := exporter.Settings{ID: component.NewID(metadata.Type), TelemetrySettings: tel.NewTelemetrySettings()}
		to := func(addr string) *Config {
			return testConfig(kind, "", several(addr), impatient, func(cfg *Config) { cfg.Endpoints[0].Name = "gateway" })
		}
		traces := startExporter(t, set, componenttest.NewNopHost(), to(s.addr))
		traces.export(0, 3)
		require.Equal(t, int64(3), traces.settled().Acked)
		logs, err := createLogs(context.Background(), set, to("localhost:1"))
		require.NoError(t, err)
		require.NoError(t, logs.Start(context.Background(), componenttest.NewNopHost()))
		defer func() { require.NoError(t, logs.Shutdown(context.Background())) }()
		ld := plog.NewLogs()
		ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
		require.NoError(t, logs.ConsumeLogs(context.Background(), ld))

		values := func(metric string) map[string]int64 {
			m, err := tel.GetMetric("otelcol_exporter_otlpstream_" + metric)
			require.NoError(t, err)
			var points []metricdata.DataPoint[int64]
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				points = data.DataPoints
			case metricdata.Gauge[int64]:
				points = data.DataPoints
			}
			values := map[string]int64{}
			for _, p := range points {
				require.Equal(t, []string{"otlpstream", "gateway"}, []string{valueOf(p, "exporter"), valueOf(p, "destination")})
				values[valueOf(p, "data_type")] += p.Value
			}
			require.Len(t, values, 2)
			return values
		}
		received, acked, queued, pending := values("received_items"), values("acked_items"), values("queued_items"), values("pending_items")
		require.Equal(t, map[string]int64{"traces": 3, "logs": 1}, received)
		for signal, n := range received {
			require.Equal(t, n, acked[signal]+queued[signal]+pending[signal], signal)
		}
		require.Equal(t, map[string]int64{"traces": 3, "logs": 0}, acked)
	})
}

func valueOf(p metricdata.DataPoint[int64], attribute attribute.Key) string {
	v, _ := p.Attributes.Value(attribute)
	return v.AsString()
}
