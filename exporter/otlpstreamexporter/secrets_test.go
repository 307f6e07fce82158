// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

func TestEndpointsAreShownWithoutSecrets(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"transport": "http",
		"endpoints": []any{map[string]any{"endpoint": "https://me:covert@gateway:4318/?key=covert"}},
		"http":      map[string]any{"traces_endpoint": "https://me:covert/word@gateway:4318"},
	}).Unmarshal(cfg))
	err := cfg.HTTP.validate()
	require.ErrorContains(t, err, `got "https://[REDACTED]@gateway:4318"`)
	require.NotContains(t, err.Error(), "covert")
	to := cfg.destinations()[0]
	require.Equal(t, "https://[REDACTED]@gateway:4318/?key=[REDACTED]", to.Name)
	require.Contains(t, to.Client.Endpoint, "covert", "which is sent")

	// Of gRPC an endpoint is a host and a port, and it is said what it is instead.
	grpc := loaded(t, map[string]any{"endpoint": "https://me:covert@gateway:4317/otlp"})
	err = grpc.Validate()
	require.ErrorContains(t, err, `got "https://[REDACTED]@gateway:4317/otlp"`)
	require.NotContains(t, err.Error(), "covert")
}
