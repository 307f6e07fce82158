// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A configuration as people write it, lines and all.
const usual = `# Scrapes the hosts.
receivers:
  fastprometheus:
    config:
      scrape_configs:
        - job_name: node
          scrape_interval: 10s
          relabel_configs:
            - source_labels: [__address__]
              regex: (.*):.*
              target_label: host
              replacement: $${1}
          static_configs:
            - targets: ["127.0.0.1:9100"]
exporters:
  remotewrite:
    endpoint: http://127.0.0.1:9090/api/v1/write
service:
  pipelines:
    metrics:
      receivers: [fastprometheus]
      exporters: [remotewrite]
`

// The ten mistakes that everybody makes once, and what must be said about them, by both ways to use a file.
func TestClassicMistakes(t *testing.T) {
	exit, output := command(t, "godwit-agent", nil, "validate", "--config", configFile(t, usual))
	require.Zero(t, exit, output)
	require.Equal(t, "valid", strings.TrimSpace(output))
	for _, test := range []struct {
		name, from, to string
		want           []string
	}{
		{"unknown key of a component", "    endpoint:", "    endpont:", []string{"config.yaml:17", "`endpont`", "did you mean `endpoint`?"}},
		{"unknown key of Prometheus", "scrape_interval:", "scrape_intervall:", []string{"config.yaml:7", `job "node"`, "did you mean `scrape_interval`?"}},
		{"dollar", "$${1}", "${1}", []string{"config.yaml:12", "replacement", "`${1}` is read as an environment variable", "`$${1}`"}},
		{"bad regex", "regex: (.*):.*", `regex: "(.*:.*"`, []string{`job "node"`, "`relabel_configs`", "missing closing )"}},
		{"bad duration", "interval: 10s", "interval: 10", []string{`job "node"`, "`scrape_interval`", `"10"`}},
		{"unset endpoint", "http://127.0.0.1:9090", "${env:GODWIT_NOT_SET}", []string{"config.yaml:17", "exporters::remotewrite::endpoint", "GODWIT_NOT_SET is not set"}},
		{"unset target", "127.0.0.1:9100", "${env:GODWIT_NOT_SET}:9100", []string{"config.yaml:14", "targets", "GODWIT_NOT_SET is not set"}},
		{"unknown component", "  remotewrite:", "  remotewrit:", []string{"config.yaml:16", "did you mean `remotewrite`?"}},
		{"unknown reference", "[remotewrite]", "[remote_write]", []string{"config.yaml:22", "`remote_write` is not configured", "did you mean `remotewrite`?"}},
		{"tab", "    endpoint:", "\tendpoint:", []string{"config.yaml", "YAML", "tab"}},
		{"no scheme", "http://127.0.0.1", "127.0.0.1", []string{"config.yaml:17", "exporters::remotewrite::endpoint", "`127.0.0.1:9090/api/v1/write` has no scheme", "write http://127.0.0.1:9090/api/v1/write"}},
		{"port alone", "service:\n", "extensions:\n  console:\n    endpoint: 13155\nservice:\n  extensions: [console]\n", []string{"config.yaml:20: extensions::console::endpoint", "write 127.0.0.1:13155"}},
		{"no unit", "api/v1/write", "api/v1/write\n    timeout: 5", []string{"config.yaml:18", "timeout", "nanoseconds", "write 5s"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, 1, strings.Count(usual, test.from), "the place of the mistake")
			refuses(t, "godwit-agent", configFile(t, strings.Replace(usual, test.from, test.to, 1)), test.want...)
		})
	}
}

