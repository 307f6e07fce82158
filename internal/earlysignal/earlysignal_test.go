// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !windows

package earlysignal

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

const role = "GODWIT_EARLYSIGNAL_TEST"

// The test binary is also the process that gets signals.
func TestMain(m *testing.M) {
	if os.Getenv(role) == "" {
		os.Exit(m.Run())
	}
	Keep()
	fmt.Println("starting")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // the start lasts as long as the test wants
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	fmt.Println("ending after", <-signals)
}

func start(t *testing.T, args ...string) (*exec.Cmd, io.Writer, *bufio.Reader) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	c := exec.CommandContext(t.Context(), self, args...)
	c.Env = append(os.Environ(), role+"=1")
	in, err := c.StdinPipe()
	require.NoError(t, err)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	said := bufio.NewReader(out)
	line, err := said.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "starting\n", line)
	return c, in, said
}

func TestASignalThatComesTooEarlyIsHeard(t *testing.T) {
	for s, name := range map[os.Signal]string{os.Interrupt: "interrupt", syscall.SIGTERM: "terminated"} {
		c, in, said := start(t, "--config", "a.yaml")
		require.NoError(t, c.Process.Signal(s))
		_, err := io.WriteString(in, "\n")
		require.NoError(t, err)
		line, err := said.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "ending after "+name+"\n", line)
		require.NoError(t, c.Wait())
	}
}

func TestCommandsEndAtOnce(t *testing.T) {
	c, _, _ := start(t, "validate", "--config", "a.yaml")
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	require.Error(t, c.Wait())
	require.Equal(t, syscall.SIGTERM, c.ProcessState.Sys().(syscall.WaitStatus).Signal())
}
