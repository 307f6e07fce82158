// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package fastprometheusreceiver

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A file that becomes a named pipe is an invalid configuration. Opening it would block until something writes into it,
// and so would Shutdown.
func TestReloadDoesNotWaitForAPipe(t *testing.T) {
	a := newEndpoint(t, text)
	file := filepath.Join(t.TempDir(), "jobs.yaml")
	fill(t, file, jobFile("job", a.address(), ""))
	r := run(t, fmt.Sprintf(reloading, file))
	r.await(t, is("requests", 42))
	require.NoError(t, syscall.Mkfifo(file+".pipe", 0o600))
	require.NoError(t, os.Rename(file+".pipe", file))
	require.Eventually(t, func() bool { return r.counters.rejected.Load() > 0 }, patience, glance)
	r.sink.Reset()
	r.await(t, is("requests", 42))
}
