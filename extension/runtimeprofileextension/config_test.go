// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

func TestConfigReadsEveryKey(t *testing.T) {
	yes := true
	conf, err := confmaptest.LoadConf("testdata/config.yaml")
	require.NoError(t, err)
	for name, want := range map[string]*Config{
		"runtimeprofile": {Profile: ProfileBalanced, RefreshInterval: time.Minute},
		"runtimeprofile/all": {
			Profile: ProfilePerformance, GOGC: 300, MemoryLimit: "1536MiB",
			RefreshInterval: 10 * time.Second, ReleaseBinaryPages: &yes,
		},
		"runtimeprofile/percentage": {Profile: ProfileAuto, MemoryLimit: "75%", RefreshInterval: time.Minute},
	} {
		sub, err := conf.Sub(name)
		require.NoError(t, err)
		cfg := createDefaultConfig()
		require.NoError(t, sub.Unmarshal(cfg))
		require.NoError(t, confmap.Validate(cfg))
		assert.Equal(t, want, cfg, name)
	}
}

func TestConfigNamesTheKeyAndTheWayOut(t *testing.T) {
	f := func(keys map[string]any, want ...string) {
		t.Helper()
		cfg := createDefaultConfig()
		require.NoError(t, confmap.NewFromStringMap(keys).Unmarshal(cfg))
		err := confmap.Validate(cfg)
		for _, w := range want {
			assert.ErrorContains(t, err, w)
		}
	}
	f(map[string]any{"profile": "fast"}, "`profile` must be minimal, lean, balanced, performance or auto, got \"fast\"")
	f(map[string]any{"gogc": 5}, "`gogc` must be at least 10, or 0 for the profile's value, got 5")
	f(map[string]any{"gogc": -1}, "`gogc` must be at least 10")
	f(map[string]any{"profile": "auto", "gogc": 100}, "`gogc` pins what `profile: auto` adjusts: remove one of them")
	f(map[string]any{"memory_limit": "120%"}, "`memory_limit` as a percentage must be 1% to 100%, got \"120%\"")
	f(map[string]any{"memory_limit": "80"}, "`memory_limit` must be at least 16MiB, got \"80\"; a percentage ends in %")
	f(map[string]any{"memory_limit": "1GB"}, "`memory_limit` must be bytes (536870912, 512MiB, 2GiB) or a percentage (80%), got \"1GB\"")
	f(map[string]any{"refresh_interval": "1ms"}, "`refresh_interval` must be at least 1s, got 1ms")
	f(map[string]any{"profile": "fast", "gogc": 5, "memory_limit": "x"}, "`profile`", "`gogc`", "`memory_limit`")
}

func TestMemoryLimitUnits(t *testing.T) {
	f := func(in string, want memoryLimit) {
		t.Helper()
		got, err := parseMemoryLimit(in)
		require.NoError(t, err)
		assert.Equal(t, want, got, in)
	}
	f("", memoryLimit{})
	f("80%", memoryLimit{percent: 80})
	f("80 %", memoryLimit{percent: 80})
	f("536870912", memoryLimit{bytes: 512 << 20})
	f("536870912B", memoryLimit{bytes: 512 << 20})
	f("524288KiB", memoryLimit{bytes: 512 << 20})
	f("512 MiB", memoryLimit{bytes: 512 << 20})
	f("2GiB", memoryLimit{bytes: 2 << 30})
	f("1TiB", memoryLimit{bytes: 1 << 40})
	f("8388607TiB", memoryLimit{bytes: math.MaxInt64 >> 40 << 40})
	for _, bad := range []string{"8388608TiB", "-1GiB", "GiB", "0%", "%", "1.5GiB", "16777215"} {
		_, err := parseMemoryLimit(bad)
		assert.ErrorContains(t, err, "`memory_limit`", bad)
	}
}
