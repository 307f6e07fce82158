// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package mistakes

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/components"
	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/typo"
)

var (
	sections    = append([]string{"service"}, components.Kinds...)
	serviceKeys = []string{"extensions", "pipelines", "telemetry"}
	logLevels   = []string{"debug", "info", "warn", "warning", "error", "dpanic", "panic", "fatal"}
)

// keys checks the collector's own keys.
func (m *finder) keys(root *yaml.Node) error {
	if err := m.known(root, nil, sections); err != nil {
		return err
	}
	for _, kind := range components.Kinds {
		section := document.Find(root, kind)
		for i := 0; section != nil && i+1 < len(section.Content); i += 2 {
			if err := m.component(kind, section.Content[i]); err != nil {
				return err
			}
		}
	}
	return m.service(document.Find(root, "service"))
}

// component checks the ID of a component.
func (m *finder) component(kind string, id *yaml.Node) error {
	name := components.TypeOf(id.Value)
	text := components.Missing(m.distribution, kind, name)
	if text == "" || m.distribution == "" || name == "<<" {
		return nil
	}
	var known []string
	for key, distributions := range components.DistributionsOf() {
		if of, other, _ := strings.Cut(key, " "); of == kind && slices.Contains(distributions, m.distribution) {
			known = append(known, other)
		}
	}
	slices.Sort(known)
	switch other := components.Instead[components.PlainName(kind, name)]; {
	case len(components.DistributionsOf()[components.PlainName(kind, name)]) > 0:
	case other != "":
		text = fmt.Sprintf("there is no %s `%s`: %s", strings.TrimSuffix(kind, "s"), name, other)
	default:
		text = fmt.Sprintf("there is no %s `%s`%s; `%s components` lists what there is, and a manifest of your own may have others",
			strings.TrimSuffix(kind, "s"), name, typo.Meant(name, known), m.distribution)
	}
	return m.at(id, []string{kind, id.Value}, text)
}

func (m *finder) service(service *yaml.Node) error {
	path := []string{"service"}
	if err := m.known(service, path, serviceKeys); err != nil {
		return err
	}
	level, at := document.Find(document.Find(document.Find(service, "telemetry"), "logs"), "level"), []string{"service", "telemetry", "logs", "level"}
	if level != nil && level.Kind == yaml.ScalarNode && level.Tag != "!!null" && level.Value != "" && !strings.Contains(level.Value, "${") &&
		!slices.Contains(logLevels, strings.ToLower(level.Value)) && !m.isReplaced(at) {
		return m.at(level, at, fmt.Sprintf("there is no level `%s`: write debug, info, warn or error", level.Value))
	}
	if err := m.referred(document.Find(service, "extensions"), append(path, "extensions"), "extensions"); err != nil {
		return err
	}
	pipelines := document.Find(service, "pipelines")
	if pipelines == nil || pipelines.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(pipelines.Content); i += 2 {
		id := pipelines.Content[i]
		path := []string{"service", "pipelines", id.Value}
		if !slices.Contains(components.Signals, components.TypeOf(id.Value)) {
			return m.at(id, path[:2], fmt.Sprintf("there is no signal `%s`, but %s%s", components.TypeOf(id.Value), strings.Join(components.Signals, ", "),
				typo.Meant(components.TypeOf(id.Value), components.Signals)))
		}
		pipeline := pipelines.Content[i+1]
		if err := m.known(pipeline, path, components.Kinds[:3]); err != nil {
			return err
		}
		for _, kind := range components.Kinds[:3] {
			kinds := []string{kind}
			if kind != "processors" {
				kinds = append(kinds, "connectors")
			}
			if list := document.Find(pipeline, kind); list != nil && list.Kind == yaml.SequenceNode && len(list.Content) == 0 && kind != "processors" &&
				!m.isReplaced(append(slices.Clip(path), kind)) {
				return m.at(list, path, fmt.Sprintf("a pipeline needs at least one of `%s`", kind))
			}
			if err := m.referred(document.Find(pipeline, kind), append(slices.Clip(path), kind), kinds...); err != nil {
				return err
			}
		}
	}
	return nil
}

// referred checks the IDs in a list of the service.
func (m *finder) referred(n *yaml.Node, path []string, kinds ...string) error {
	if slices.ContainsFunc(kinds, func(kind string) bool { return m.open[kind] }) {
		return nil
	}
	for _, id := range document.Contents(n) {
		var there []string
		for _, kind := range kinds {
			there = append(there, m.configured[kind]...)
		}
		if id.Kind == yaml.ScalarNode && !strings.Contains(id.Value, "${") && !slices.Contains(there, id.Value) {
			return m.at(id, path, fmt.Sprintf("`%s` is not configured under `%s`%s", id.Value, kinds[0], typo.Meant(id.Value, there)))
		}
	}
	return nil
}

func (m *finder) known(n *yaml.Node, path, known []string) error {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if key := n.Content[i]; key.Kind == yaml.ScalarNode && key.Value != "<<" && !slices.Contains(known, key.Value) {
			return m.at(key, path, "there is no key `"+key.Value+"`"+typo.Meant(key.Value, known))
		}
	}
	return nil
}
