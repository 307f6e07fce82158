// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/exporter/otlpexporter"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// collectorExporter returns the Collector's own otlp exporter.
func collectorExporter(t *testing.T, r *sharedReceiver, conf map[string]any) exporter.Traces {
	f := otlpexporter.NewFactory()
	cfg := f.CreateDefaultConfig()
	conf["endpoint"], conf["tls"] = r.grpcAddr, map[string]any{"insecure": true}
	conf["timeout"] = patience
	conf["sending_queue"] = map[string]any{"enabled": false}
	require.NoError(t, confmap.NewFromStringMap(conf).Unmarshal(cfg))
	e, err := f.CreateTraces(context.Background(), exportertest.NewNopSettings(f.Type()), cfg)
	require.NoError(t, err)
	require.NoError(t, e.Start(context.Background(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, e.Shutdown(context.Background())) })
	return e
}

func TestTheCollectorsExporterTalksToUs(t *testing.T) {
	for _, compression := range []string{"none", "gzip", "snappy", "zstd"} {
		t.Run(compression, func(t *testing.T) {
			p := &pipeline{}
			e := collectorExporter(t, start(t, p), map[string]any{"compression": compression})
			for id := range uint64(50) {
				require.NoError(t, e.ConsumeTraces(context.Background(), spanNamed(numbered(id))))
			}
			require.Len(t, p.seen(), 50)
		})
	}
}

func TestTheCollectorsExporterObeysOurRetryInfo(t *testing.T) {
	const delay = 200 * time.Millisecond
	var calls atomic.Int64
	p := &pipeline{do: func(context.Context, string) error {
		if calls.Add(1) == 1 {
			return otlpstream.Busy("busy", delay).Err()
		}
		return nil
	}}
	begun := time.Now()
	e := collectorExporter(t, start(t, p), map[string]any{"retry_on_failure": map[string]any{"initial_interval": "1ms"}})
	require.NoError(t, e.ConsumeTraces(context.Background(), spanNamed("x")))
	require.Len(t, p.seen(), 2)
	require.GreaterOrEqual(t, time.Since(begun), delay)

	rejecting := &pipeline{do: func(context.Context, string) error { return status.Error(codes.InvalidArgument, "bad") }}
	require.Error(t, collectorExporter(t, start(t, rejecting), map[string]any{}).ConsumeTraces(context.Background(), spanNamed("x")))
	require.Len(t, rejecting.seen(), 1, "it is not sent again")
}
