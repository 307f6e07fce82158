// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor_test

import (
	"fmt"

	"go.opentelemetry.io/collector/confmap"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor"
)

// A limit for each metric; of a mistake the error names the rule and the key.
func ExampleNewFactory() {
	factory := cardinalityprocessor.NewFactory()
	cfg := factory.CreateDefaultConfig()
	for _, set := range []map[string]any{
		{"rules": []any{map[string]any{"name": "each", "group_by": []any{"metric"}, "max_series": 10000}}},
		{"mode": "guess"},
	} {
		if err := confmap.NewFromStringMap(set).Unmarshal(cfg); err != nil {
			fmt.Println("cannot read:", err)
			continue
		}
		fmt.Println(factory.Type(), confmap.Validate(cfg))
	}
	// Output:
	// cardinality <nil>
	// cardinality `mode` must be enforce or dry_run, got "guess"
}
