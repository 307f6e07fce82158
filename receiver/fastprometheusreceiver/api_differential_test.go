// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/prometheusreceiver"
	promconfig "github.com/prometheus/prometheus/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/godwit-otel/godwit/internal/redact"
)

// runTheirs starts the Collector's receiver, which runs until the test ends.
func runTheirs(t *testing.T, text string, next consumer.Metrics) {
	t.Helper()
	retrieved, err := confmap.NewRetrievedFromYAML([]byte(text))
	require.NoError(t, err)
	conf, err := retrieved.AsConf()
	require.NoError(t, err)
	factory := prometheusreceiver.NewFactory()
	cfg := factory.CreateDefaultConfig()
	require.NoError(t, conf.Unmarshal(cfg))
	require.NoError(t, confmap.Validate(cfg))
	r, err := factory.CreateMetrics(t.Context(), receivertest.NewNopSettings(factory.Type()), cfg, next)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, r.Shutdown(context.Background())) })
}

// The API shows the same as that of the Collector's receiver with the same configuration.
func TestAPILikeTheCollectors(t *testing.T) {
	// Not 127.0.0.1, which is replaced in URLs: for that, their server needs a port, which a socket has not.
	listener, err := net.Listen("tcp", "127.0.0.2:0")
	require.NoError(t, err)
	target := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprint(w, pageOfCounters+"# TYPE took_seconds histogram\n# HELP took_seconds How \\n long.\ntook_seconds_bucket{le=\"+Inf\"} 1\ntook_seconds_sum 1\ntook_seconds_count 1\n")
	})}}
	target.Start()
	defer target.Close()
	section := fmt.Sprintf(`
discovery_reload_on_startup: true
config:
  global: {external_labels: {cluster: east}, scrape_interval: 200ms, scrape_timeout: 150ms}
  scrape_configs:
    - job_name: test
      params: {a: [b, c]}
      keep_dropped_targets: 5
      basic_auth: {username: godwit, password: unspeakable}
      static_configs:
        - {targets: [%[1]q, "dropped:1"], labels: {zone: one, __meta_x: y}}
        - {targets: [%[1]q], labels: {zone: two, __metrics_path__: /other, __param_a: d}}
      relabel_configs:
        - {source_labels: [__address__], regex: "dropped.*", action: drop}
        - {source_labels: [__meta_x], target_label: x}
    - {job_name: empty, scrape_interval: 1m, static_configs: []}
`, listener.Addr())
	ours, theirs := newAPIClient(t), newAPIClient(t)
	run(t, ours.section+section)
	runTheirs(t, theirs.section+section, consumertest.NewNop())
	for _, c := range []*apiClient{ours, theirs} {
		require.Eventually(t, func() bool { return len(data[[]any](t, c, "/api/v1/targets/metadata")) == 4 }, patience, 10*glance)
	}

	for path, volatile := range map[string][]string{
		"/api/v1/targets": {"lastScrape", "lastScrapeDuration"},
		"/api/v1/targets?state=active&scrapePool=test":               {"lastScrape", "lastScrapeDuration"},
		"/api/v1/targets?state=dropped":                              nil,
		"/api/v1/targets/metadata":                                   nil,
		"/api/v1/targets/metadata?metric=took_seconds":               nil,
		"/api/v1/targets/metadata?match_target=%7Bzone=%22two%22%7D": nil,
		"/api/v1/targets/relabel_steps?scrapePool=test&labels=%7B%22__address__%22:%22a%22,%22__meta_x%22:%22y%22%7D": nil,
		"/api/v1/metadata":     nil,
		"/api/v1/scrape_pools": nil,
		"/api/v1/status/flags": nil,
	} {
		t.Run(path, func(t *testing.T) {
			shown := func(c *apiClient) any {
				return settled(data[any](t, c, path), volatile)
			}
			require.EventuallyWithT(t, func(c *assert.CollectT) {
				assert.Equal(c, shown(theirs), shown(ours))
			}, patience, 50*glance)
			assert.NotEmpty(t, ours.text(t, path))
		})
	}

	assert.Equal(t, configOf(t, theirs), configOf(t, ours))
}