// A configuration with more in it.
const rich = `# Scrapes the hosts, limits, ships.
receivers:
  fastprometheus:
    config:
      scrape_configs:
        - job_name: node
          scrape_interval: 10s
          static_configs:
            - targets: ["127.0.0.1:9100"]
processors:
  cardinality:
    idle_timeout: 10m
    rules:
      - name: few
        match: {metric: "http_*"}
        group_by: [metric]
        max_series: 100
        on_exceed: [drop]
exporters:
  remotewrite:
    endpoint: http://127.0.0.1:9090/api/v1/write
    queue:
      size: 1000000
      on_full: drop_oldest
    write_relabel_configs:
      - source_labels: [instance]
        regex: (.*):[0-9]+
        target_label: instance
extensions:
  console: {endpoint: 127.0.0.1:13155}
service:
  extensions: [console]
  pipelines:
    metrics:
      receivers: [fastprometheus]
      processors: [cardinality]
      exporters: [remotewrite]
`

// Further down and of another kind: `validate` names the key, its line, and the way out.
func TestMistakesFurtherDown(t *testing.T) {
	exit, output := command(t, "godwit-agent", nil, "validate", "--config", configFile(t, rich))
	require.Zero(t, exit, output)
	for _, test := range []struct {
		name, from, to string
		want           []string
	}{
		{"key of a rule", `match: {metric: "http_*"}`, `mach: {metric: "http_*"}`, []string{"`rules[0]`", "`mach`", "config.yaml:15", "did you mean `match`?"}},
		{"key that is elsewhere, too", `match: {metric:`, `match: {metrics:`, []string{"`rules[0].match`", "`metrics` (", "config.yaml:15)", "did you mean `metric`?"}},
		{"negative number", "max_series: 100", "max_series: -1", []string{"`max_series` must not be negative, got -1", "config.yaml:17"}},
		{"word of a rule", "[drop]", "[drops]", []string{"`on_exceed` must list collapse", `got "drops"`, "config.yaml:18"}},
		{"rule without a name", "      - name: few\n        match", "      - match", []string{"`rules::0::name` must be set", "config.yaml:14"}},
		{"duration in words", "10m", "10 minutes", []string{"`idle_timeout` must be a duration such as 30s", "config.yaml:12"}},
		{"regex of a destination", "(.*):[0-9]+", `"(.*:[0-9]+"`, []string{"`regex` must be a regular expression", "missing closing )", "config.yaml:27"}},
		{"text for a list", `["127.0.0.1:9100"]`, "127.0.0.1:9100", []string{`job "node"`, "`static_configs` (", "config.yaml:9", "must be a list, not the text", "in brackets"}},
		{"jobs that are no list", "        - job_name: node\n  ", "          job_name: node\n  ", []string{"`scrape_configs` must be a list of jobs", "config.yaml:5", "`- job_name:`"}},
		{"size with a unit", "size: 1000000", "size: 256MiB", []string{"`queue::size` must be a whole number", "config.yaml:23"}},
		{"key of contrib's exporter", "    queue:\n", "    sending_queue: {queue_size: 10}\n    queue:\n", []string{"`sending_queue`", "config.yaml:22", "it is `queue`"}},
		{"list that is a text", "receivers: [fastprometheus]", "receivers: fastprometheus", []string{"`service::pipelines::metrics::receivers` must be a list", "config.yaml:35"}},
		{"processor that is not there", "[cardinality]", "[memory_limiter, cardinality]", []string{"config.yaml:36", "`memory_limiter` is not configured under `processors`"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, 1, strings.Count(rich, test.from), "the place of the mistake")
			exit, output := command(t, "godwit-agent", nil, "validate", "--config", configFile(t, strings.Replace(rich, test.from, test.to, 1)))
			assert.Equal(t, 1, exit)
			for _, words := range test.want {
				assert.Contains(t, output, words)
			}
		})
	}
}

// Help is one page. Feature gates have a command of their own.
func TestHelpIsAPage(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"help"}, {"-h"}} {
		exit, output := command(t, "godwit-agent", nil, args...)
		assert.Zero(t, exit)
		assert.LessOrEqual(t, strings.Count(output, "\n"), 40)
		assert.Contains(t, output, "featuregate")
		assert.NotContains(t, output, "confmap.")
	}
}
