// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cardinalityprocessor

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Opening a named pipe waits for a writer, and so would Shutdown.
func TestRulesAreNotReadFromAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	_, err := readRules(path)
	require.ErrorContains(t, err, "it is no regular file")
}
