// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
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

// Once this tree is tagged, the README's manifest builds without its `replaces`: the tags of `make tags` are served as
// a module proxy serves them, and ocb finds all it needs there and at the usual proxy.
func TestStrangersManifestFromTags(t *testing.T) {
	t.Parallel()
	tree := committed(t)
	version := treesVersion(t)
	tags := strings.Fields(inTree(t, tree, "internal/tools/tag.sh", version))
	assert.Contains(t, tags, version)
	assert.Contains(t, tags, "receiver/remotewritereceiver/"+version)
	assert.NotContains(t, tags, "e2e/"+version)
	assert.Equal(t, tags, strings.Fields(inTree(t, tree, "internal/tools/tag.sh", version)), "twice is once")

	proxy := t.TempDir()
	inTree(t, tree, process.Binary(t, "packaging"), "modules", "-version", version, "-out", proxy)
	before, err := exec.Command("go", "env", "GOPROXY").Output()
	require.NoError(t, err)

	manifest, _, found := strings.Cut(readmesManifest(t), "# Until the modules are published")
	require.True(t, found)
	require.NotContains(t, manifest, "replaces")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "manifest.yaml"), []byte(manifest), 0o600))
	env := append(os.Environ(), "GOPROXY=file://"+proxy+","+strings.TrimSpace(string(before)), "GOWORK=off",
		// Our modules are not in the checksum database, and the shared module cache must not store these fakes.
		"GONOSUMDB=github.com/godwit-otel/*", "GOMODCACHE="+overlayCache(t), "CGO_ENABLED=0")
	run := func(in string, command ...string) {
		t.Helper()
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Dir, cmd.Env = in, env
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "cannot build the README's manifest from tags: %s", out)
	}
	run(dir, filepath.Join(repository.Root(t), ".tools", "builder"), "--config", "manifest.yaml", "--skip-compilation")
	run(filepath.Join(dir, "my-collector"), "go", "build", "-trimpath", "-o", "my-collector", ".") // with the flags of ocb, to use the build cache
	mods, err := os.ReadFile(filepath.Join(dir, "my-collector", "go.mod"))
	require.NoError(t, err)
	assert.NotContains(t, string(mods), "replace")

	list := process.Start(t, process.Settings{Path: filepath.Join(dir, "my-collector", "my-collector"), Args: []string{"components"}})
	require.Zero(t, list.Wait(commandTimeout))
	assert.Contains(t, list.Output(), "github.com/godwit-otel/godwit/receiver/remotewritereceiver "+version)
}

// A version is never moved: if one tag exists at another commit, no tag is made.
func TestTagsAreNotMoved(t *testing.T) {
	t.Parallel()
	tree, version := committed(t), treesVersion(t)
	inTree(t, tree, "git", "tag", "internal/"+version)
	inTree(t, tree, "git", "commit", "--quiet", "--allow-empty", "--message", "later")
	tag := func(version string) string {
		cmd := exec.Command("internal/tools/tag.sh", version)
		cmd.Dir = tree
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		return string(out)
	}
	assert.Contains(t, tag(version), "a version is never moved")
	assert.Equal(t, "internal/"+version+"\n", inTree(t, tree, "git", "tag"), "none was made")
	assert.Contains(t, tag("v9.9.9"), "versions.yaml says "+version)
	assert.Contains(t, tag("9.9"), "a version is written vX.Y.Z")
	require.NoError(t, os.WriteFile(filepath.Join(tree, "more.txt"), nil, 0o600))
	assert.Contains(t, tag(version), "the tree is not a commit")
}

func treesVersion(t *testing.T) string {
	t.Helper()
	for line := range strings.Lines(repository.Read(t, "versions.yaml")) {
		if version, found := strings.CutPrefix(strings.TrimSpace(line), "version: "); found {
			return version
		}
	}
	t.Fatal("versions.yaml has no version")
	return ""
}

// committed copies this tree, with uncommitted changes, to a new repository with a single commit.
func committed(t *testing.T) string {
	t.Helper()
	root, tree := repository.Root(t), t.TempDir()
	for _, name := range repository.Files(t) {
		copyFile(t, filepath.Join(root, name), filepath.Join(tree, name))
	}
	inTree(t, tree, "git", "init", "--quiet")
	inTree(t, tree, "git", "config", "user.name", "somebody")
	inTree(t, tree, "git", "config", "user.email", "somebody@example.com")
	inTree(t, tree, "git", "add", "--all", "--force")
	inTree(t, tree, "git", "commit", "--quiet", "--message", "all of it")
	return tree
}

func inTree(t *testing.T, tree string, command ...string) string {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = tree
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GIT_") })
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	require.NoError(t, err, "%s: %s", strings.Join(command, " "), said.String())
	return string(out)
}

// overlayCache returns a module cache with links to all of the machine's modules except ours.
func overlayCache(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOMODCACHE").Output()
	require.NoError(t, err)
	from, to := strings.TrimSpace(string(out)), t.TempDir()
	link(t, from, to)
	// Parent directories of our modules are real ones, not links.
	for _, dir := range []string{"cache", "cache/download", "cache/download/github.com", "github.com"} {
		require.NoError(t, os.Remove(filepath.Join(to, dir)))
		require.NoError(t, os.Mkdir(filepath.Join(to, dir), 0o755))
		link(t, filepath.Join(from, dir), filepath.Join(to, dir))
	}
	for _, dir := range []string{"cache/download/github.com/godwit-otel", "github.com/godwit-otel"} {
		_ = os.Remove(filepath.Join(to, dir))
	}
	t.Cleanup(func() { // the go command makes module directories read-only
		_ = filepath.WalkDir(filepath.Join(to, "github.com", "godwit-otel"), func(path string, _ os.DirEntry, _ error) error {
			return os.Chmod(path, 0o755)
		})
	})
	return to
}

func link(t *testing.T, from, to string) {
	t.Helper()
	entries, err := os.ReadDir(from)
	require.NoError(t, err)
	for _, e := range entries {
		require.NoError(t, os.Symlink(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())))
	}
}
