// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/metadata"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/metadatatest"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

func point(n int64, reason string) metricdata.DataPoint[int64] {
	p := metricdata.DataPoint[int64]{Value: n}
	if reason != "" {
		p.Attributes = attribute.NewSet(attribute.String("reason", reason))
	}
	return p
}

func TestMetricsTellWhatBecameOfEverything(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		s := run(t, &server{stream: func(p *peer) error {
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
		}}, transport)
		tel := componenttest.NewTelemetry()
		defer func() { require.NoError(t, tel.Shutdown(context.Background())) }()
		set := exporter.Settings{
			ID: exportertest.NewNopSettings(metadata.Type).ID, TelemetrySettings: tel.NewTelemetrySettings(),
		}
		e := startExporter(t, set, componenttest.NewNopHost(), testConfig(transport, s.addr))
		e.export(0, 3)
		require.Equal(t, int64(2), e.settled().acked)

		ignore, exemplars := metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars()
		metadatatest.AssertEqualExporterOtlpstreamReceivedItems(t, tel, []metricdata.DataPoint[int64]{point(3, "")}, ignore, exemplars)
		metadatatest.AssertEqualExporterOtlpstreamAckedItems(t, tel, []metricdata.DataPoint[int64]{point(2, "")}, ignore, exemplars)
		metadatatest.AssertEqualExporterOtlpstreamDroppedItems(t, tel, []metricdata.DataPoint[int64]{point(1, "rejected")}, ignore, exemplars)
		metadatatest.AssertEqualExporterOtlpstreamQueuedItems(t, tel, []metricdata.DataPoint[int64]{point(0, "")}, ignore, exemplars)
		metadatatest.AssertEqualExporterOtlpstreamPendingItems(t, tel, []metricdata.DataPoint[int64]{point(0, "")}, ignore, exemplars)
		metadatatest.AssertEqualExporterOtlpstreamRetryableFailures(t, tel, []metricdata.DataPoint[int64]{point(1, "")}, ignore, exemplars)
		metadatatest.AssertEqualExporterOtlpstreamResentRequests(t, tel, []metricdata.DataPoint[int64]{point(1, "")}, ignore, exemplars)
		metadatatest.AssertEqualExporterOtlpstreamStreaming(t, tel, []metricdata.DataPoint[int64]{point(1, "")}, ignore, exemplars)
		metadatatest.AssertEqualExporterOtlpstreamStreamsOpened(t, tel, []metricdata.DataPoint[int64]{point(1, "")}, ignore, exemplars)
		eventually(t, func() bool {
			m, err := tel.GetMetric("otelcol_exporter_otlpstream_unexpected_acks")
			return err == nil && m.Data.(metricdata.Sum[int64]).DataPoints[0].Value == 2
		}, "repeated acks are counted")
	})
}
