// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configauth"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configoptional"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
)

func TestWhatAQueueKeeps(t *testing.T) {
	for name, c := range map[string]struct {
		change    func(*Config)
		keys      []string
		all, auth bool
	}{
		"nothing":       {change: func(*Config) {}},
		"keys":          {change: func(cfg *Config) { cfg.MetadataKeys = []string{"a"}; authenticated(cfg) }, keys: []string{"a"}, auth: true},
		"authenticated": {change: authenticated, all: true, auth: true},
	} {
		cfg := testConfig(transport.GRPC, "localhost:1", c.change)
		got := (&destination{streamExporter: &streamExporter{cfg: cfg}, client: cfg.Client}).queueSettings()
		require.Equal(t, c.keys, got.Keys, name)
		require.Equal(t, c.all, got.All, name)
		require.Equal(t, c.auth, got.Auth, name)
	}
}

func authenticated(cfg *Config) {
	cfg.Client.Auth = configoptional.Some(configauth.Config{AuthenticatorID: diskID})
}

func TestMetadataKeysAreNamesOfHeaders(t *testing.T) {
	for _, keys := range [][]string{{"x-tenant", "X-Tenant"}, {""}, {"content-type"}, {"Host"}, {"a b"}, {"x-bytes-bin"}, {"grpc-timeout"}, {":path"}} {
		cfg := testConfig(transport.GRPC, "localhost:1", func(cfg *Config) { cfg.MetadataKeys = keys })
		require.ErrorContains(t, cfg.Validate(), "`metadata_keys`", keys)
	}
	cfg := testConfig(transport.GRPC, "localhost:1", func(cfg *Config) {
		cfg.MetadataKeys = []string{"Authorization", "x-scope-orgid"}
		cfg.MetadataCardinalityLimit = 0
		cfg.Client.Headers = configopaque.MapList{{Name: "X-Scope-OrgID", Value: "blue"}}
	})
	require.EqualError(t, cfg.Validate(), "`metadata_cardinality_limit` must be positive, got 0\n"+
		"`headers` must not have \"X-Scope-OrgID\", which is one of `metadata_keys`: it would be sent twice")
}
