// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.yaml.in/yaml/v3"
)

// Each example of the README is a valid configuration.
func TestExamplesOfTheREADMEAreValid(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	parts := strings.Split(string(text), "```yaml\n")
	require.Greater(t, len(parts), 4)
	for _, part := range parts[1:] {
		example, _, _ := strings.Cut(part, "```")
		var raw map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(example), &raw), example)
		if processors, ok := raw["processors"].(map[string]any); ok {
			raw, ok = processors["cardinality"].(map[string]any)
			require.True(t, ok)
		}
		cfg := defaultConfig()
		require.NoError(t, confmap.NewFromStringMap(raw).Unmarshal(cfg), example)
		require.NoError(t, cfg.Validate(), example)
	}
}
