// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension_test

import (
	"fmt"

	"go.opentelemetry.io/collector/confmap"

	"github.com/godwit-otel/godwit/extension/runtimeprofileextension"
)

// The profile decides how much memory is traded for CPU.
func ExampleNewFactory() {
	factory := runtimeprofileextension.NewFactory()
	cfg := factory.CreateDefaultConfig()
	for _, set := range []map[string]any{
		{"profile": "minimal"},
		{"profile": "fast"},
	} {
		if err := confmap.NewFromStringMap(set).Unmarshal(cfg); err != nil {
			fmt.Println("cannot read:", err)
			continue
		}
		fmt.Println(factory.Type(), confmap.Validate(cfg))
	}
	// Output:
	// runtimeprofile <nil>
	// runtimeprofile `profile` must be minimal, lean, balanced, performance or auto, got "fast"
}
