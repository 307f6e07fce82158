// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

var nopHost = componenttest.NewNopHost()

func TestConfigHasEveryKey(t *testing.T) {
	conf, err := confmaptest.LoadConf("testdata/config.yaml")
	require.NoError(t, err)
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, conf.Unmarshal(cfg))
	require.NoError(t, cfg.Validate())
	want := createDefaultConfig().(*Config)
	want.Protocols.GRPC.GetOrInsertDefault()
	want.Protocols.HTTP.GetOrInsertDefault()
	require.Equal(t, want, cfg, "the file shows the defaults")
}

func TestConfigFaultsNameTheirKeys(t *testing.T) {
	require.ErrorContains(t, createDefaultConfig().(*Config).Validate(), "`protocols`")
	cfg := &Config{Protocols: Protocols{
		GRPC: configoptional.Some(configgrpc.NewDefaultServerConfig()),
		HTTP: configoptional.Some(confighttp.ServerConfig{}),
	}}
	cfg.Streams.MaxAge, cfg.Streams.MaxRequests, cfg.Streams.Memory = -1, -1, -1
	err := cfg.Validate()
	for _, key := range []string{
		"in_flight::bytes", "in_flight::requests_per_stream", "in_flight::bytes_per_stream", "streams::max", "streams::max_age",
		"streams::max_requests", "streams::memory", "deduplicate::max_slots", "drain_timeout", "protocols::http::max_request_body_size",
	} {
		require.ErrorContains(t, err, "`"+key+"` must")
	}
	wide := testConfig()
	wide.InFlight.RequestsPerStream = mostRequestsPerStream + 1
	require.ErrorContains(t, wide.Validate(), "`in_flight::requests_per_stream` must be at most")
	wide = testConfig()
	wide.Protocols.GRPC.Get().ReadBufferSize = math.MaxInt
	require.ErrorContains(t, wide.Validate(), "`protocols::grpc::read_buffer_size` must be at most")
	require.NoError(t, testConfig().Validate())
	require.NoError(t, confmap.NewFromStringMap(nil).Unmarshal(createDefaultConfig()))
}
