// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/typo"
)

var (
	sections    = append([]string{"service"}, componentKinds...)
	serviceKeys = []string{"extensions", "pipelines", "telemetry"}
	logLevels   = []string{"debug", "info", "warn", "warning", "error", "dpanic", "panic", "fatal"}
	signals     = []string{"metrics", "traces", "logs", "profiles"}
)

// keys looks at those that are the collector's own.
func (m *finder) keys(root *yaml.Node) error {
	if err := m.known(root, nil, sections); err != nil {
		return err
	}
	for _, kind := range componentKinds {
		section := find(root, kind)
		for i := 0; section != nil && i+1 < len(section.Content); i += 2 {
			if err := m.component(kind, section.Content[i]); err != nil {
				return err
			}
		}
	}
	return m.service(find(root, "service"))
}

// component says what is wrong with the ID of one.
func (m *finder) component(kind string, id *yaml.Node) error {
	name := typeOf(id.Value)
	text := missing(m.distribution, kind, name)
	if text == "" || m.distribution == "" || name == "<<" {
		return nil
	}
	var known []string
	for key, distributions := range distributionsOf() {
		if of, other, _ := strings.Cut(key, " "); of == kind && slices.Contains(distributions, m.distribution) {
			known = append(known, other)
		}
	}
	slices.Sort(known)
	if len(distributionsOf()[plainName(kind, name)]) == 0 {
		text = fmt.Sprintf("there is no %s `%s`%s; `%s components` lists what there is, and a manifest of your own may have others",
			strings.TrimSuffix(kind, "s"), name, typo.Meant(name, known), m.distribution)
	}
	return &mistake{m.file, id.Line, []string{kind, id.Value}, text}
}

func (m *finder) service(service *yaml.Node) error {
	path := []string{"service"}
	if err := m.known(service, path, serviceKeys); err != nil {
		return err
	}
	level, at := find(find(find(service, "telemetry"), "logs"), "level"), []string{"service", "telemetry", "logs", "level"}
	if level != nil && level.Kind == yaml.ScalarNode && level.Tag != "!!null" && level.Value != "" && !strings.Contains(level.Value, "${") &&
		!slices.Contains(logLevels, strings.ToLower(level.Value)) && !m.isReplaced(at) {
		return &mistake{m.file, level.Line, at, fmt.Sprintf("there is no level `%s`: write debug, info, warn or error", level.Value)}
	}
	if err := m.referred(find(service, "extensions"), append(path, "extensions"), "extensions"); err != nil {
		return err
	}
	pipelines := find(service, "pipelines")
	if pipelines == nil || pipelines.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(pipelines.Content); i += 2 {
		id := pipelines.Content[i]
		path := []string{"service", "pipelines", id.Value}
		if !slices.Contains(signals, typeOf(id.Value)) {
			return &mistake{m.file, id.Line, path[:2], fmt.Sprintf("there is no signal `%s`, but %s%s", typeOf(id.Value), strings.Join(signals, ", "),
				typo.Meant(typeOf(id.Value), signals))}
		}
		pipeline := pipelines.Content[i+1]
		if err := m.known(pipeline, path, componentKinds[:3]); err != nil {
			return err
		}
		for _, kind := range componentKinds[:3] {
			kinds := []string{kind}
			if kind != "processors" {
				kinds = append(kinds, "connectors")
			}
			if list := find(pipeline, kind); list != nil && list.Kind == yaml.SequenceNode && len(list.Content) == 0 && kind != "processors" &&
				!m.isReplaced(append(slices.Clip(path), kind)) {
				return &mistake{m.file, list.Line, path, fmt.Sprintf("a pipeline needs at least one of `%s`", kind)}
			}
			if err := m.referred(find(pipeline, kind), append(slices.Clip(path), kind), kinds...); err != nil {
				return err
			}
		}
	}
	return nil
}

// referred looks at the IDs in a list of the service.
func (m *finder) referred(n *yaml.Node, path []string, kinds ...string) error {
	for _, id := range contents(n) {
		var there []string
		for _, kind := range kinds {
			there = append(there, m.configured[kind]...)
		}
		if id.Kind == yaml.ScalarNode && !strings.Contains(id.Value, "${") && !slices.Contains(there, id.Value) {
			return &mistake{m.file, id.Line, path, fmt.Sprintf("`%s` is not configured under `%s`%s", id.Value, kinds[0], typo.Meant(id.Value, there))}
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
			return &mistake{m.file, key.Line, path, "there is no key `" + key.Value + "`" + typo.Meant(key.Value, known)}
		}
	}
	return nil
}
