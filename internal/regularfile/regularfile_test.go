// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package regularfile

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyRegularFilesPass(t *testing.T) {
	dir := t.TempDir()
	file, link, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Symlink(file, link))
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, Check(file))
	require.NoError(t, Check(link))
	require.ErrorContains(t, Check(pipe), "it is no regular file")
	require.ErrorContains(t, Check(os.DevNull), "it is no regular file")
	require.ErrorIs(t, Check(dir), syscall.EISDIR)
	require.ErrorIs(t, Check(filepath.Join(dir, "none")), os.ErrNotExist)
}
