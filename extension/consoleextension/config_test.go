// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

func TestEveryKey(t *testing.T) {
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, conf.Unmarshal(cfg))
	require.NoError(t, confmap.Validate(cfg))
	require.Equal(t, "0.0.0.0:8443", cfg.ServerConfig.NetAddr.Endpoint)
	require.Equal(t, []string{"console.example.com", "::1"}, cfg.AllowedHosts)
	require.True(t, cfg.ServerConfig.TLS.HasValue())
	require.True(t, cfg.ServerConfig.Auth.HasValue())
}

func TestValidate(t *testing.T) {
	f := func(change func(*Config), want string) {
		t.Helper()
		cfg := createDefaultConfig().(*Config)
		require.NoError(t, cfg.Validate())
		change(cfg)
		require.ErrorContains(t, cfg.Validate(), want)
	}
	f(func(c *Config) { c.ServerConfig.NetAddr.Endpoint = "" }, "`endpoint` must not be empty")
	f(func(c *Config) { c.ServerConfig.NetAddr.Endpoint = "localhost" }, "`endpoint` must be host:port")
	f(func(c *Config) { c.ServerConfig.CORS = configoptional.Some(confighttp.CORSConfig{}) }, "`cors` must not be set")
	f(func(c *Config) { c.ServerConfig.MaxRequestBodySize = 20 << 20 }, "`max_request_body_size` must be 0 to 1048576")
	for _, host := range []string{"", "*", "*.example.com", "https://example.com", "example.com:80", "a b", "evil/../"} {
		f(func(c *Config) { c.AllowedHosts = []string{host} }, "`allowed_hosts[0]` must be a name or an address")
	}
}

func TestListensOnLoopbackUnlessToldOtherwise(t *testing.T) {
	require.Equal(t, "127.0.0.1:13155", createDefaultConfig().(*Config).ServerConfig.NetAddr.Endpoint)
}
