// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFilesAreOfTheRepositoryAndNotOfTheBuild(t *testing.T) {
	untracked := filepath.Join(Root(t), "e2e", "repository", "untracked.txt")
	require.NoError(t, os.WriteFile(untracked, []byte("x"), 0o600))
	t.Cleanup(func() { require.NoError(t, os.Remove(untracked)) })

	files := Files(t)
	assert.Contains(t, files, "versions.yaml")
	assert.Contains(t, files, "e2e/repository/repository.go")
	assert.Contains(t, files, "e2e/repository/untracked.txt", "a file counts before it is committed")
	for _, name := range files {
		assert.NotRegexp(t, "^(bin|run|[.]tools|[.]git)/", name)
	}
	assert.Contains(t, Read(t, "e2e/go.mod"), Module+"e2e")
}

func TestManifestsAreReadByKind(t *testing.T) {
	for _, d := range Distributions() {
		m := ReadManifest(t, d)
		assert.Equal(t, d.Name, m.Dist.Name)
		assert.NotEmpty(t, m.Dist.Version)
		assert.NotEmpty(t, m.Dist.BuildTags)
		assert.Contains(t, m.Gomods["receivers"], "go.opentelemetry.io/collector/receiver/otlpreceiver v0.159.0")
		for kind := range m.Gomods {
			assert.Contains(t, Kinds, kind)
		}
	}
}

func TestBlocksKnowTheirPlaceLanguageAndComment(t *testing.T) {
	document := "# Title\n\n<!-- tested: here -->\n\n```yaml\na: 1\n\nb: 2\n```\n\n" +
		"<!-- not next to it -->\ntext\n1. a list:\n   ```sh\n   make build\n     -j2\n   ```\n"
	assert.Equal(t, []Block{
		{Line: 6, Language: "yaml", Comment: "tested: here", Text: "a: 1\n\nb: 2\n"},
		{Line: 15, Language: "sh", Text: "make build\n  -j2\n"},
	}, Blocks(document))
	assert.Empty(t, Blocks("```yaml\nnever: closed\n"))
}
