// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter_test

import (
	"fmt"

	"go.opentelemetry.io/collector/confmap"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter"
)

// Only the endpoint must be set.
func ExampleNewFactory() {
	factory := otlpstreamexporter.NewFactory()
	cfg := factory.CreateDefaultConfig()
	for _, set := range []map[string]any{
		{"endpoint": "127.0.0.1:4317", "tls": map[string]any{"insecure": true}},
		{"transport": "pigeon"},
	} {
		if err := confmap.NewFromStringMap(set).Unmarshal(cfg); err != nil {
			fmt.Println("cannot read:", err)
			continue
		}
		fmt.Println(factory.Type(), confmap.Validate(cfg))
	}
	// Output:
	// otlpstream <nil>
	// otlpstream `transport` must be grpc, websocket or http, got "pigeon"
}
