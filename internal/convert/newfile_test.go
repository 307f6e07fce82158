// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A full disk leaves no partial configuration, so that the same command works when there is room. An existing file is
// kept.
func TestFullDiskLeavesNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "godwit.yaml")
	full := func(w io.Writer) error {
		_, err := io.WriteString(w, "receivers: {fastprome")
		require.NoError(t, err)
		return syscall.ENOSPC
	}
	require.ErrorIs(t, createWith(path, full), syscall.ENOSPC)
	assert.NoFileExists(t, path)
	require.NoError(t, create(path, []byte("mine")))
	require.ErrorIs(t, createWith(path, full), os.ErrExist)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "mine", string(text))
}

func TestConvertToDash(t *testing.T) {
	exit, _, stdout, _ := run(t, nil, map[string]string{"prometheus.yml": aPrometheus}, "convert", "prometheus.yml", "-o", "-")
	assert.Equal(t, 0, exit)
	assert.Contains(t, stdout, "endpoint: http://a")
	assert.NoFileExists(t, "-")
}
