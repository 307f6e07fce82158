// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/server"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
)

func TestEndpointsMayBeThoseOfWebSockets(t *testing.T) {
	for _, scheme := range []string{"", "http://", "ws://"} {
		for _, mode := range []string{server.Stream, server.Unary} {
			s := run(t, &testServer{stream: echo}, transport.WebSocket)
			e := newTestExporter(t, transport.WebSocket, scheme+s.addr, func(cfg *Config) { cfg.Mode = mode })
			e.export(0, 1)
			require.Equal(t, int64(1), e.settled().Acked, "%q %s", scheme, mode)
		}
	}
}
