// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// Module is the prefix of the paths of this repository's Go modules.
const Module = "github.com/godwit-otel/godwit/"

// Kinds are the sections of a manifest, and of the list of components that a binary prints.
var Kinds = []string{"receivers", "processors", "exporters", "connectors", "extensions", "providers", "converters"}

// Distribution is a binary that this repository builds.
type Distribution struct {
	Name string
	// Manifest and Config are paths relative to the root.
	Manifest, Config string
}

// Full is the name of the distribution with all components.
const Full = "godwit"

// Distributions returns the three distributions.
func Distributions() []Distribution {
	return []Distribution{
		{Full, "builder-config.yaml", "distributions/godwit/config.yaml"},
		{"godwit-agent", "distributions/godwit-agent/manifest.yaml", "distributions/godwit-agent/config.yaml"},
		{"godwit-gateway", "distributions/godwit-gateway/manifest.yaml", "distributions/godwit-gateway/config.yaml"},
	}
}

// Manifest is what ocb builds a distribution from.
type Manifest struct {
	Dist struct {
		Name      string `yaml:"name"`
		Version   string `yaml:"version"`
		BuildTags string `yaml:"build_tags"`
	} `yaml:"dist"`
	// Gomods holds the gomod lines by kind.
	Gomods map[string][]string `yaml:"-"`
}

// ReadManifest reads the manifest of a distribution.
func ReadManifest(t testing.TB, d Distribution) Manifest {
	t.Helper()
	text := Read(t, d.Manifest)
	var m Manifest
	require.NoError(t, yaml.Unmarshal([]byte(text), &m), "cannot read %s", d.Manifest)
	var sections map[string]yaml.Node
	require.NoError(t, yaml.Unmarshal([]byte(text), &sections))
	m.Gomods = map[string][]string{}
	for _, kind := range Kinds {
		section, ok := sections[kind]
		if !ok {
			continue
		}
		var entries []struct {
			Gomod string `yaml:"gomod"`
		}
		require.NoError(t, section.Decode(&entries), "cannot read %s of %s", kind, d.Manifest)
		for _, e := range entries {
			m.Gomods[kind] = append(m.Gomods[kind], e.Gomod)
		}
	}
	return m
}
