// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package pulseextension

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

func TestConfig(t *testing.T) {
	all, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	f := func(id string, want *Config) {
		t.Helper()
		sub, err := all.Sub(id)
		require.NoError(t, err)
		got := createDefaultConfig()
		require.NoError(t, sub.Unmarshal(got))
		require.NoError(t, confmap.Validate(got))
		assert.Equal(t, want, got)
	}
	f("pulse", &Config{Interval: time.Minute, First: 3 * time.Second})
	f("pulse/all", &Config{
		Interval:        5 * time.Minute,
		First:           10 * time.Second,
		Look:            map[string]string{"own metrics": "http://localhost:8888/metrics", "status": "http://localhost:13133"},
		MetricsEndpoint: "http://localhost:8889/metrics",
	})
	f("pulse/quiet", &Config{})
}

func TestValidateNamesTheKeyAndTheWayOut(t *testing.T) {
	f := func(c Config, want ...string) {
		t.Helper()
		err := c.Validate()
		for _, w := range want {
			require.ErrorContains(t, err, w)
		}
	}
	f(Config{Interval: -time.Second}, "`interval` must be 1s or more, got -1s; 0 turns the lines off")
	f(Config{Interval: 60}, "`interval` must be 1s or more, got 60ns")
	f(Config{First: -time.Second}, "`first` must not be negative, got -1s; 0 turns")
	f(Config{Look: map[string]string{"status": "localhost:13133"}}, "`look::status` must be a URL such as http://", `got "localhost:13133"`)
	f(Config{Look: map[string]string{"status": ""}}, "`look::status` must be a URL")
	f(Config{MetricsEndpoint: "localhost:8888"}, "`metrics_endpoint` must be a URL such as http://", "leave it out")
	f(Config{MetricsEndpoint: "unix:///metrics"}, "`metrics_endpoint` must be a URL")
	f(Config{Interval: -1, First: -1, MetricsEndpoint: "x"}, "`interval`", "`first`", "`metrics_endpoint`")

	require.NoError(t, (&Config{Interval: time.Second, First: 1, Look: map[string]string{"targets": "file:///etc/targets"}}).Validate())
}
