// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/metadata"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/server"
)

// statuses is a host that records the reported statuses.
type statuses struct {
	component.Host

	mu   sync.Mutex
	list []componentstatus.Status
}

func (s *statuses) Report(event *componentstatus.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, event.Status())
}

func (s *statuses) all() []componentstatus.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]componentstatus.Status(nil), s.list...)
}

func TestLogAndStatusTellWhenADestinationGoesAndComesBack(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		for _, mode := range []string{server.Stream, server.Unary} {
			t.Run(mode, func(t *testing.T) {
				live, other := run(t, &testServer{stream: echo}, kind), run(t, &testServer{stream: echo}, kind)
				core, logs := observer.New(zap.InfoLevel)
				set := exportertest.NewNopSettings(metadata.Type)
				set.Logger = zap.New(core)
				host := &statuses{Host: componenttest.NewNopHost()}
				e := startExporter(t, set, host, testConfig(kind, "", several(live.addr, other.addr), func(cfg *Config) { cfg.Mode = mode }))
				e.export(0, 10)
				e.settled()
				require.Empty(t, host.all())

				live.stop()
				e.export(10, 10)
				eventually(t, func() bool { return !e.Snapshot().Destinations[0].Healthy }, "it is noticed")
				require.True(t, e.Snapshot().Destinations[1].Healthy)
				live.start(t, kind)
				require.Equal(t, int64(20), e.settled().Acked)
				eventually(t, func() bool { return e.Snapshot().Destinations[0].Healthy }, "this, too")
				require.NoError(t, e.Shutdown(t.Context()))
				require.Equal(t, []componentstatus.Status{componentstatus.StatusRecoverableError, componentstatus.StatusOK}, host.all())
				lines := logs.FilterMessageSnippet("The destination").FilterField(zap.String("destination", "a"))
				require.Equal(t, 2, lines.Len(), "one when it goes, one when it comes")
			})
		}
	})
}
