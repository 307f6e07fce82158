// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package prometheusremotewriteexporter_test

import (
	"fmt"

	"go.opentelemetry.io/collector/confmap"

	"github.com/godwit-otel/godwit/exporter/prometheusremotewriteexporter"
)

// A configuration of contrib's exporter is valid as it is.
func ExampleNewFactory() {
	factory := prometheusremotewriteexporter.NewFactory()
	cfg := factory.CreateDefaultConfig()
	for _, set := range []map[string]any{
		{"endpoint": "http://127.0.0.1:9090/api/v1/write", "remote_write_queue": map[string]any{"queue_size": 10000}},
	} {
		if err := confmap.NewFromStringMap(set).Unmarshal(cfg); err != nil {
			fmt.Println("cannot read:", err)
			continue
		}
		fmt.Println(factory.Type(), confmap.Validate(cfg))
	}
	// Output:
	// prometheus_remote_write <nil>
}
