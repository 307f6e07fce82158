// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package pulseextension_test

import (
	"fmt"

	"go.opentelemetry.io/collector/confmap"

	"github.com/godwit-otel/godwit/extension/pulseextension"
)

// It logs a line per interval.
func ExampleNewFactory() {
	factory := pulseextension.NewFactory()
	cfg := factory.CreateDefaultConfig()
	for _, set := range []map[string]any{
		{"interval": "1m"},
		{"interval": "-1s"},
	} {
		if err := confmap.NewFromStringMap(set).Unmarshal(cfg); err != nil {
			fmt.Println("cannot read:", err)
			continue
		}
		fmt.Println(factory.Type(), confmap.Validate(cfg))
	}
	// Output:
	// pulse <nil>
	// pulse `interval` must be 1s or more, got -1s; 0 turns the lines off
}
