// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// metadata is the part of a component's metadata.yaml that is used.
type metadata struct {
	Attributes map[string]struct {
		Name        string   `yaml:"name_override"`
		Description string   `yaml:"description"`
		Enum        []string `yaml:"enum"`
	} `yaml:"attributes"`
	Telemetry struct {
		Metrics map[string]metric `yaml:"metrics"`
	} `yaml:"telemetry"`
}

type metric struct {
	Description string   `yaml:"description"`
	Unit        string   `yaml:"unit"`
	Attributes  []string `yaml:"attributes"`
	Sum         *struct {
		Monotonic bool `yaml:"monotonic"`
	} `yaml:"sum"`
	Gauge     *struct{} `yaml:"gauge"`
	Histogram *struct{} `yaml:"histogram"`
}

func (m *metric) kind() string {
	switch {
	case m.Sum != nil && m.Sum.Monotonic:
		return "counter"
	case m.Histogram != nil:
		return "histogram"
	}
	return "gauge"
}

// metricsPage returns the page with every metric of every component.
func metricsPage(root string, components []described) (string, error) {
	var p strings.Builder
	p.WriteString("# Every metric\n\n" + generated + `
Of Godwit's own components, beside the Collector's ([its list](https://opentelemetry.io/docs/collector/internal-telemetry/)). Names are those of
the Collector's own page of metrics, ` + "`:8888/metrics`" + ` by default, as the distributions are configured; another exporter may put
units and ` + "`_total`" + ` behind them.
[The dashboards and alert rules](../../dashboards/README.md) use them. A component without a heading has none of its own.
`)
	for i := range components {
		d := &components[i]
		raw, err := os.ReadFile(filepath.Join(root, d.dir, "metadata.yaml")) //nolint:gosec // a file of the repository
		if err != nil {
			return "", fmt.Errorf("cannot read the metadata of a component: %w", err)
		}
		var m metadata
		if err := yaml.Unmarshal(raw, &m); err != nil {
			return "", fmt.Errorf("cannot read the metadata of %s: %w", d.dir, err)
		}
		if len(m.Telemetry.Metrics) == 0 {
			continue
		}
		fmt.Fprintf(&p, "\n## %s\n\n| metric | kind | unit | attributes | |\n|---|---|---|---|---|\n", d.title())
		used := map[string]bool{}
		for _, name := range slices.Sorted(maps.Keys(m.Telemetry.Metrics)) {
			metric := m.Telemetry.Metrics[name]
			var attributes []string
			for _, a := range metric.Attributes {
				used[a] = true
				attributes = append(attributes, "`"+m.attribute(a)+"`")
			}
			fmt.Fprintf(&p, "| `otelcol_%s` | %s | %s | %s | %s |\n", name, metric.kind(), cell(metric.Unit), strings.Join(attributes, ", "),
				cell(strings.Join(strings.Fields(metric.Description), " ")))
		}
		if len(used) == 0 {
			continue
		}
		p.WriteString("\n")
		for _, name := range slices.Sorted(maps.Keys(used)) {
			a := m.Attributes[name]
			fmt.Fprintf(&p, "- `%s`: %s", m.attribute(name), strings.Join(strings.Fields(a.Description), " "))
			if len(a.Enum) > 0 {
				fmt.Fprintf(&p, " One of %s.", strings.Join(a.Enum, ", "))
			}
			p.WriteString("\n")
		}
	}
	return p.String(), nil
}

// attribute returns an attribute's exported name.
func (m *metadata) attribute(name string) string {
	if other := m.Attributes[name].Name; other != "" {
		return other
	}
	return name
}
