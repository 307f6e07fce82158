// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/e2e/repository"
)

func TestVersionIsTheManifests(t *testing.T) {
	eachDistribution(t, func(t *testing.T, d repository.Distribution) {
		m := repository.ReadManifest(t, d)
		exit, output := command(t, d.Name, nil, "--version")
		assert.Zero(t, exit)
		assert.Equal(t, d.Name+" version "+m.Dist.Version, output)

		info := components(t, d.Name).Buildinfo
		assert.Equal(t, m.Dist.Name, info.Command)
		assert.Equal(t, m.Dist.Version, info.Version)
		assert.NotEmpty(t, info.Description)
	})
}

// A component of the manifest that the binary lacks was not generated; one that only the binary has came in by
// another's import.
func TestManifestEqualsFactories(t *testing.T) {
	eachDistribution(t, func(t *testing.T, d repository.Distribution) {
		m, inv := repository.ReadManifest(t, d), components(t, d.Name)
		for _, kind := range repository.Kinds {
			var built []string
			for _, c := range inv.Kinds[kind] {
				built = append(built, c.Module)
			}
			slices.Sort(built)
			// A component with two names is listed twice.
			assert.ElementsMatch(t, m.Gomods[kind], slices.Compact(built), "%s of %s", kind, d.Manifest)
		}
		assert.NotEmpty(t, inv.Kinds["receivers"])
	})
}

func TestPrintConfigShowsWhatTheConfigurationMeans(t *testing.T) {
	eachDistribution(t, func(t *testing.T, d repository.Distribution) {
		exit, output := command(t, d.Name, configEnv(t), "print-config",
			"--config", filepath.Join(repository.Root(t), d.Config))
		require.Zero(t, exit)
		var shown struct {
			Exporters map[string]map[string]any
			Service   struct{ Pipelines map[string]any }
		}
		require.NoError(t, yaml.Unmarshal([]byte(output), &shown))
		assert.NotEmpty(t, shown.Service.Pipelines)
		for id, settings := range shown.Exporters {
			assert.NotEmpty(t, settings, "the defaults of exporter %s are not shown", id)
		}
		assert.NotContains(t, output, "${env:", "variables are replaced")
	})
}
