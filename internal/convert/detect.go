// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Kinds of files that are met beside those that can be converted.
const (
	rules        Kind = "rules of Prometheus"
	targets      Kind = "a list of targets for file_sd_configs"
	alertmanager Kind = "a configuration of Alertmanager"
	alloy        Kind = "a configuration of Grafana Alloy, which is converted by hand: docs/migrate-from-alloy.md says what becomes of its components"
	grafanaAgent Kind = "a configuration of Grafana Agent's static mode: make a prometheus.yml of what is under `metrics`, `global` without its `remote_write`, then " +
		"`scrape_configs` and `remote_write` beside it, and convert that"
	compose  Kind = "a file of Docker Compose without flags of vmagent in it: convert the file that a service reads"
	manifest Kind = "a manifest of Kubernetes without a configuration or flags of vmagent in it"
	chart    Kind = "values of a Helm chart: convert the manifest that `helm template` makes with them and that has the configuration, or flags of vmagent, in it"
	allocate Kind = "a configuration of the operator's target allocator: it goes on running, and agents ask it (examples/kubernetes-target-allocator.yaml)"
	jobs     Kind = "a list of jobs: give it beside the file that names it under `scrape_config_files`, or put it under `scrape_configs` of a file"
	relabels Kind = "rules for labels: give it beside the flags or the configuration that name it"
	sums     Kind = "rules of vmagent's stream aggregation: give it beside the flags that name it"
	unit     Kind = "a unit of systemd that starts no vmagent: convert the file that its command names"
	unfilled Kind = "a template: convert what it makes, which `helm template` shows of a chart"
	unknown  Kind = "unknown"
)

// String says what a file is, as the end of "it is".
func (k Kind) String() string {
	switch k {
	case Prometheus:
		return "a configuration of Prometheus"
	case VMAgent:
		return "flags or a scrape configuration of vmagent"
	case Collector:
		return "a configuration of an OpenTelemetry collector"
	case unknown:
		return "no configuration that is known here"
	}
	return string(k)
}

// Sections that tell whose configuration a mapping is.
var (
	collectorSections  = []string{"service", "receivers", "exporters", "processors", "connectors", "extensions"}
	prometheusSections = []string{"scrape_configs", "scrape_config_files", "remote_write", "remote_read", "rule_files", "alerting", "global", "otlp", "storage", "tracing"}
	// Keys that only vmagent has.
	vmagentJobKeys = []string{
		"stream_parse", "scrape_align_interval", "scrape_offset", "series_limit", "no_stale_markers", "disable_compression", "disable_keepalive",
		"max_scrape_size", "relabel_debug", "metric_relabel_debug", "headers", "proxy_headers",
	}
	vmagentRuleKeys = []string{"if", "match", "labels"}
)

// Detect says what a file is.
func Detect(text []byte) Kind {
	if isFlags(text) {
		return VMAgent
	}
	root, err := parseLoosely(text)
	if alloyBlock().Match(text) && (err != nil || root == nil || root.Kind != yaml.MappingNode) {
		return alloy
	}
	if isScript(text, root) {
		return VMAgent
	}
	if err != nil && bytes.Contains(text, []byte("{{")) {
		return unfilled
	}
	if err != nil || root == nil {
		return unknown
	}
	has := func(keys ...string) bool {
		for _, key := range keys {
			if find(root, key) != nil {
				return true
			}
		}
		return false
	}
	switch {
	case has("apiVersion") && has("kind"):
		if len(containerFlags(root)) > 0 {
			return VMAgent
		}
		return manifest
	case isCompose(root):
		if service, _, _ := composed(root); service != nil {
			return VMAgent
		}
		return compose
	case root.Kind == yaml.SequenceNode && len(root.Content) > 0:
		return ofList(root.Content[0])
	case has("route") && has("receivers"):
		return alertmanager
	case has("allocation_strategy", "collector_selector", "prometheus_cr"):
		return allocate
	case isChart(root):
		return chart
	case has("service") || has("receivers") && has("exporters"):
		return Collector
	case has("groups"):
		return rules
	case has("metrics") && find(find(root, "metrics"), "configs") != nil, has("prometheus") && find(find(root, "prometheus"), "configs") != nil:
		return grafanaAgent
	case has("scrape_configs", "scrape_config_files") && !has("remote_write", "rule_files", "alerting") && !has(collectorSections...) && ofVMAgent(root):
		return VMAgent
	case has(prometheusSections...):
		return Prometheus
	case has(collectorSections...):
		return Collector
	}
	return unknown
}

// ofList says what a list is by its first item.
func ofList(first *yaml.Node) Kind {
	for _, part := range []struct {
		key  string
		kind Kind
	}{{"targets", targets}, {"job_name", jobs}, {"outputs", sums}, {"source_labels", relabels}, {"target_label", relabels}, {"action", relabels}} {
		if find(first, part.key) != nil {
			return part.kind
		}
	}
	if strings.HasPrefix(first.Value, "-") {
		return VMAgent
	}
	return unknown
}

// chartKeys are at the top of charts' values, which may have sections that are called `service`, `global` and `extensions`, too.
var chartKeys = []string{
	"nameOverride", "fullnameOverride", "replicaCount", "image", "imagePullSecrets", "serviceAccount", "podAnnotations", "nodeSelector", "tolerations",
	"presets", "serverFiles", "extraArgs", "alternateConfig",
}

