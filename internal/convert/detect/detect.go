// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package detect recognises the kind of a file.
package detect

import (
	"bytes"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/vmagent"
	"github.com/godwit-otel/godwit/internal/lazyregexp"
)

// A Kind is the kind of a file.
type Kind string

// The kinds of files. All but the first three are only recognised, and not converted.
const (
	Prometheus Kind = "prometheus"
	VMAgent    Kind = "vmagent"
	Collector  Kind = "collector"
	Auto       Kind = "auto"
)

// Kinds of files that are met beside those that can be converted.
const (
	Rules        Kind = "rules of Prometheus"
	Targets      Kind = "a list of targets for file_sd_configs"
	Alertmanager Kind = "a configuration of Alertmanager"
	Alloy        Kind = "a configuration of Grafana Alloy, which is converted by hand: docs/migrate-from-alloy.md says what becomes of its components"
	grafanaAgent Kind = "a configuration of Grafana Agent's static mode: make a prometheus.yml of what is under `metrics`, `global` without its `remote_write`, then " +
		"`scrape_configs` and `remote_write` beside it, and convert that"
	Compose           Kind = "a file of Docker Compose without flags of vmagent in it: convert the file that a service reads"
	Manifest          Kind = "a manifest of Kubernetes without a configuration or flags of vmagent in it"
	Chart             Kind = "values of a Helm chart: convert the manifest that `helm template` makes with them and that has the configuration, or flags of vmagent, in it"
	TargetAllocator   Kind = "a configuration of the operator's target allocator: it goes on running, and agents ask it (examples/kubernetes-target-allocator.yaml)"
	Jobs              Kind = "a list of jobs: give it beside the file that names it under `scrape_config_files`, or put it under `scrape_configs` of a file"
	RelabelRules      Kind = "rules for labels: give it beside the flags or the configuration that name it"
	StreamAggregation Kind = "rules of vmagent's stream aggregation: give it beside the flags that name it"
	unit              Kind = "a unit of systemd that starts no vmagent: convert the file that its command names"
	builder           Kind = "a manifest of the OpenTelemetry Collector builder, which lists what is built in: convert the file that the collector runs with; ours go into the manifest as the README shows"
	Unfilled          Kind = "a template: convert what it makes, which `helm template` shows of a chart"
	started           Kind = "what starts Prometheus: convert the file that its `--config.file` names"
	Unknown           Kind = "unknown"
)

// String returns what a file is, as the end of "it is".
func (k Kind) String() string {
	switch k {
	case Prometheus:
		return "a configuration of Prometheus"
	case VMAgent:
		return "flags or a scrape configuration of vmagent"
	case Collector:
		return "a configuration of an OpenTelemetry collector"
	case Unknown:
		return "no configuration that is known here"
	}
	return string(k)
}

// Sections by which the owner of a configuration is recognised.
var (
	collectorSections  = []string{"service", "receivers", "exporters", "processors", "connectors", "extensions"}
	prometheusSections = []string{"scrape_configs", "scrape_config_files", "remote_write", "remote_read", "rule_files", "alerting", "global", "otlp", "storage", "tracing"}
)

// File returns the kind of a file.
func File(text []byte) Kind {
	if vmagent.IsFlags(text) {
		if vmagent.IsUnit(string(text)) && bytes.Contains(text, []byte("{{")) {
			return Unfilled
		}
		return VMAgent
	}
	root, err := document.ParseLoosely(text)
	if alloyBlock().Match(text) && (err != nil || root == nil || root.Kind != yaml.MappingNode) {
		return Alloy
	}
	if vmagent.IsScript(text, root) {
		return VMAgent
	}
	if err != nil && bytes.Contains(text, []byte("{{")) {
		return Unfilled
	}
	if bytes.Contains(text, []byte("--config.file")) && (err != nil || root == nil || root.Kind != yaml.MappingNode) {
		return started
	}
	if err != nil || root == nil {
		return Unknown
	}
	kind := ofTree(root)
	switch {
	case kind != Unknown:
	case len(vmagent.ContainerFlags(root)) > 0: // such as a task of ECS
		return VMAgent
	case bytes.Contains(text, []byte("{{")):
		return Unfilled
	}
	return kind
}

// ofTree returns the kind of a YAML tree.
func ofTree(root *yaml.Node) Kind {
	has := func(keys ...string) bool {
		for _, key := range keys {
			if document.Find(root, key) != nil {
				return true
			}
		}
		return false
	}
	switch {
	case has("apiVersion") && has("kind"):
		if len(vmagent.ContainerFlags(root)) > 0 {
			return VMAgent
		}
		return Manifest
	case IsCompose(root):
		if service, _, _ := vmagent.Composed(root); service != nil {
			return VMAgent
		}
		return Compose
	case root.Kind == yaml.SequenceNode && len(root.Content) > 0:
		return ofList(root.Content[0])
	case has("route") && has("receivers"):
		return Alertmanager
	case has("allocation_strategy", "collector_selector", "prometheus_cr"):
		return TargetAllocator
	case isChart(root):
		return Chart
	case has("dist") && isList(root, "receivers", "exporters", "processors", "extensions"):
		return builder
	case has("service") && isService(document.Find(root, "service")) || has("receivers") && has("exporters"):
		return Collector
	case has("groups"):
		return Rules
	case isGrafanaAgent(root):
		return grafanaAgent
	case has("scrape_configs", "scrape_config_files") && !has(collectorSections...) && (vmagent.HasTemplates(root) || !has("remote_write", "rule_files", "alerting") && vmagent.IsScrapeConfig(root)):
		return VMAgent
	case has(prometheusSections...):
		return Prometheus
	case has(collectorSections[1:]...):
		return Collector
	}
	return Unknown
}

