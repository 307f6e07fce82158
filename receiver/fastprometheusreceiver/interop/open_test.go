// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest/observer"

	"github.com/godwit-otel/godwit/internal/handback"
)

// Our components for metrics, by the directory of their module, each with some common configurations.
var (
	ourReceivers = map[string][]string{
		"receiver/fastprometheusreceiver": {`fastprometheus: {config: {scrape_configs: [{job_name: a, scrape_interval: 1h, static_configs: [{targets: [127.0.0.1:1]}]}]}}`},
		"receiver/prometheusreceiver":     {`prometheus: {config: {scrape_configs: [{job_name: a, scrape_interval: 1h, static_configs: [{targets: [127.0.0.1:1]}]}]}}`},
		"receiver/remotewritereceiver":    {`remotewrite: {endpoint: "127.0.0.1:0"}`, `remotewrite: {endpoint: "127.0.0.1:0", scopes_from_labels: true, replicas: {deduplicate: true}}`},
		"receiver/otlpstreamreceiver":     {`otlpstream: {protocols: {http: {endpoint: "127.0.0.1:0"}}}`, `otlpstream: {protocols: {http: {endpoint: "127.0.0.1:0"}}, deduplicate: {enabled: true}}`},
	}
	ourProcessors = map[string][]string{
		"processor/cardinalityprocessor": {
			`cardinality: {defaults: {max_series_per_metric: 10}}`,
			`cardinality: {mode: dry_run, defaults: {max_series_per_metric: 10}}`,
			`cardinality: {rules: [{name: sums, match: {metric: "m*"}, aggregate: {without: [user]}}]}`,
		},
	}
	ourExporters = map[string][]string{
		"exporter/remotewriteexporter": {
			`remotewrite: {endpoint: "http://127.0.0.1:1/api/v1/write"}`,
			`remotewrite: {endpoint: "http://127.0.0.1:1/api/v1/write", tenant: {header: X-Scope-OrgID, from_resource_attribute: service.name, default: nobody}}`,
			`remotewrite: {endpoint: "http://127.0.0.1:1/api/v1/write", write_relabel_configs: [{source_labels: [instance], target_label: host}]}`,
		},
		"exporter/prometheusremotewriteexporter": {`prometheus_remote_write: {endpoint: "http://127.0.0.1:1/api/v1/write"}`},
		"exporter/otlpstreamexporter":            {`otlpstream: {endpoint: "127.0.0.1:1", tls: {insecure: true}}`},
	}
	// Components that do not handle metrics, or that prevent reuse, and why.
	notOnTheRoad = map[string]string{}
)

// TestOurComponentsKeepTheRoadOpen: with any combination of our components, the memory of metrics is reused.
func TestOurComponentsKeepTheRoadOpen(t *testing.T) {
	pick := func(of map[string][]string, i int) string {
		var all []string
		for _, name := range slices.Sorted(maps.Keys(of)) {
			all = append(all, of[name]...)
		}
		return all[i%len(all)]
	}
	id := regexp.MustCompile(`^\w+`)
	for i := range 12 { // each of each kind, in varying combinations
		receiver, processor, exporter := pick(ourReceivers, i), pick(ourProcessors, i), pick(ourExporters, i)
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			c := start(t, fmt.Sprintf(`
receivers: {%s}
processors: {memory_limiter: {check_interval: 1s, limit_mib: 4000}, %s}
exporters: {%s}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {metrics: {receivers: [%s], processors: [memory_limiter, %s], exporters: [%s]}}
`, receiver, processor, exporter, id.FindString(receiver), id.FindString(processor), id.FindString(exporter)))
			said := c.log.Filter(func(e observer.LoggedEntry) bool { return e.Message == used || e.Message == unused }).All()
			require.Len(t, said, 1, "the receiver says whether it does")
			if handback.Poisons() && strings.HasPrefix(receiver, "otlpstream:") {
				return // what it shares cannot be overwritten, so it shares nothing
			}
			require.Equal(t, used, said[0].Message, "%s -> %s -> %s: %v", receiver, processor, exporter, said[0].ContextMap())
		})
	}
}

// TestAllOurComponentsAreAsked: every component of ours in a distribution has to be listed above.
func TestAllOurComponentsAreAsked(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	manifests, err := filepath.Glob(filepath.Join(root, "distributions", "*", "manifest.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, manifests)
	ours := regexp.MustCompile(`(?m)^ *- gomod: github\.com/godwit-otel/godwit/((?:receiver|processor|exporter)/\w+)`)
	found := 0
	for _, file := range append(manifests, filepath.Join(root, "builder-config.yaml")) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range ours.FindAllStringSubmatch(string(text), -1) {
			found++
			known := notOnTheRoad[m[1]] != "" || len(ourReceivers[m[1]])+len(ourProcessors[m[1]])+len(ourExporters[m[1]]) > 0
			require.True(t, known, "%s of %s is not asked whether it keeps the road of metrics open", m[1], file)
		}
	}
	require.Greater(t, found, 10)
}
