// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/process"
	"github.com/godwit-otel/godwit/e2e/repository"
)

// The same sources, built by the Makefile in another directory, give the same bytes.
func TestReproducibleBuild(t *testing.T) {
	t.Parallel()
	here := process.Binary(t, "godwit-agent")
	root, elsewhere := repository.Root(t), t.TempDir()
	for _, name := range repository.Files(t) {
		copyFile(t, filepath.Join(root, name), filepath.Join(elsewhere, name))
	}
	build := exec.CommandContext(t.Context(), "make", "bin/godwit-agent")
	build.Dir = elsewhere
	build.Env = withoutMake()
	out, err := build.CombinedOutput()
	require.NoError(t, err, "cannot build in another folder: %s", out)
	assert.Equal(t, sum(t, here), sum(t, filepath.Join(elsewhere, "bin", "godwit-agent")),
		"bin/godwit-agent is not what its sources give: run `make build`, then see what tells the two apart")
}

// withoutMake returns the environment without the variables of the make that runs this test.
func withoutMake() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "DISCOVERY"}, name)
	})
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	info, err := os.Stat(from)
	require.NoError(t, err)
	b, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o700))
	require.NoError(t, os.WriteFile(to, b, info.Mode().Perm()))
}

func sum(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	digest := sha256.Sum256(b)
	return hex.EncodeToString(digest[:])
}
