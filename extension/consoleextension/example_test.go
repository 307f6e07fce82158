// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension_test

import (
	"fmt"

	"go.opentelemetry.io/collector/confmap"

	"github.com/godwit-otel/godwit/extension/consoleextension"
)

// It listens on the loopback interface by default; pages of other sites get no responses.
func ExampleNewFactory() {
	factory := consoleextension.NewFactory()
	cfg := factory.CreateDefaultConfig()
	for _, set := range []map[string]any{
		{"endpoint": "127.0.0.1:13155"},
		{"cors": map[string]any{"allowed_origins": []any{"*"}}},
	} {
		if err := confmap.NewFromStringMap(set).Unmarshal(cfg); err != nil {
			fmt.Println("cannot read:", err)
			continue
		}
		fmt.Println(factory.Type(), confmap.Validate(cfg))
	}
	// Output:
	// console <nil>
	// console `cors` must not be set: pages of other sites get no answers from the console; remove it
}
