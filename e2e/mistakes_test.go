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
