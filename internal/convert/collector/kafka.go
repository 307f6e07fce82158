// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/components"
	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/input"
	"github.com/godwit-otel/godwit/internal/convert/report"
)

// kafka moves the topic and the encoding, of which contrib's components had one, to each signal whose pipelines use the
// component. A receiver has a list of topics there.
func (c *collector) kafka(kind string, s *input.Section, id string, settings *yaml.Node) {
	if settings == nil || settings.Kind != yaml.MappingNode {
		return
	}
	used := slices.ContainsFunc(components.Signals, func(signal string) bool { return c.has(signal, kind, id) })
	given := document.NewTable()
	for _, key := range []string{"topic", "encoding"} {
		n := document.Remove(settings, key)
		if document.IsNull(n) {
			continue
		}
		if !used {
			s.Say(report.Lost, n, id+"."+key, "it is under a signal now, such as `metrics`, and no pipeline has the component")
			continue
		}
		s.Say(report.Note, n, id+"."+key, "it is under the signal now, such as `metrics`")
		given.Set(key, n)
	}
	for _, signal := range components.Signals {
		section := document.Find(settings, signal)
		if section == nil && (given.Empty() || !c.has(signal, kind, id)) {
			continue
		}
		if document.IsNull(section) {
			document.Remove(settings, signal)
			section = document.NewTable().Node
			settings.Content = append(settings.Content, document.StringNode(signal), section)
		}
		of := document.TableOf(section)
		for i := 0; i+1 < len(given.Node.Content); i += 2 {
			key := given.Node.Content[i].Value
			if c.has(signal, kind, id) && !of.Has(key) && (key != "topic" || !of.Has("topics")) {
				of.Set(key, given.Node.Content[i+1])
			}
		}
		if topic := document.Find(section, "topic"); topic != nil && kind == "receivers" {
			document.Remove(section, "topic")
			list := document.SequenceNode(topic)
			list.Style = yaml.FlowStyle
			of.Set("topics", list)
		}
	}
}

// has reports whether a pipeline of a signal uses a component.
func (c *collector) has(signal, kind, id string) bool {
	pipelines := document.Find(document.Find(c.root, "service"), "pipelines")
	for i := 0; pipelines != nil && i+1 < len(pipelines.Content); i += 2 {
		if components.TypeOf(pipelines.Content[i].Value) == signal && slices.Contains(document.Texts(document.Find(pipelines.Content[i+1], kind)), id) {
			return true
		}
	}
	return false
}
