// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver_test

import (
	"fmt"

	"go.opentelemetry.io/collector/confmap"

	"github.com/godwit-otel/godwit/receiver/remotewritereceiver"
)

// All keys have defaults.
func ExampleNewFactory() {
	factory := remotewritereceiver.NewFactory()
	cfg := factory.CreateDefaultConfig()
	for _, set := range []map[string]any{
		{"endpoint": "127.0.0.1:19291"},
		{"path": "no-slash"},
	} {
		if err := confmap.NewFromStringMap(set).Unmarshal(cfg); err != nil {
			fmt.Println("cannot read:", err)
			continue
		}
		fmt.Println(factory.Type(), confmap.Validate(cfg))
	}
	// Output:
	// remotewrite <nil>
	// remotewrite `path` must begin with a slash, got "no-slash"
}