// isService distinguishes a collector's service from other things of that name.
func isService(n *yaml.Node) bool {
	return document.IsNull(n) || n.Kind == yaml.MappingNode && len(n.Content) == 0 ||
		document.Find(n, "pipelines") != nil || document.Find(n, "extensions") != nil || document.Find(n, "telemetry") != nil
}

// isList reports whether the value of one of the keys is a list.
func isList(root *yaml.Node, keys ...string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return len(document.Contents(document.Find(root, key))) > 0 })
}

// ofList recognises a list by its first item.
func ofList(first *yaml.Node) Kind {
	for _, part := range []struct {
		key  string
		kind Kind
	}{{"targets", Targets}, {"job_name", Jobs}, {"outputs", StreamAggregation}, {"source_labels", RelabelRules}, {"target_label", RelabelRules}, {"action", RelabelRules}} {
		if document.Find(first, part.key) != nil {
			return part.kind
		}
	}
	if strings.HasPrefix(first.Value, "-") {
		return VMAgent
	}
	return Unknown
}

// chartKeys are top-level keys of charts' values, which may also have sections called `service`, `global` and
// `extensions`.
var chartKeys = []string{
	"nameOverride", "fullnameOverride", "replicaCount", "image", "imagePullSecrets", "serviceAccount", "podAnnotations", "nodeSelector", "tolerations",
	"presets", "serverFiles", "extraArgs", "alternateConfig",
}

// isGrafanaAgent recognises the static mode of Grafana Agent, which has its configurations in lists of that name and
// exporters of its own.
func isGrafanaAgent(root *yaml.Node) bool {
	for _, section := range []string{"metrics", "prometheus", "logs", "loki", "traces", "tempo"} {
		if document.Find(document.Find(root, section), "configs") != nil {
			return true
		}
	}
	integrations := document.Find(root, "integrations")
	for _, key := range []string{"prometheus_remote_write", "agent", "node_exporter", "windows_exporter", "scrape_integrations"} {
		if document.Find(integrations, key) != nil {
			return true
		}
	}
	return false
}

// isChart distinguishes the values of a Helm chart, for itself or for one that it depends on, from configurations.
func isChart(root *yaml.Node) bool {
	if root.Kind != yaml.MappingNode {
		return false
	}
	for _, key := range []string{"receivers", "exporters", "processors", "scrape_configs", "remote_write"} {
		if document.Find(root, key) != nil {
			return false
		}
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i].Value, root.Content[i+1]
		if slices.Contains(chartKeys, key) || document.Find(value, "prometheusSpec") != nil || isConfigured(root) || isConfigured(value) {
			return true
		}
	}
	return false
}

// isConfigured reports whether there is a configuration under `config`, where charts have theirs.
func isConfigured(values *yaml.Node) bool {
	config := document.Find(values, "config")
	for _, key := range append([]string{"scrape_configs", "remote_write"}, collectorSections...) {
		if document.Find(config, key) != nil {
			return true
		}
	}
	return false
}

// IsCompose recognises files of Docker Compose: services that have images.
func IsCompose(root *yaml.Node) bool {
	services := document.Find(root, "services")
	for i := 1; services != nil && services.Kind == yaml.MappingNode && i < len(services.Content); i += 2 {
		if service := services.Content[i]; document.Find(service, "image") != nil || document.Find(service, "build") != nil {
			return true
		}
	}
	return false
}

// alloyBlock matches the beginning of a component of Alloy, which is never YAML.
var alloyBlock = lazyregexp.New(`(?m)^[a-z]+(\.[a-z0-9_]+)+\s+"[A-Za-z0-9_]+"\s*\{`)

// Stranger returns what a file is that was given to a collector to run, if it is a kind that occurs in practice and can
// be distinguished from parts of a collector's.
func Stranger(text []byte) Kind {
	switch {
	case vmagent.IsUnit(string(text)) && vmagent.IsFlags(text) && !bytes.Contains(text, []byte("vmagent")) && !vmagent.ScriptFlag().Match(text):
		return unit
	case vmagent.IsFlags(text):
		return VMAgent
	}
	if bytes.Contains(text, []byte("service:")) || bytes.Contains(text, []byte("exporters:")) || bytes.Contains(text, []byte("processors:")) {
		return ""
	}
	switch kind := File(text); kind {
	case Alloy, grafanaAgent, Alertmanager, Rules, VMAgent:
		return kind
	}
	return ""
}

// IsPrometheus recognises a file for Prometheus by its top-level keys alone, as cheaply as possible, because every file
// with which a collector starts is checked.
func IsPrometheus(text []byte) bool {
	found := false
	for line := range bytes.Lines(text) {
		key, _, ok := bytes.Cut(line, []byte(":"))
		if !ok || !document.BeginsWithLetter(key) {
			continue
		}
		if slices.Contains(collectorSections, string(key)) {
			return false
		}
		found = found || slices.Contains(prometheusSections[:6], string(key))
	}
	return found
}