// isChart tells values of a Helm chart, for itself or for one that it depends on, from configurations.
func isChart(root *yaml.Node) bool {
	if root.Kind != yaml.MappingNode {
		return false
	}
	for _, key := range []string{"receivers", "exporters", "processors", "scrape_configs", "remote_write"} {
		if find(root, key) != nil {
			return false
		}
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i].Value, root.Content[i+1]
		if slices.Contains(chartKeys, key) || find(value, "prometheusSpec") != nil || isConfigured(root) || isConfigured(value) {
			return true
		}
	}
	return false
}

// isConfigured tells whether a configuration is under `config`, where charts have theirs.
func isConfigured(values *yaml.Node) bool {
	config := find(values, "config")
	for _, key := range append([]string{"scrape_configs", "remote_write"}, collectorSections...) {
		if find(config, key) != nil {
			return true
		}
	}
	return false
}

// isCompose tells files of Docker Compose: services that have images.
func isCompose(root *yaml.Node) bool {
	services := find(root, "services")
	for i := 1; services != nil && services.Kind == yaml.MappingNode && i < len(services.Content); i += 2 {
		if service := services.Content[i]; find(service, "image") != nil || find(service, "build") != nil {
			return true
		}
	}
	return false
}

// alloyBlock begins a component, which no YAML does.
var alloyBlock = expression(`(?m)^[a-z]+(\.[a-z0-9_]+)+\s+"[A-Za-z0-9_]+"\s*\{`)

// strangers says what a file is that somebody gave a collector to run, if it is one that is met and can be told from parts of a collector's.
func strangers(text []byte) Kind {
	switch {
	case isUnit(string(text)) && isFlags(text) && !bytes.Contains(text, []byte("vmagent")) && !scriptFlag().Match(text):
		return unit
	case isFlags(text):
		return VMAgent
	}
	if bytes.Contains(text, []byte("service:")) || bytes.Contains(text, []byte("exporters:")) || bytes.Contains(text, []byte("processors:")) {
		return ""
	}
	switch kind := Detect(text); kind {
	case alloy, grafanaAgent, alertmanager, rules, VMAgent:
		return kind
	}
	return ""
}

// ofVMAgent tells whether a scrape configuration has what only vmagent knows.
func ofVMAgent(root *yaml.Node) bool {
	global := find(root, "global")
	if find(global, "relabel_configs") != nil || find(global, "metric_relabel_configs") != nil || hasTemplates(root) {
		return true
	}
	return slices.ContainsFunc(contents(find(root, "scrape_configs")), isJobOfVMAgent)
}

// isJobOfVMAgent tells whether a job has what only vmagent knows.
func isJobOfVMAgent(job *yaml.Node) bool {
	for _, key := range vmagentJobKeys {
		if find(job, key) != nil {
			return true
		}
	}
	for key := range vmagentKeys {
		if find(job, key) != nil {
			return true
		}
	}
	for _, chain := range []string{"relabel_configs", "metric_relabel_configs"} {
		if slices.ContainsFunc(contents(find(job, chain)), isRuleOfVMAgent) {
			return true
		}
	}
	if slices.ContainsFunc(contents(find(job, "relabel_configs")), writesAddress) {
		return false // its targets are what a rule reads
	}
	return slices.ContainsFunc(contents(find(job, "static_configs")), func(group *yaml.Node) bool {
		return slices.ContainsFunc(texts(find(group, "targets")), func(target string) bool { return strings.Contains(target, "/") })
	})
}

func isRuleOfVMAgent(rule *yaml.Node) bool {
	for _, key := range vmagentRuleKeys {
		if find(rule, key) != nil {
			return true
		}
	}
	if regex := find(rule, "regex"); regex != nil && regex.Kind == yaml.SequenceNode {
		return true
	}
	action := find(rule, "action")
	return action != nil && vmagentActions[action.Value]
}

// hasTemplates tells whether a value is to be filled in from the environment as vmagent does so.
func hasTemplates(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && template().MatchString(n.Value) || slices.ContainsFunc(n.Content, hasTemplates)
}

// isFlags tells files of flags and units of systemd from YAML.
func isFlags(text []byte) bool {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0, line[0] == '#', line[0] == ';':
		case bytes.HasPrefix(line, []byte("[Unit]")), bytes.HasPrefix(line, []byte("[Service]")):
			return true
		default:
			flag := bytes.TrimLeft(line, "-")
			return len(flag) < len(line) && len(flag) > 0 && flag[0] != ' ' && bytes.ContainsAny(flag[:1], letters) ||
				bytes.Contains(line, []byte("vmagent")) && bytes.Contains(line, []byte(" -"))
		}
	}
	return false
}

// isScript tells scripts and files of variables that have flags of vmagent in them from YAML, which root is of those.
func isScript(text []byte, root *yaml.Node) bool {
	return (root == nil || root.Kind == yaml.ScalarNode) && scriptFlag().Match(text)
}

var scriptFlag = expression(`(?m)(?:^|[\s"'])--?(?:remoteWrite|promscrape)\.`)

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// IsPrometheus tells a file that was meant for Prometheus by its top-level keys alone, as cheaply as it can be done: it is asked
// for every file that a collector starts with.
func IsPrometheus(text []byte) bool {
	found := false
	for line := range bytes.Lines(text) {
		key, _, ok := bytes.Cut(line, []byte(":"))
		if !ok || len(key) == 0 || !bytes.ContainsAny(key[:1], letters) {
			continue
		}
		if slices.Contains(collectorSections, string(key)) {
			return false
		}
		found = found || slices.Contains(prometheusSections[:6], string(key))
	}
	return found
}
