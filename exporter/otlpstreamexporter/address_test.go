// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
)

func loaded(t *testing.T, set map[string]any) *Config {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, confmap.NewFromStringMap(set).Unmarshal(cfg))
	return cfg
}

// The Collector validates a configuration and each part of it.
func (c *Config) validateParts() []error {
	errs := []error{c.Validate(), c.Client.Validate()}
	for i := range c.Endpoints {
		errs = append(errs, c.Endpoints[i].Client.Validate())
	}
	return errs
}

func TestEndpointsMayBeURLs(t *testing.T) {
	for _, endpoint := range []string{
		"gateway:4318", "gateway", "otlp.example/otlp", "https://otlp.example", "https://otlp.example/otlp", "http://victoria:8428/opentelemetry",
		"http://prometheus:9090/api/v1/otlp/", "http://[::1]/otlp", "https://[::1]:4318/otlp", "wss://otlp.example/otlp",
	} {
		for _, kind := range []string{"http", "websocket"} {
			one := loaded(t, map[string]any{"endpoint": endpoint, "transport": kind})
			several := loaded(t, map[string]any{"transport": kind, "endpoints": []any{map[string]any{"endpoint": endpoint}}})
			for _, cfg := range []*Config{one, several} {
				for _, err := range cfg.validateParts() {
					require.NoError(t, err, endpoint)
				}
				d := cfg.destinations()
				require.Len(t, d, 1)
				require.Equal(t, endpoint, d[0].Client.Endpoint)
				require.Equal(t, endpoint, d[0].Name)
			}
		}
	}
}

func TestEndpointsOfGRPCAreHostsAndPorts(t *testing.T) {
	for _, endpoint := range []string{"gateway", "https://otlp.example", "http://gateway:4317/otlp"} {
		one := loaded(t, map[string]any{"endpoint": endpoint})
		require.ErrorContains(t, one.Validate(), "`endpoint` must be a host and a port")
		several := loaded(t, map[string]any{"endpoints": []any{map[string]any{"endpoint": endpoint}}})
		require.ErrorContains(t, several.Validate(), "`endpoints::0::endpoint` must be a host and a port")
	}
	for _, endpoint := range []string{"gateway:4317", "https://gateway:4317", "dns:///gateway:4317", "unix:///run/gateway", "passthrough:///gateway:4317"} {
		cfg := loaded(t, map[string]any{"endpoint": endpoint})
		for _, err := range cfg.validateParts() {
			require.NoError(t, err, endpoint)
		}
		require.Equal(t, endpoint, cfg.destinations()[0].Client.Endpoint)
	}
}

func TestEndpointsHaveNoQuery(t *testing.T) {
	for _, endpoint := range []string{"https://otlp.example/otlp?key=word", "otlp.example:4318?key=word", "https://otlp.example#word"} {
		for _, kind := range []string{"http", "websocket"} {
			cfg := loaded(t, map[string]any{"endpoint": endpoint, "transport": kind})
			err := cfg.Validate()
			require.ErrorContains(t, err, "`endpoint` must have no query and no fragment")
			if strings.Contains(endpoint, "?") {
				require.NotContains(t, err.Error(), "word")
			}
		}
	}
}

// The Collector's check would refuse them, and show a part of the password.
func TestURLsMayHaveUsers(t *testing.T) {
	for _, endpoint := range []string{"https://me:word@otlp.example/otlp", "http://me:word@victoria:8428/opentelemetry", "me:word@gateway:4318"} {
		cfg := loaded(t, map[string]any{"endpoint": endpoint, "transport": "http"})
		for _, err := range cfg.validateParts() {
			require.NoError(t, err, endpoint)
		}
		require.Equal(t, endpoint, cfg.destinations()[0].Client.Endpoint)
	}
	s := startPlain(t, nil)
	e := newTestExporter(t, transport.HTTP, strings.Replace(s.URL, "://", "://me:word@", 1))
	e.export(0, 1)
	require.Equal(t, int64(1), e.settled().Acked)
	r, _ := s.last()
	user, password, _ := r.BasicAuth()
	require.Equal(t, "me:word", user+":"+password)
}
