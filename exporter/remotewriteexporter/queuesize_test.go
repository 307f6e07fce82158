// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/metadata"
)

// TestAQueueInMemoryFollowsTheMemory: a server that is away must not end the process. What the configuration says
// counts, and on disk there is space.
func TestAQueueInMemoryFollowsTheMemory(t *testing.T) {
	const mib = 1 << 20
	several := func(c *Config, sizes ...int64) {
		for _, size := range sizes {
			to := EndpointConfig{HTTP: defaultClient()}
			to.HTTP.Endpoint, to.Queue.Size = "http://127.0.0.1:1", size
			c.Endpoints = append(c.Endpoints, to)
		}
	}
	one := func(c *Config) { c.Endpoint = "http://127.0.0.1:1" }
	for name, test := range map[string]struct {
		memory int64
		onDisk bool
		change func(*Config)
		want   []int64
		said   string
	}{
		"much":          {16 << 30, false, one, []int64{64 * mib}, ""},
		"not known":     {0, false, one, []int64{64 * mib}, ""},
		"little":        {64 * mib, false, one, []int64{8 * mib}, "an eighth of the memory there is (64MiB)"},
		"next to none":  {mib, false, one, []int64{mib}, "the least there is, with 1MiB of memory"},
		"on disk":       {64 * mib, true, one, []int64{64 * mib}, ""},
		"configured":    {64 * mib, false, func(c *Config) { one(c); c.Queue.Size = 50 * mib }, []int64{50 * mib}, ""},
		"shared":        {64 * mib, false, func(c *Config) { several(c, 0, 3*mib) }, []int64{8 * mib, 3 * mib}, "an eighth of the memory there is (64MiB)"},
		"own, all":      {64 * mib, false, func(c *Config) { several(c, 2*mib, 3*mib) }, []int64{2 * mib, 3 * mib}, ""},
		"sharded":       {64 * mib, false, func(c *Config) { several(c, 0, 0); c.ShardByURL.Enabled = true }, []int64{4 * mib, 4 * mib}, "a 16th of the memory there is (64MiB)"},
		"sharded, much": {16 << 30, false, func(c *Config) { several(c, 0, 0); c.ShardByURL.Enabled = true }, []int64{64 * mib, 64 * mib}, ""},
		"rules of their own": {64 * mib, false, func(c *Config) {
			several(c, 0, 0)
			c.Endpoints[1].WriteRelabelConfigs = []RelabelConfig{{
				SourceLabels: []string{"pod"}, Separator: ";", Regex: "x", Replacement: "$1", Action: "drop",
			}}
		}, []int64{4 * mib, 4 * mib}, "a 16th of the memory there is (64MiB)"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := NewDefaultConfig()
			test.change(cfg)
			core, logs := observer.New(zap.InfoLevel)
			set := exportertest.NewNopSettings(metadata.Type)
			set.ID, set.Logger = component.NewID(metadata.Type), zap.New(core)
			e, err := newExporter(cfg, set, ownKeys)
			require.NoError(t, err)
			clients := cfg.clients()
			e.sizeQueues(clients, test.onDisk, test.memory)
			var sizes []int64
			for _, p := range policies(clients) {
				sizes = append(sizes, p.Size)
			}
			require.Equal(t, test.want, sizes)
			if test.said == "" {
				require.Empty(t, logs.All())
				return
			}
			require.Len(t, logs.All(), 1)
			require.Equal(t, test.said, logs.All()[0].ContextMap()["which is"])
		})
	}
}
