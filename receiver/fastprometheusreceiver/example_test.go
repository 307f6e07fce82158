// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver_test

import (
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver"
)

// A Prometheus configuration as it is; of a mistake the error says where.
func ExampleNewFactory() {
	factory := fastprometheusreceiver.NewFactory()
	cfg := factory.CreateDefaultConfig()
	for _, set := range []map[string]any{
		{"config": map[string]any{"scrape_configs": []any{map[string]any{"job_name": "node", "static_configs": []any{map[string]any{"targets": []any{"127.0.0.1:9100"}}}}}}},
		{"max_concurrent_scrapes": -1},
	} {
		if err := confmap.NewFromStringMap(set).Unmarshal(cfg); err != nil {
			fmt.Println("cannot read:", err)
			continue
		}
		fmt.Println(factory.Type(), confmap.Validate(cfg))
	}
	// Output:
	// fastprometheus <nil>
	// fastprometheus `max_concurrent_scrapes` must not be negative, got -1
}

// A configuration is read as Prometheus reads it; of a mistake the error names the job and the key.
func ExampleLoadPrometheus() {
	_, err := fastprometheusreceiver.LoadPrometheus([]byte("scrape_configs: [{job_name: node, scrape_interval: 10}]"))
	fmt.Println(err)
	// Output: cannot read `config`: job "node", `scrape_interval`: not a valid duration string: "10"
}

// A module that stands in for another receiver has its type.
func ExampleNewFactoryOfType() {
	fmt.Println(fastprometheusreceiver.NewFactoryOfType(component.MustNewType("prometheus")).Type())
	// Output: prometheus
}
