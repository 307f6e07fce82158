// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter/exportertest"

	"github.com/godwit-otel/godwit/internal/promwrite"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/metadata"
)

// BenchmarkExporter sends known series through the factory and a real socket to a destination that only reads the
// header.
func BenchmarkExporter(b *testing.B) {
	const series = 1000
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		promwrite.Written{Samples: 1 << 30}.SetHeaders(w.Header())
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	cfg := NewDefaultConfig()
	cfg.Endpoint = server.URL
	cfg.Labels.TargetInfo.Enabled = false
	made, err := NewFactory().CreateMetrics(b.Context(), exportertest.NewNopSettings(metadata.Type), cfg)
	require.NoError(b, err)
	require.NoError(b, made.Start(b.Context(), componenttest.NewNopHost()))
	md := gauges(series, 0)
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		n++
		points := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints()
		for i := range points.Len() {
			points.At(i).SetTimestamp(points.At(i).Timestamp() + 1e9)
		}
		if err := made.ConsumeMetrics(context.Background(), md); err != nil {
			b.Fatal(err)
		}
	}
	require.NoError(b, made.Shutdown(context.Background()))
	outcome := made.(*remoteWrite).Snapshot().Destinations[0].Outcome
	require.Equal(b, int64(n*series), outcome.Samples)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n*series), "ns/sample")
	b.ReportMetric(float64(outcome.WireBytes)/float64(n*series), "wireB/sample")
}
