// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// agentRoad scrapes with both receivers, receives OTLP of all kinds, and sends with each exporter. No option changes
// the pipeline of its neighbour.
const agentRoad = `
extensions:
  health_check: {endpoint: $HEALTH}
  console: {endpoint: 127.0.0.1:$CONSOLE}
  pulse: {interval: 5s}
  runtimeprofile: {}
receivers:
  fastprometheus:
    config:
      global: {scrape_interval: 500ms, scrape_timeout: 500ms}
      scrape_configs: [{job_name: fast, static_configs: [{targets: [$FAST]}]}]
  fastprometheus/neighbour:
    config:
      global: {scrape_interval: 500ms, scrape_timeout: 500ms}
      scrape_configs: [{job_name: neighbour, static_configs: [{targets: [$NEIGHBOUR]}]}]
  prometheus:
    config:
      global: {scrape_interval: 500ms, scrape_timeout: 500ms}
      scrape_configs: [{job_name: drop, static_configs: [{targets: [$DROP]}]}]
  otlp: {protocols: {grpc: {endpoint: $OTLP, include_metadata: true}}}
processors:
  cardinality: {}
exporters:
  remotewrite: {endpoint: http://$WRITE/api/v1/write, batch: {timeout: 100ms}, retry: {initial_interval: 50ms, max_interval: 1s}, circuit_breaker: {open_for: 200ms}}
  remotewrite/neighbour: {endpoint: $THIRD, batch: {timeout: 100ms}}
  prometheusremotewrite: {endpoint: $SECOND, retry_on_failure: {max_interval: 1s}}
  otlpstream: {endpoint: $STREAM, tls: {insecure: true}, retry_on_failure: {initial_interval: 50ms, max_interval: 1s}}
service:
  extensions: [health_check, console, pulse, runtimeprofile]
  telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: $TELEMETRY}}}}]}}
  pipelines:
    metrics/fast: {receivers: [fastprometheus, otlp], processors: [cardinality], exporters: [remotewrite]}
    metrics/drop: {receivers: [prometheus, otlp], exporters: [prometheusremotewrite, otlpstream]}
    metrics/neighbour: {receivers: [fastprometheus/neighbour], exporters: [remotewrite/neighbour]}
    logs: {receivers: [otlp], exporters: [otlpstream]}
    traces: {receivers: [otlp], exporters: [otlpstream]}
`

// gatewayRoad receives what the agent sends and passes it on.
const gatewayRoad = `
extensions:
  health_check: {endpoint: $HEALTH}
  runtimeprofile: {}
receivers:
  remotewrite: {endpoint: $WRITE}
  otlpstream: {protocols: {grpc: {endpoint: $STREAM}, http: {endpoint: $SOCKET}}}
processors:
  cardinality: {}
exporters:
  remotewrite: {endpoint: $FIRST, batch: {timeout: 100ms}, retry: {initial_interval: 50ms, max_interval: 1s}, circuit_breaker: {open_for: 200ms}}
  otlp: {endpoint: $LAST, tls: {insecure: true}}
service:
  extensions: [health_check, runtimeprofile]
  telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: $TELEMETRY}}}}]}}
  pipelines:
    metrics: {receivers: [remotewrite, otlpstream], processors: [cardinality], exporters: [remotewrite]}
    logs: {receivers: [otlpstream], exporters: [otlp]}
    traces: {receivers: [otlpstream], exporters: [otlp]}
`

var roads = map[string]string{Agent: agentRoad, Gateway: gatewayRoad}

// Texts returns the configurations of a run's processes, by role. It replaces variables by name; those that differ
// between processes have the role and a slash as prefix.
func (r *Run) Texts(variables map[string]string) (map[string]string, error) {
	trees := map[string]map[string]any{}
	for role, road := range roads {
		trees[role] = map[string]any{}
		if err := lay(trees[role], road); err != nil {
			return nil, err
		}
	}
	for _, extra := range r.Extras {
		if err := lay(trees[extra.Role], extra.Text); err != nil {
			return nil, err
		}
	}
	for _, choice := range r.Choices {
		if err := choice.apply(trees); err != nil {
			return nil, fmt.Errorf("cannot apply %v: %w", choice, err)
		}
	}
	texts := map[string]string{}
	for role, tree := range trees {
		text, err := yaml.Marshal(tree)
		if err != nil {
			return nil, err
		}
		own := map[string]string{}
		for name, value := range variables {
			if short, is := strings.CutPrefix(name, role+"/"); is {
				own[short] = value
			} else if !strings.Contains(name, "/") {
				own[name] = value
			}
		}
		texts[role] = fill(string(text), own)
	}
	return texts, nil
}

func (c Choice) apply(trees map[string]map[string]any) error {
	tree, other := trees[c.Component.Role], trees[Gateway]
	if c.Component.Role == Gateway {
		other = trees[Agent]
	}
	var value any
	if err := yaml.Unmarshal([]byte(c.Value.Text), &value); err != nil {
		return err
	}
	path := []string{c.Component.Section, c.Component.ID}
	for part := range strings.SplitSeq(c.Option.Key, "::") {
		if part == each {
			break
		}
		path = append(path, part)
	}
	set(tree, path, value)
	if err := lay(tree, strings.ReplaceAll(c.Value.With, "$ID", c.Component.ID)); err != nil {
		return err
	}
	return lay(other, c.Value.Peer)
}

func set(tree map[string]any, path []string, value any) {
	for _, part := range path[:len(path)-1] {
		below, ok := tree[part].(map[string]any)
		if !ok {
			below = map[string]any{}
			tree[part] = below
		}
		tree = below
	}
	tree[path[len(path)-1]] = value
}

// lay merges YAML into a tree: maps are merged, a list is appended if its key ends in +, all else is replaced.
func lay(tree map[string]any, text string) error {
	var over map[string]any
	if err := yaml.Unmarshal([]byte(text), &over); err != nil {
		return err
	}
	merge(tree, over)
	return nil
}

func merge(tree, over map[string]any) {
	for key, value := range over {
		if name, adds := strings.CutSuffix(key, "+"); adds {
			list, _ := tree[name].([]any)
			for _, item := range value.([]any) {
				if !slices.Contains(list, item) {
					list = append(list, item)
				}
			}
			tree[name] = list
			continue
		}
		below, ok1 := tree[key].(map[string]any)
		more, ok2 := value.(map[string]any)
		if ok1 && ok2 {
			merge(below, more)
		} else {
			tree[key] = value
		}
	}
}