// configOf returns the configuration that an API shows, without the settings that only one of the two fills in.
func configOf(t *testing.T, c *apiClient) string {
	t.Helper()
	text := data[map[string]string](t, c, "/api/v1/status/config")["yaml"]
	assert.NotContains(t, text, "unspeakable")
	read, err := promconfig.Load(text, nil)
	require.NoError(t, err)
	for _, job := range read.ScrapeConfigs {
		job.ScrapeFallbackProtocol, job.BodySizeLimit = "", 0
	}
	slices.SortFunc(read.ScrapeConfigs, func(a, b *promconfig.ScrapeConfig) int { return strings.Compare(a.JobName, b.JobName) })
	return redact.URLs(read.String()) // as ours is shown
}

// A target allocator's jobs become the same as in the Collector's receiver.
func TestAllocatedLikeTheCollectors(t *testing.T) {
	t.Setenv("SHARD", "3")
	o := newOffice(t)
	const monitor = "podMonitor/ns/a b+c%/0"
	o.assign("plain", "honor_labels", "127.0.0.2:1")
	o.assign(monitor, "", "127.0.0.2:2", "127.0.0.2:3")
	o.mu.Lock()
	o.jobs[monitor] = map[string]any{
		"job_name": monitor, "scrape_interval": "30s", "metrics_path": "/<x>&y", "sample_limit": 10_000_000, "body_size_limit": "1MB",
		"kubernetes_sd_configs": []any{map[string]any{"role": "pod", "namespaces": map[string]any{"names": []any{"ns"}}}},
		"basic_auth":            map[string]any{"username": "yes", "password": "unspeakable"},
		"relabel_configs": []any{
			map[string]any{"source_labels": []any{"__address__"}, "regex": `(.+)(?::\d+);?"'`, "replacement": "$1:${2}", "target_label": "port"},
			map[string]any{"source_labels": []any{"from"}, "target_label": "shard", "replacement": "$(SHARD)"},
			map[string]any{"source_labels": []any{"__tmp"}, "regex": "0123", "action": "drop"},
		},
	}
	o.mu.Unlock()
	ours, theirs := newAPIClient(t), newAPIClient(t)
	section := fmt.Sprintf(allocated, o.URL) + `
  http_scrape_config: {authorization: {credentials: unspeakable}, follow_redirects: false}
config:
  global: {scrape_interval: 20s}
  scrape_configs: [{job_name: own, scrape_interval: 1m}]
discovery_reload_on_startup: true
`
	run(t, ours.section+section)
	runTheirs(t, theirs.section+section, consumertest.NewNop())
	targets := func(c *apiClient) []any {
		all := data[map[string]any](t, c, "/api/v1/targets")["activeTargets"].([]any)
		for _, one := range all { // ours are without what may be secret
			found := one.(map[string]any)["discoveredLabels"].(map[string]any)
			found[metaURL] = redact.URL(found[metaURL].(string))
		}
		return settled(all, []string{"lastScrape", "lastScrapeDuration", "lastError", "health"}).([]any)
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Len(c, targets(theirs), 3)
		assert.Equal(c, targets(theirs), targets(ours))
	}, patience, 50*glance)
	assert.Equal(t, configOf(t, theirs), configOf(t, ours))
}

// settled returns a tree without volatile values, and with lists in an order that depends only on their content.
func settled(tree any, volatile []string) any {
	switch tree := tree.(type) {
	case map[string]any:
		for _, key := range volatile {
			delete(tree, key)
		}
		for key := range tree {
			tree[key] = settled(tree[key], volatile)
		}
	case []any:
		for i := range tree {
			tree[i] = settled(tree[i], volatile)
		}
		slices.SortFunc(tree, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
	return tree
}
