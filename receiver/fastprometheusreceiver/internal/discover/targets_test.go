// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/scrape"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func job(t *testing.T, extra string) *config.ScrapeConfig {
	t.Helper()
	cfg, err := config.Load("scrape_configs:\n- job_name: test\n"+extra, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	jobs, err := cfg.GetScrapeConfigs()
	require.NoError(t, err)
	return jobs[0]
}

func group(shared model.LabelSet, addresses ...string) *targetgroup.Group {
	g := &targetgroup.Group{Labels: shared, Source: "test"}
	for _, address := range addresses {
		g.Targets = append(g.Targets, model.LabelSet{model.AddressLabel: model.LabelValue(address)})
	}
	return g
}

const relabelling = `
  scheme: https
  params: {module: [http_2xx, other], "a b": ["c&d"]}
  relabel_configs:
  - {source_labels: [__address__], regex: drop.*, action: drop}
  - {source_labels: [__meta_name], target_label: name}
  - {source_labels: [__meta_interval], target_label: __scrape_interval__, regex: (.+)}
  - {source_labels: [__meta_timeout], target_label: __scrape_timeout__, regex: (.+)}
  - {source_labels: [__meta_module], target_label: __param_module, regex: (.+)}
  - {source_labels: [__meta_path], target_label: __metrics_path__, regex: (.+)}
`

// The derived targets are the same as in Prometheus.
func TestDeriveIsPrometheuss(t *testing.T) {
	cfg := job(t, relabelling)
	groups := []*targetgroup.Group{
		group(model.LabelSet{"group": "a", "__meta_name": "one"}, "a:80", "b", "[::1]:9100", "drop:1", "http://bad"),
		group(model.LabelSet{"__meta_interval": "30s", "__meta_timeout": "20s", "__meta_module": "icmp"}, "c:1", "d:2"),
		group(model.LabelSet{"__meta_path": "/probe", "job": "other", "instance": "me"}, "e:1"),
		group(model.LabelSet{"__meta_interval": "1s", "__meta_timeout": "5s"}, "too-slow:1"),
	}
	var want []*scrape.Target
	var failures, dropped int
	builder := labels.NewBuilder(labels.EmptyLabels())
	for _, g := range groups {
		targets, errs := scrape.TargetsFromGroup(g, cfg, nil, builder)
		failures += len(errs)
		for _, target := range targets {
			if target.Labels(builder).IsEmpty() {
				dropped++
				continue
			}
			want = append(want, target)
		}
	}
	set := NewDeriver(cfg, Shard{}).Derive(groups)
	require.Len(t, set.Targets, len(want))
	for i, target := range set.Targets {
		assert.Equal(t, want[i].URL().String(), target.URL)
		assert.Equal(t, want[i].DiscoveredLabels(builder), target.Discovered())
		assert.Equal(t, want[i].GetValue(model.ScrapeIntervalLabel), model.Duration(target.Interval).String())
		assert.Equal(t, want[i].GetValue(model.ScrapeTimeoutLabel), model.Duration(target.Timeout).String())
		for _, name := range []string{"job", "instance", "group", "name", "__address__", "__scheme__"} {
			assert.Equal(t, want[i].GetValue(name), target.Labels.Get(name))
		}
	}
	assert.Len(t, set.Failures, failures)
	assert.Equal(t, 2, failures)
	assert.Equal(t, dropped, set.Drops)
	assert.Equal(t, "drop:1", set.Dropped[0].Labels(cfg).Get("__address__"))
}

// A target stays the same while only reserved labels change, but not when the URL or its public labels change.
func TestIdentity(t *testing.T) {
	hash := func(extra string, shared model.LabelSet) uint64 {
		set := NewDeriver(job(t, extra), Shard{}).Derive([]*targetgroup.Group{group(shared, "a:1")})
		require.Len(t, set.Targets, 1)
		return set.Targets[0].Hash
	}
	same := hash("", nil)
	assert.Equal(t, same, hash("  scrape_interval: 7s\n  scrape_timeout: 3s\n", nil))
	assert.Equal(t, same, hash("", model.LabelSet{"__meta_x": "1"}))
	assert.Equal(t, same, hash("", model.LabelSet{"__tmp_x": "1"}))
	seen := map[uint64]string{same: "plain"}
	for name, other := range map[string]uint64{
		"label":   hash("", model.LabelSet{"x": "1"}),
		"path":    hash("  metrics_path: /m\n", nil),
		"param":   hash("  params: {a: [b]}\n", nil),
		"scheme":  hash("  scheme: https\n", nil),
		"socket":  hash("", model.LabelSet{"__unix_socket__": "/run/x"}),
		"pod":     hash("", model.LabelSet{"__meta_kubernetes_pod_uid": "1"}),
		"classic": hash("", model.LabelSet{"__always_scrape_classic_histograms__": "true"}),
	} {
		assert.NotContains(t, seen, other, name)
		seen[other] = name
	}
}

