// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// A test binary that panics or runs into its timeout does not clean up.
func TestAProcessEndsWithTheTestBinary(t *testing.T) {
	binary := act(t, "abandon", freeport.Addr(t))
	line := binary.WaitLog(timeout, "abandoned ")
	pid, err := strconv.Atoi(strings.TrimPrefix(line, "abandoned "))
	require.NoError(t, err)
	require.Equal(t, 2, binary.Wait(timeout), "it panicked")
	wait.Until(t, timeout, func() (bool, string) {
		return syscall.Kill(pid, 0) == syscall.ESRCH, "the process outlived the test binary"
	})
}
