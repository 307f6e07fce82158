// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.opentelemetry.io/collector/processor/memorylimiterprocessor"
	"go.opentelemetry.io/collector/processor/processortest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/internal/otlpstream"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver"
)

// The error of the Collector's memory_limiter has no type: the receiver recognizes its text, and this test fails when
// that changes.
func TestTheReceiverKnowsTheMemoryLimiter(t *testing.T) {
	f := memorylimiterprocessor.NewFactory()
	cfg := f.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"check_interval": "10ms", "limit_mib": 1, "spike_limit_mib": 0}).Unmarshal(cfg))
	limiter, err := f.CreateTraces(t.Context(), processortest.NewNopSettings(f.Type()), cfg, new(consumertest.TracesSink))
	require.NoError(t, err)
	require.NoError(t, limiter.Start(t.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(t, limiter.Shutdown(context.Background())) }()
	addr := freePort(t)
	r := newTracesReceiver(t, otlpstreamreceiver.NewFactory(), transportGRPC, addr, limiter)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(t, r.Shutdown(context.Background())) }()

	cc, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer cc.Close()
	eventually(t, func() bool {
		_, err := ptraceotlp.NewGRPCClient(cc).Export(t.Context(), ptraceotlp.NewExportRequestFromTraces(spans("x", 1)))
		_, asked := otlpstream.RetryDelay(status.Convert(err))
		return asked && status.Code(err) == codes.Unavailable
	}, "clients are told to wait")
}