// A resource's attributes come from the labels before relabelling.
func TestResource(t *testing.T) {
	f := func(want labels.Labels, shared model.LabelSet) {
		t.Helper()
		cfg := job(t, "  relabel_configs: [{target_label: __scheme__, replacement: https}]\n")
		set := NewDeriver(cfg, Shard{}).Derive([]*targetgroup.Group{group(shared, "a:1")})
		require.Len(t, set.Targets, 1)
		assert.Equal(t, want, set.Targets[0].Resource())
		all := set.Targets[0].Discovered()
		for _, name := range resourceLabels {
			assert.Equal(t, all.Get(string(name)), set.Targets[0].Resource().Get(string(name)))
		}
	}
	f(labels.FromStrings("__scheme__", "http"), model.LabelSet{"__meta_x": "y", "zone": "east"})
	f(labels.FromStrings("__scheme__", "unix"), model.LabelSet{"__scheme__": "unix"})
	f(labels.FromStrings("__scheme__", "http", "__meta_kubernetes_pod_name", "geese-1", "__meta_kubernetes_pod_controller_kind", "Job"),
		model.LabelSet{"__meta_kubernetes_pod_name": "geese-1", "__meta_kubernetes_pod_controller_kind": "Job", "__meta_kubernetes_pod_ip": "::1"})
}

func TestDuplicatesAreOneTarget(t *testing.T) {
	set := NewDeriver(job(t, ""), Shard{}).Derive([]*targetgroup.Group{group(nil, "a:1", "b:1", "a:1"), group(nil, "b:1"), nil})
	assert.Len(t, set.Targets, 2)
}

func TestKeepDroppedTargets(t *testing.T) {
	cfg := job(t, "  keep_dropped_targets: 2\n  relabel_configs: [{action: drop}]\n")
	set := NewDeriver(cfg, Shard{}).Derive([]*targetgroup.Group{group(nil, "a", "b"), group(nil, "c", "d")})
	assert.Empty(t, set.Targets)
	assert.Equal(t, 4, set.Drops)
	assert.Len(t, set.Dropped, 2)
}

// Only changed groups are derived again, and an invalid target is reported once.
func TestKnownGroupsAreKept(t *testing.T) {
	d := NewDeriver(job(t, relabelling), Shard{})
	stays, goes := group(nil, "a:1", "http://bad"), group(nil, "b:1")
	first := d.Derive([]*targetgroup.Group{stays, goes})
	assert.Len(t, first.Failures, 1)
	second := d.Derive([]*targetgroup.Group{stays, group(nil, "c:1")})
	assert.Empty(t, second.Failures)
	require.Len(t, second.Targets, 2)
	assert.Same(t, first.Targets[0], second.Targets[0])
	assert.Equal(t, "https://c:1/metrics?a+b=c%26d&module=http_2xx&module=other", second.Targets[1].URL)
	assert.Len(t, d.derived, 2)
}

func TestShardsDivideTargets(t *testing.T) {
	cfg := job(t, "")
	var addresses []string
	for i := range 100 {
		addresses = append(addresses, fmt.Sprintf("host-%d:9100", i))
	}
	groups := []*targetgroup.Group{group(nil, addresses...)}
	whole, sum := NewDeriver(cfg, Shard{}).Derive(groups), 0
	for i := range 3 {
		set := NewDeriver(cfg, Shard{Members: 3, Index: i}).Derive(groups)
		assert.Equal(t, len(whole.Targets)-len(set.Targets), set.Elsewhere)
		sum += len(set.Targets)
	}
	assert.Equal(t, len(whole.Targets), sum)
}

func TestIntervals(t *testing.T) {
	set := NewDeriver(job(t, "  scrape_interval: 90s\n"), Shard{}).Derive([]*targetgroup.Group{group(nil, "a")})
	assert.Equal(t, 90*time.Second, set.Targets[0].Interval)
	assert.Equal(t, 10*time.Second, set.Targets[0].Timeout)
}
