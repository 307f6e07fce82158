// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/e2e/repository"
)

// The schema for editors accepts every configuration that we ship.
func TestSchemaAcceptsEveryShippedConfig(t *testing.T) {
	t.Parallel()
	schema := configSchema(t)
	configs := shippedConfigs(t)
	require.NotEmpty(t, configs)
	for _, c := range configs {
		if c.text == "" {
			continue // it is in an agent's arguments
		}
		assert.NoError(t, fits(t, schema, c.text), c.where)
	}
}

func TestSchemaFindsMistakes(t *testing.T) {
	t.Parallel()
	schema := configSchema(t)
	const sound = `
receivers:
  fastprometheus:
    config:
      scrape_configs:
        - {job_name: node, scrape_interval: 10s, static_configs: [{targets: ["a:1"], labels: {a: b}}], kubernetes_sd_configs: [{role: pod}]}
processors:
  cardinality/own: {defaults: {max_series_per_metric: 10}}
exporters:
  remotewrite: {endpoint: http://localhost:1, timeout: 5s, queue: {size: "${env:SIZE:-1000}"}}
  somebody_elses: {key: 1}
service:
  pipelines:
    metrics/a: {receivers: [fastprometheus], processors: [cardinality/own], exporters: [remotewrite]}
`
	require.NoError(t, fits(t, schema, sound))
	for mistake, change := range map[string][2]string{
		"a key of the exporter":         {"endpoint:", "endpont:"},
		"a key that is elsewhere":       {"{size:", "{max_samples:"},
		"a key of Prometheus":           {"scrape_interval", "scrap_interval"},
		"a section of Prometheus":       {"scrape_configs:", "rule_files:"},
		"a key of static_configs":       {"labels:", "label:"},
		"a number":                      {"max_series_per_metric: 10", "max_series_per_metric: many"},
		"a duration":                    {"timeout: 5s", "timeout: soon"},
		"a section":                     {"exporters:\n  remotewrite", "exporter:\n  remotewrite"},
		"a pipeline's key":              {"exporters: [remotewrite]", "exporter: [remotewrite]"},
		"a pipeline of no known signal": {"metrics/a", "metric/a"},
		"a list that is none":           {"processors: [cardinality/own]", "processors: cardinality/own"},
	} {
		require.Contains(t, sound, change[0])
		assert.Error(t, fits(t, schema, strings.Replace(sound, change[0], change[1], 1)), mistake)
	}
}

func configSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join(repository.Root(t), "docs", "reference", "godwit.schema.json"))
	require.NoError(t, err)
	return schema
}

// fits validates a configuration of a single document.
func fits(t *testing.T, schema *jsonschema.Schema, text string) error {
	t.Helper()
	var doc any
	require.NoError(t, yaml.Unmarshal([]byte(text), &doc))
	return schema.Validate(doc)
}
