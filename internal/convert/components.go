// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// componentsText says which distributions have which components and mechanisms of service discovery. A test asks the binaries.
//
//go:embed components.txt
var componentsText string

// Kinds of components, as the sections of a configuration name them. Service discovery is told with them.
var componentKinds = []string{"receivers", "processors", "exporters", "connectors", "extensions"}

const discoveryKind = "discovery"

// distributionsOf are the distributions that have a component, by kind and type.
var distributionsOf = sync.OnceValue(func() map[string][]string {
	have := map[string][]string{}
	for line := range strings.Lines(componentsText) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[0] != "#" {
			have[plainName(fields[0], fields[1])] = fields[2:]
		}
	}
	return have
})

// plainName is the same for names of a type that differ in underscores, as old and new ones mostly do.
func plainName(kind, name string) string {
	if now := deprecated[kind+" "+name]; now != "" {
		name = now
	}
	return kind + " " + strings.ReplaceAll(name, "_", "")
}

// instead says what does the same as a component that no distribution has.
var instead = map[string]string{
	"receivers prometheusremotewrite": "`remotewrite` takes Remote Write, at `/api/v1/write` of its `endpoint`, and is in all distributions",
	"receivers prometheussimple":      "`prometheus` with a job for its `endpoint` does so, and is in all distributions",
	"receivers k8sevents":             "`k8s_objects` with `name: events` and `mode: watch` does so, and is in the distribution godwit",
	"processors metricstransform":     "`transform` renames metrics and labels (`set(metric.name, ...)`), and is in the distributions godwit and godwit-gateway; `cardinality` adds series up",
}

// everywhere is what all distributions can discover, whatever their build tags.
var everywhere = []string{"static", "file", "http"}

// missing says what has a component that a distribution does not have, or "" if it has it.
func missing(distribution, kind, name string) string {
	have := distributionsOf()[plainName(kind, name)]
	switch {
	case distribution == "", slices.Contains(have, distribution), kind == discoveryKind && slices.Contains(everywhere, name):
		return ""
	case len(have) == 0 && kind == discoveryKind:
		return "no distribution of Godwit has this service discovery"
	case len(have) == 0 && instead[plainName(kind, name)] != "":
		return "no distribution of Godwit has it: " + instead[plainName(kind, name)]
	case len(have) == 0:
		return "no distribution of Godwit has it: build one with it, as the README's manifest does"
	}
	return fmt.Sprintf("%s does not have it: run it with the distribution %s", distribution, strings.Join(have, " or "))
}

// checkComponents reports what the distribution that shall run a result does not have.
func (o *output) checkComponents(in *input) {
	for kind, t := range map[string]table{"receivers": o.receivers, "processors": o.processors, "exporters": o.exporters, "extensions": o.extensions} {
		in.checkSection(kind, t.node, "")
	}
	for _, name := range slices.Sorted(maps.Keys(o.discoveries)) {
		if text := missing(in.source.Distribution, discoveryKind, name); text != "" {
			in.report.add(Finding{Kind: Needs, Path: name + discoveries, Text: text})
		}
	}
}

// checkSection reports the components of one kind that the distribution does not have.
func (in *input) checkSection(kind string, section *yaml.Node, file string) {
	if section == nil || section.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(section.Content); i += 2 {
		key := section.Content[i]
		if text := missing(in.source.Distribution, kind, typeOf(key.Value)); text != "" {
			in.report.add(Finding{Kind: Needs, File: file, Line: key.Line, Path: kind + "." + key.Value, Text: text})
		}
	}
}

// typeOf is the type in a component's ID.
func typeOf(id string) string {
	kind, _, _ := strings.Cut(id, "/")
	return strings.TrimSpace(kind)
}
