// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/metadata"
)

// A proxy ends a stream on which it has seen no data for a while.
func TestTheEndOfAnIdleStreamIsNoAlarm(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: func(p *peer) error {
			r, err := p.recv()
			if err != nil {
				return eof(err)
			}
			p.ack(r.id)
			return status.Error(codes.Unavailable, "idle")
		}}, kind)
		core, logs := observer.New(zap.InfoLevel)
		set := exportertest.NewNopSettings(metadata.Type)
		set.Logger = zap.New(core)
		e := startExporter(t, set, componenttest.NewNopHost(), testConfig(kind, s.addr))
		const n = 5
		for i := range n {
			e.export(i, 1)
			eventually(t, func() bool {
				snapshot := e.dest.snapshot()
				return snapshot.Open+snapshot.Draining == 0 && snapshot.Items.Acked == int64(i+1)
			}, "it is answered, and the stream ends")
			require.True(t, e.dest.snapshot().Healthy)
		}
		require.Equal(t, map[string]int64{"idle": n}, e.dest.snapshot().Closed)
		require.Zero(t, logs.FilterMessageSnippet("does not answer").Len())
		require.Len(t, s.seen(), n, "nothing is sent twice")
	})
}
