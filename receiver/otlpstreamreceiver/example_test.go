// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver_test

import (
	"fmt"

	"go.opentelemetry.io/collector/confmap"

	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver"
)

// One port serves standard OTLP and streams.
func ExampleNewFactory() {
	factory := otlpstreamreceiver.NewFactory()
	cfg := factory.CreateDefaultConfig()
	for _, set := range []map[string]any{
		{"protocols": map[string]any{"grpc": map[string]any{"endpoint": "127.0.0.1:4317"}}},
		{"streams": map[string]any{"max": -1}},
	} {
		if err := confmap.NewFromStringMap(set).Unmarshal(cfg); err != nil {
			fmt.Println("cannot read:", err)
			continue
		}
		fmt.Println(factory.Type(), confmap.Validate(cfg))
	}
	// Output:
	// otlpstream <nil>
	// otlpstream `streams::max` must be positive, got -1
}
