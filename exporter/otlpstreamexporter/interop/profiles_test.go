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
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/collector/receiver/xreceiver"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver"
)

// numberedProfiles returns profiles of three samples each, with the number in their dictionary.
func numberedProfiles(n int) pprofile.Profiles {
	pd := pprofile.NewProfiles()
	pd.Dictionary().StringTable().Append("", batch(n))
	p := pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	for i := range 3 {
		p.Samples().AppendEmpty().Values().Append(int64(n + i))
	}
	return pd
}

func startProfilesReceiver(t *testing.T, f receiver.Factory, transport string, to *consumertest.ProfilesSink) string {
	addr := freePort(t)
	protocol := map[string]string{transportGRPC: "grpc", transportWebSocket: "http"}[transport]
	cfg := f.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"protocols": map[string]any{protocol: map[string]any{"endpoint": addr}},
	}).Unmarshal(cfg))
	r, err := f.(xreceiver.Factory).CreateProfiles(t.Context(), receivertest.NewNopSettings(f.Type()), cfg, to)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, r.Shutdown(context.Background())) })
	return addr
}

func exportProfiles(t *testing.T, cfg *otlpstreamexporter.Config, n int) {
	f := otlpstreamexporter.NewFactory()
	e, err := f.(xexporter.Factory).CreateProfiles(t.Context(), exportertest.NewNopSettings(f.Type()), cfg)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	for i := range n {
		require.NoError(t, e.ConsumeProfiles(t.Context(), numberedProfiles(i)))
	}
	require.NoError(t, e.Shutdown(context.Background()))
}

func TestProfilesReachOursAndTheCollectorsReceiver(t *testing.T) {
	const n = 30
	for name, f := range map[string]receiver.Factory{"ours": otlpstreamreceiver.NewFactory(), "the Collector's": otlpreceiver.NewFactory()} {
		bothTransports(t, func(t *testing.T, transport string) {
			for _, compression := range []string{"none", "gzip", "zstd"} {
				for _, mode := range []string{"auto", "unary"} {
					t.Run(name+"/"+compression+"/"+mode, func(t *testing.T) {
						to := new(consumertest.ProfilesSink)
						addr := startProfilesReceiver(t, f, transport, to)
						exportProfiles(t, testConfig(transport, addr, func(cfg *otlpstreamexporter.Config) {
							cfg.Mode = mode
							require.NoError(t, cfg.Client.Compression.UnmarshalText([]byte(compression)))
						}), n)
						seen := map[string]int{}
						for _, pd := range to.AllProfiles() {
							require.Equal(t, 3, pd.SampleCount())
							seen[pd.Dictionary().StringTable().At(1)]++
						}
						require.Len(t, seen, n)
					})
				}
			}
		})
	}
}
