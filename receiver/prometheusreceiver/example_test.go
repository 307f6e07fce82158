// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package prometheusreceiver_test

import (
	"fmt"

	"go.opentelemetry.io/collector/confmap"

	"github.com/godwit-otel/godwit/receiver/prometheusreceiver"
)

// The same receiver with the type in configurations for contrib's.
func ExampleNewFactory() {
	factory := prometheusreceiver.NewFactory()
	cfg := factory.CreateDefaultConfig()
	for _, set := range []map[string]any{
		{"config": map[string]any{"scrape_configs": []any{map[string]any{"job_name": "node", "static_configs": []any{map[string]any{"targets": []any{"127.0.0.1:9100"}}}}}}},
	} {
		if err := confmap.NewFromStringMap(set).Unmarshal(cfg); err != nil {
			fmt.Println("cannot read:", err)
			continue
		}
		fmt.Println(factory.Type(), confmap.Validate(cfg))
	}
	// Output:
	// prometheus <nil>
}
