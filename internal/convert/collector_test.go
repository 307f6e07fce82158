// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/detect"
)

// Our own configurations are unchanged by a conversion: nothing is lost or added, and their distribution has all
// components.
func TestOwnConfigurationsStayAsTheyAre(t *testing.T) {
	files, err := filepath.Glob("../../examples/*.yaml")
	require.NoError(t, err)
	more, err := filepath.Glob("../../distributions/*/config.yaml")
	require.NoError(t, err)
	files = append(files, more...)
	require.Greater(t, len(files), 8)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, detect.Collector, detect.File(text), file)
		assert.False(t, detect.IsPrometheus(text), file)
		result, err := convertText(t, detect.Auto, string(text))
		require.NoError(t, err, file)
		assert.True(t, result.Report.Complete(), "%s: %s", file, result.Report.Findings)
		var before, after any
		require.NoError(t, yaml.Unmarshal(text, &before))
		require.NoError(t, yaml.Unmarshal(result.Config, &after))
		assert.Equal(t, before, after, file)
	}
}
