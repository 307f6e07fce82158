// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package repository gives tests access to this repository: its files, its distributions with their manifests, and the
// code blocks of its documents.
package repository

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rootMark is a file that only the root of the repository has.
const rootMark = "versions.yaml"

// Root returns the absolute path of the repository that the test runs in.
func Root(t testing.TB) string {
	t.Helper()
	start, err := os.Getwd()
	require.NoError(t, err)
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, rootMark)); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatalf("cannot find the root of the repository: no %s above %s", rootMark, start)
		}
	}
}

// Files returns the files that git tracks or would track, without ignored ones. They are relative to the root, with
// forward slashes.
func Files(t testing.TB) []string {
	t.Helper()
	root := Root(t)
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.Output()
	require.NoError(t, err, "cannot list the files of the repository: %s", problem.String())
	var files []string
	for name := range strings.SplitSeq(strings.Trim(string(out), "\x00"), "\x00") {
		// Git also lists tracked files that were deleted.
		if info, err := os.Stat(filepath.Join(root, name)); err == nil && !info.IsDir() {
			files = append(files, name)
		}
	}
	require.NotEmpty(t, files)
	return files
}

// Read returns the contents of a file of the repository.
func Read(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(Root(t), name))
	require.NoError(t, err)
	return string(b)
}
