// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package components knows which distribution has which components, and their former names.
package components

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/input"
	"github.com/godwit-otel/godwit/internal/convert/report"
)

// componentsText says which distributions have which components and mechanisms of service discovery. A test asks the binaries.
//
//go:embed components.txt
var componentsText string

// Kinds of components, as the sections of a configuration name them. Service discovery is listed along with them.
var Kinds = []string{"receivers", "processors", "exporters", "connectors", "extensions"}

// Signals are what pipelines are for.
var Signals = []string{"metrics", "traces", "logs", "profiles"}

// Discovery is the kind of mechanisms of service discovery.
const Discovery = "discovery"

// DistributionsOf returns the distributions that have a component, by kind and type.
var DistributionsOf = sync.OnceValue(func() map[string][]string {
	have := map[string][]string{}
	for line := range strings.Lines(componentsText) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[0] != "#" {
			have[PlainName(fields[0], fields[1])] = fields[2:]
		}
	}
	return have
})

// Deprecated has former names of types, with their current names, by kind.
var Deprecated = map[string]string{
	"exporters otlp":                  "otlp_grpc",
	"exporters otlphttp":              "otlp_http",
	"exporters prometheusremotewrite": "prometheus_remote_write",
	"exporters loadbalancing":         "load_balancing",
	"receivers prometheusremotewrite": "remotewrite",
	"receivers hostmetrics":           "host_metrics",
	"receivers filelog":               "file_log",
	"receivers kubeletstats":          "kubelet_stats",
	"processors resourcedetection":    "resource_detection",
	"processors k8sattributes":        "k8s_attributes",
	"processors cumulativetodelta":    "cumulative_to_delta",
	"processors deltatocumulative":    "delta_to_cumulative",
	"processors metricstarttime":      "metric_start_time",
}

// PlainName returns the same for names of a type that only differ in underscores, as old and new ones mostly do.
func PlainName(kind, name string) string {
	if now := Deprecated[kind+" "+name]; now != "" {
		name = now
	}
	return kind + " " + strings.ReplaceAll(name, "_", "")
}

// Instead says what replaces a component that no distribution has.
var Instead = map[string]string{
	"receivers prometheusremotewrite": "`remotewrite` takes Remote Write, at `/api/v1/write` of its `endpoint`, and is in all distributions; `convert` renames it",
	"receivers prometheussimple":      "`prometheus` with a job for its `endpoint` does so, and is in all distributions",
	"receivers k8sevents":             "`k8s_objects` with `name: events` and `mode: watch` does so, and is in the distribution godwit",
	"processors metricstransform":     "`transform` renames metrics and labels (`set(metric.name, ...)`), and is in the distributions godwit and godwit-gateway; `cardinality` adds series up",
}

// everywhere lists the discovery mechanisms of all distributions, whatever their build tags.
var everywhere = []string{"static", "file", "http"}

// Missing returns what has a component that a distribution does not have, or "" if it has it.
func Missing(distribution, kind, name string) string {
	have := DistributionsOf()[PlainName(kind, name)]
	switch {
	case distribution == "", slices.Contains(have, distribution), kind == Discovery && slices.Contains(everywhere, name):
		return ""
	case len(have) == 0 && kind == Discovery:
		return "no distribution of Godwit has this service discovery"
	case len(have) == 0 && Instead[PlainName(kind, name)] != "":
		return "no distribution of Godwit has it: " + Instead[PlainName(kind, name)]
	case len(have) == 0:
		return "no distribution of Godwit has it: build one with it, as the README's manifest does"
	}
	return fmt.Sprintf("%s does not have it: run it with the distribution %s", distribution, strings.Join(have, " or "))
}

// Check reports the components of one kind that the distribution does not have.
func Check(in *input.Input, kind string, section *yaml.Node, file string) {
	if section == nil || section.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(section.Content); i += 2 {
		key := section.Content[i]
		if text := Missing(in.Distribution, kind, TypeOf(key.Value)); text != "" {
			in.Report.Add(report.Finding{Kind: report.Needs, File: file, Line: key.Line, Path: kind + "." + key.Value, Text: text})
		}
	}
}

// TypeOf returns the type in a component's ID.
func TypeOf(id string) string {
	kind, _, _ := strings.Cut(id, "/")
	return strings.TrimSpace(kind)
}
