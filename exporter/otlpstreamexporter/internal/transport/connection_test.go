// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/configtls"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/metadata"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// listen runs a server that sends a header on each call, and nothing else until it ends.
func listen(t *testing.T) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	s := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		err := stream.SendHeader(metadata.MD{})
		<-stream.Context().Done()
		return err
	}))
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(listener) }()
	t.Cleanup(func() { s.Stop(); <-done })
	return listener.Addr().String()
}

// Streams on a connection that is given up continue to their end, and the connection is closed with the last of them.
func TestAConnectionIsClosedWithItsLastCall(t *testing.T) {
	client := configgrpc.NewDefaultClientConfig()
	client.Endpoint, client.TLS = listen(t), configtls.ClientConfig{Insecure: true}
	made, err := New(t.Context(), GRPC, &Settings{
		Signal: otlpstream.Traces, Client: client, Connections: 1, Telemetry: componenttest.NewNopTelemetrySettings(), Wire: &atomic.Int64{},
	}, componenttest.NewNopHost())
	require.NoError(t, err)
	tr := made.(*grpcTransport)
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := tr.Open(ctx, 0, "")
	require.NoError(t, err)
	stream.Greeting()

	first, known := tr.conns[0], stream.(grpcConn).known
	tr.giveUp(first, known, time.Now().Add(-time.Hour))
	require.False(t, first.replaced, "it was heard since")
	tr.giveUp(first, known, time.Now())
	require.True(t, first.replaced)
	second, err := tr.use(0)
	require.NoError(t, err)
	require.NotSame(t, first, second)
	tr.leave(second)
	require.NotEqual(t, connectivity.Shutdown, first.GetState(), "the stream goes on")
	cancel()
	require.Error(t, stream.Recv(&otlpstream.Response{}))
	require.Equal(t, connectivity.Shutdown, first.GetState(), "nobody uses it")
	require.NoError(t, tr.Close())
}
