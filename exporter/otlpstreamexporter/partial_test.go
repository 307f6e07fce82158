// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/account"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/metadata"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

func TestAPartThatIsRefusedIsCountedAndLogged(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: func(p *peer) error {
			for {
				r, err := p.recv()
				if err != nil {
					return eof(err)
				}
				_ = p.send(otlpstream.Response{ID: r.id, Rejected: 2, Message: "too old"})
			}
		}}, kind)
		core, logs := observer.New(zap.WarnLevel)
		set := exportertest.NewNopSettings(metadata.Type)
		set.Logger = zap.New(core)
		e := startExporter(t, set, componenttest.NewNopHost(), testConfig(kind, s.addr))
		const n = 20
		for i := range n {
			require.NoError(t, e.ConsumeTraces(context.Background(), spans(batch(i), 3)))
		}
		b := e.settled()
		require.Equal(t, int64(n), b.Acked)
		require.Equal(t, int64(2*n), b.Dropped[account.Rejected])
		require.Len(t, s.names(), n)
		require.Equal(t, 1, logs.Len(), "not a line for each")
		require.Equal(t, map[string]any{"endpoint": s.addr, "rejected_items": int64(2), "requests": int64(1), "message": "too old"}, logs.All()[0].ContextMap())
	})
}

func TestWhatIsSaidOfPartsIsDoubted(t *testing.T) {
	s := run(t, &testServer{stream: func(p *peer) error {
		for i := 0; ; i++ {
			r, err := p.recv()
			if err != nil {
				return eof(err)
			}
			if i == 0 {
				_ = p.send(otlpstream.Response{IDs: []uint64{r.id}, Rejected: 1})
				continue
			}
			_ = p.send(otlpstream.Response{ID: r.id, Rejected: 1 << 63})
		}
	}}, transport.GRPC)
	e := newTestExporter(t, transport.GRPC, s.addr)
	e.export(0, 1)
	require.Equal(t, int64(1), e.settled().Acked)
	require.NoError(t, e.ConsumeTraces(context.Background(), spans("b", 3)))
	b := e.settled()
	require.Equal(t, []int64{1, 3}, []int64{b.Acked, b.Dropped[account.Rejected]})
}
