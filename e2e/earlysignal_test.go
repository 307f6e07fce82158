// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/process"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// A collector that gets a signal before it listens for signals starts, and then shuts down in order.
func TestASignalWhileACollectorStarts(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"godwit", "godwit-agent", "godwit-gateway"} {
		for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
			t.Run(name+"/"+s.String(), func(t *testing.T) {
				t.Parallel()
				// It reads a part of its configuration from a pipe, and blocks until the test writes.
				pipe := filepath.Join(t.TempDir(), "pipe")
				require.NoError(t, syscall.Mkfifo(pipe, 0o600))
				config := fmt.Sprintf("exporters: {debug: \"${file:%s}\"}\nreceivers: {otlp: {protocols: {grpc: {endpoint: %s}}}}\n"+
					"service: {telemetry: {metrics: {level: none}}, pipelines: {logs: {receivers: [otlp], exporters: [debug]}}}\n", pipe, freeport.Addr(t))
				p := process.Start(t, process.Settings{Path: process.Binary(t, name), Args: []string{"--config", configFile(t, config)}})
				var w *os.File
				wait.Until(t, firstWords, func() (bool, string) {
					var err error
					w, err = os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
					if !errors.Is(err, syscall.ENXIO) { // no reader yet
						require.NoError(t, err)
					}
					return err == nil, "it does not read its configuration"
				})
				p.Signal(s)
				_, err := w.WriteString("{}\n")
				require.NoError(t, err)
				require.NoError(t, w.Close())
				assert.Zero(t, p.Wait(drainTime))
				assert.Contains(t, p.Output(), "Shutdown complete")
			})
		}
	}
}
