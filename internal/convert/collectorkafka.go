// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// kafka puts a topic and an encoding, which contrib's components had one of, under each signal whose pipelines have the component. A receiver has a list
// of topics there.
func (c *collector) kafka(kind string, s *section, id string, settings *yaml.Node) {
	if settings == nil || settings.Kind != yaml.MappingNode {
		return
	}
	used := slices.ContainsFunc(signals, func(signal string) bool { return c.has(signal, kind, id) })
	given := newTable()
	for _, key := range []string{"topic", "encoding"} {
		n := remove(settings, key)
		if isNull(n) {
			continue
		}
		if !used {
			s.say(Lost, n, id+"."+key, "it is under a signal now, such as `metrics`, and no pipeline has the component")
			continue
		}
		s.say(Note, n, id+"."+key, "it is under the signal now, such as `metrics`")
		given.set(key, n)
	}
	for _, signal := range signals {
		section := find(settings, signal)
		if section == nil && (given.empty() || !c.has(signal, kind, id)) {
			continue
		}
		if isNull(section) {
			remove(settings, signal)
			section = newTable().node
			settings.Content = append(settings.Content, str(signal), section)
		}
		of := table{section}
		for i := 0; i+1 < len(given.node.Content); i += 2 {
			key := given.node.Content[i].Value
			if c.has(signal, kind, id) && !of.has(key) && (key != "topic" || !of.has("topics")) {
				of.set(key, given.node.Content[i+1])
			}
		}
		if topic := find(section, "topic"); topic != nil && kind == "receivers" {
			remove(section, "topic")
			list := sequence(topic)
			list.Style = yaml.FlowStyle
			of.set("topics", list)
		}
	}
}

// has tells whether a pipeline of a signal has a component.
func (c *collector) has(signal, kind, id string) bool {
	pipelines := find(find(c.root, "service"), "pipelines")
	for i := 0; pipelines != nil && i+1 < len(pipelines.Content); i += 2 {
		if typeOf(pipelines.Content[i].Value) == signal && slices.Contains(texts(find(pipelines.Content[i+1], kind)), id) {
			return true
		}
	}
	return false
}
