// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/godwit-otel/godwit/receiver/remotewritereceiver/internal/metadata"
)

func TestConfig(t *testing.T) {
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	load := func(name string) *Config {
		sub, err := conf.Sub(component.NewIDWithName(metadata.Type, name).String())
		require.NoError(t, err)
		cfg := createDefaultConfig().(*Config)
		require.NoError(t, sub.Unmarshal(cfg))
		require.NoError(t, cfg.Validate())
		return cfg
	}

	defaults := load("defaults")
	require.Equal(t, "localhost:19291", defaults.HTTP.NetAddr.Endpoint)
	require.Equal(t, "/api/v1/write", defaults.Path)
	require.Equal(t, int64(20<<20), defaults.HTTP.MaxRequestBodySize)
	require.Equal(t, 32<<20, defaults.MaxDecodedBodySize)

	want := createDefaultConfig().(*Config)
	want.HTTP.NetAddr.Endpoint = "0.0.0.0:19291"
	want.HTTP.MaxRequestBodySize = 1 << 20
	want.HTTP.ReadTimeout = 30 * time.Second
	want.Path = "/write"
	want.MaxDecodedBodySize = 8 << 20
	want.MaxMemory = 256 << 20
	want.ScopesFromLabels = true
	want.TargetInfo = TargetInfoConfig{ToResource: true, MaxTargets: 100, TenantHeader: "X-Team"}
	want.Replicas = ReplicasConfig{
		Deduplicate: true, ClusterLabel: "prometheus", ReplicaLabel: "replica", FailoverTimeout: time.Minute, MaxClusters: 20,
		TenantHeader: "X-Team",
	}
	require.Equal(t, want, load(""))
}

func TestConfigFaultsAreAllNamed(t *testing.T) {
	cfg := &Config{Path: "write", MaxMemory: 1}
	cfg.HTTP.CompressionAlgorithms = []string{"gzip"}
	err := cfg.Validate()
	for _, key := range []string{"`endpoint`", "`compression_algorithms`", "`path`", "`max_decoded_body_size`", "`max_memory`"} {
		require.ErrorContains(t, err, key)
	}
}

// TestNameOfContribsReceiver: contrib's receiver has the same keys, and its type is accepted.
func TestNameOfContribsReceiver(t *testing.T) {
	create := func(name string) error {
		set := settings()
		set.ID = component.NewID(component.MustNewType(name))
		_, err := NewFactory().CreateMetrics(t.Context(), set, createDefaultConfig(), consumertest.NewNop())
		return err
	}
	require.NoError(t, create("remotewrite"))
	require.NoError(t, create("prometheusremotewrite"))
	require.Error(t, create("prometheus"))
}
