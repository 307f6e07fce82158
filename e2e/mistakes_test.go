// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A configuration as people write it.
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

// The ten most common mistakes, and what the error must say about each, both by `validate` and at start.
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

// A larger configuration.
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

// Mistakes in nested settings: both ways name the key, its line and a remedy.
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
		{"key that is there twice", "    idle_timeout: 10m\n", "    idle_timeout: 10m\n    idle_timeout: 5m\n", []string{"config.yaml:13", "processors::cardinality", "`idle_timeout` is there already, in line 12"}},
		{"component of another distribution", "receivers:\n  fast", "receivers:\n  kafka: {brokers: [\"a:9092\"]}\n  fast", []string{"config.yaml:3", "receivers::kafka", "godwit-agent does not have it", "the distribution godwit"}},
		{"regex of a job's metrics", "          static_configs", "          metric_relabel_configs: [{source_labels: [__name__], regex: 'go_(', action: drop}]\n          static_configs", []string{`job "node"`, "`metric_relabel_configs`", "missing closing )", "config.yaml:8"}},
		{"dollar of a destination", "target_label: instance", "target_label: instance\n        replacement: ${1}", []string{"config.yaml:29", "replacement", "`$${1}`"}},
		{"timeout with a space", "scrape_interval: 10s", "scrape_interval: 10s\n          scrape_timeout: 5 s", []string{`job "node"`, "`scrape_timeout`", `"5 s"`, "config.yaml:8"}},
		{"number in words", "max_series: 100", "max_series: lots", []string{"`rules::[0]::max_series` must be a whole number, not a text", "config.yaml:17"}},
		{"text for a mapping", "    queue:\n      size: 1000000\n      on_full: drop_oldest\n", "    queue: 1000000\n", []string{"`queue` must be a mapping", "config.yaml:22"}},
		{"job without a name", "        - job_name: node\n          scrape_interval", "        - scrape_interval", []string{"`scrape_configs[0]` must have a `job_name`", "config.yaml:6"}},
		{"star that is no text", "regex: (.*):[0-9]+", "regex: *", []string{"config.yaml:27", "YAML", "quotes"}},
		{"signal that there is not", "    metrics:\n", "    metric:\n", []string{"config.yaml:34", "service::pipelines", "`metric`", "metrics"}},
		{"pipeline without an end", "      exporters: [remotewrite]\n", "", []string{"service::pipelines::metrics", "exporter", "config.yaml:34"}},
		{"processor that is not there", "[cardinality]", "[memory_limiter, cardinality]", []string{"config.yaml:36", "`memory_limiter` is not configured under `processors`"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, 1, strings.Count(rich, test.from), "the place of the mistake")
			refuses(t, "godwit-agent", configFile(t, strings.Replace(rich, test.from, test.to, 1)), test.want...)
		})
	}
}

// Errors that show only at start, not by `validate`, also name the key and its line.
func TestMistakesThatAStartShows(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()
	for _, test := range []struct {
		name, from, to string
		want           []string
	}{
		{"port of a receiver of ours", "exporters:\n", "  remotewrite: {endpoint: BUSY}\nexporters:\n", []string{"receivers::remotewrite", "`endpoint`", "config.yaml:15", "address already in use", "choose another port"}},
		{"port of another receiver", "exporters:\n", "  otlp:\n    protocols:\n      grpc:\n        endpoint: BUSY\nexporters:\n", []string{"receivers::otlp", "`receivers::otlp::protocols::grpc::endpoint`", "config.yaml:18", "address already in use"}},
		{"port of an extension", "service:\n", "extensions:\n  health_check: {endpoint: BUSY}\nservice:\n  extensions: [health_check]\n", []string{"`extensions::health_check::endpoint`", "config.yaml:19", "address already in use"}},
		{"certificate of a destination", "    endpoint:", "    http: {tls: {ca_file: /nowhere/ca.pem}}\n    endpoint:", []string{"exporters::remotewrite", "`exporters::remotewrite::http::tls::ca_file`", "config.yaml:17", "/nowhere/ca.pem: no such file"}},
		{"certificate of a receiver", "exporters:\n", "  remotewrite:\n    endpoint: 127.0.0.1:0\n    tls:\n      cert_file: /nowhere/server.pem\n      key_file: /nowhere/server.key\nexporters:\n", []string{"receivers::remotewrite", "`receivers::remotewrite::tls::cert_file`", "config.yaml:18", "/nowhere/server.pem: no such file"}},
		{"folder of a queue", "    endpoint:", "    queue: {directory: /proc/nowhere}\n    endpoint:", []string{"exporters::remotewrite", "`exporters::remotewrite::queue::directory`", "config.yaml:17", "/proc/nowhere"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, 1, strings.Count(usual, test.from), "the place of the mistake")
			config := strings.ReplaceAll(strings.Replace(usual, test.from, test.to, 1), "BUSY", busy.Addr().String())
			if strings.Contains(test.to, "\nexporters:") {
				id, _, _ := strings.Cut(strings.TrimSpace(test.to), ":")
				config = strings.Replace(config, "[fastprometheus]", "[fastprometheus, "+id+"]", 1)
			}
			exit, output := command(t, "godwit-agent", nil, "--config", configFile(t, config))
			assert.Equal(t, 1, exit)
			start := strings.Index(output, "Error: ")
			require.GreaterOrEqual(t, start, 0, output)
			for _, words := range test.want {
				assert.Contains(t, output[start:], words)
			}
		})
	}
}

// Help fits on one page. Feature gates have a command of their own.
func TestHelpIsAPage(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"help"}, {"-h"}} {
		exit, output := command(t, "godwit-agent", nil, args...)
		assert.Zero(t, exit)
		assert.LessOrEqual(t, strings.Count(output, "\n"), 40)
		assert.Contains(t, output, "featuregate")
		assert.NotContains(t, output, "confmap.")
	}
	for _, name := range []string{"validate", "print-config"} {
		exit, output := command(t, "godwit-agent", nil, name, "--help")
		assert.Zero(t, exit)
		assert.LessOrEqual(t, strings.Count(output, "\n"), 15)
		assert.Contains(t, output, "godwit-agent "+name+" --config FILE")
		assert.NotContains(t, output, "confmap.")
	}
}
