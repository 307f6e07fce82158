// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/input"
	"github.com/godwit-otel/godwit/internal/convert/report"
)

// allocated converts a receiver without jobs of its own, to which the operator assigns targets by its target allocator:
// it is configured to ask that allocator, without which it would not start.
func (c *collector) allocated(s *input.Section, id string, settings, config *yaml.Node) {
	if c.in.Allocator == "" || settings == nil || settings.Kind != yaml.MappingNode || document.Find(settings, "target_allocator") != nil ||
		len(document.Contents(document.Find(config, "scrape_configs"))) > 0 || len(document.Contents(document.Find(config, "scrape_config_files"))) > 0 {
		return
	}
	settings.Content = append(settings.Content, document.StringNode("target_allocator"), document.NewTable().
		Set("endpoint", c.in.Allocator).Set("interval", "30s").Set("collector_id", "${env:POD_NAME}").Node)
	s.Say(report.Changed, settings, id+".target_allocator", "it has no jobs, so it asks the allocator that the operator makes, at "+c.in.Allocator+", as the pod that POD_NAME names")
}
