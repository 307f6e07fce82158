// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package mistakes

import (
	"fmt"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/components"
	"github.com/godwit-otel/godwit/internal/convert/document"
)

// values checks texts at all depths.
func (m *finder) values(n *yaml.Node, path []string, depth int) error {
	if depth > document.MaxDepth {
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		if len(path) > 0 && path[len(path)-1] == "scrape_configs" {
			if err := m.targets(n, path); err != nil {
				return err
			}
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			if len(path) == 1 && !m.isUsed(path[0], key) {
				continue
			}
			if err := m.values(n.Content[i+1], append(slices.Clip(path), key), depth+1); err != nil {
				return err
			}
		}
	case yaml.SequenceNode:
		for _, element := range n.Content {
			if err := m.values(element, path, depth+1); err != nil {
				return err
			}
		}
	case yaml.ScalarNode:
		return m.text(n, path)
	default: // an alias's value is checked at its anchor
	}
	return nil
}

// text checks one text.
func (m *finder) text(n *yaml.Node, path []string) error {
	if err := m.nanoseconds(n, path); err != nil {
		return err
	}
	if err := m.address(n, path); err != nil {
		return err
	}
	return m.variables(n, path)
}

var (
	ours = []string{
		"fastprometheus", "prometheus", "remotewrite", "prometheus_remote_write", "prometheusremotewrite", "otlpstream", "cardinality", "console",
		"pulse", "runtimeprofile",
	}
	durations = regexp.MustCompile(`(^|_)(timeout|interval|max_age)$`)
)

// nanoseconds finds a number without a unit where a component of ours expects a duration; components of others may
// count seconds.
func (m *finder) nanoseconds(n *yaml.Node, path []string) error {
	if n.Tag != "!!int" || n.Value == "0" || len(path) < 3 || slices.Contains(path, "config") || !slices.Contains(ours, components.TypeOf(path[1])) ||
		!durations.MatchString(path[len(path)-1]) || m.isReplaced(path) {
		return nil
	}
	return m.at(n, path, fmt.Sprintf("%s without a unit is that many nanoseconds: write %ss", n.Value, n.Value))
}
