// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"context"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/extensiontest"

	"github.com/godwit-otel/godwit/internal/racetest"
)

// files is a host with an extension that stores in a directory.
type files map[component.ID]component.Component

func (f files) GetExtensions() map[component.ID]component.Component { return f }

var storageID = component.MustNewID("file_storage")

func newFiles(t *testing.T, directory string, change func(*filestorage.Config)) files {
	t.Helper()
	factory := filestorage.NewFactory()
	cfg := factory.CreateDefaultConfig().(*filestorage.Config)
	cfg.Directory = directory
	if change != nil {
		change(cfg)
	}
	require.NoError(t, cfg.Validate())
	extension, err := factory.Create(t.Context(), extensiontest.NewNopSettings(factory.Type()), cfg)
	require.NoError(t, err)
	require.NoError(t, extension.Start(t.Context(), nil))
	t.Cleanup(func() { require.NoError(t, extension.Shutdown(context.Background())) })
	return files{storageID: extension}
}

func TestStoredDataSurvivesARestart(t *testing.T) {
	directory := t.TempDir()
	down := newReceived(t, status(1<<30, http.StatusServiceUnavailable))
	e := create(t, func(c *Config) { c.Endpoint, c.Queue.Storage = down.URL, &storageID })
	require.NoError(t, e.Start(t.Context(), newFiles(t, directory, nil)))
	for n := range 10 {
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, n)))
	}
	require.NoError(t, e.Shutdown(t.Context()))
	require.Empty(t, e.telemetry.destinations[0].snapshot().Dropped)

	// A destination is identified by its endpoint, so it starts again with the same one.
	down.recover()
	start(t, newFiles(t, directory, nil), func(c *Config) { c.Endpoint, c.Queue.Storage = down.URL, &storageID })
	eventually(t, func() bool { return down.samples() == 100 }, "all samples arrive")
	down.requireOrdered(t)
}

// A copy of the files, taken without notice to the exporter, is what a kernel would have kept of a killed process.
func TestAcknowledgedDataSurvivesAKill(t *testing.T) {
	directory, copied := t.TempDir(), t.TempDir()
	d := newReceived(t, status(1<<30, http.StatusServiceUnavailable))
	start(t, newFiles(t, directory, nil), func(c *Config) {
		c.Endpoint, c.Queue.Storage, c.ShutdownTimeout = d.URL, &storageID, time.Millisecond
	}).consumeAll(t, 10)
	require.NoError(t, os.CopyFS(copied, os.DirFS(directory)))

	d.recover()
	start(t, newFiles(t, copied, nil), func(c *Config) { c.Endpoint, c.Queue.Storage = d.URL, &storageID })
	eventually(t, func() bool { return d.samples() >= 100 }, "all samples arrive")
}

func (e *remoteWrite) consumeAll(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, i)))
	}
}

func TestFullStorageIsTheCallersToKnow(t *testing.T) {
	d := newReceived(t, status(1<<30, http.StatusServiceUnavailable))
	e := start(t, newFiles(t, t.TempDir(), func(c *filestorage.Config) { c.MaxSize = 256 << 10 }), func(c *Config) {
		c.Endpoint, c.Queue.Storage, c.ShutdownTimeout = d.URL, &storageID, time.Millisecond
	})
	acknowledged := 0
	eventually(t, func() bool {
		if err := e.ConsumeMetrics(t.Context(), gauges(1000, acknowledged)); err != nil {
			return true
		}
		acknowledged++
		return false
	}, "the storage is full")
	require.Positive(t, acknowledged)
	d.recover()
	eventually(t, func() bool { return d.samples() == 1000*acknowledged }, "what was acknowledged arrives")
	d.requireOrdered(t)
}

// TestFullStorageHasRoomAgain: however often a storage was full, it has the same room again once its data was
// delivered.
func TestFullStorageHasRoomAgain(t *testing.T) {
	racetest.SmallerIn(t, "TestFullStorageIsTheCallersToKnow")
	d := newReceived(t, nil)
	e := start(t, newFiles(t, t.TempDir(), func(c *filestorage.Config) { c.MaxSize = 1 << 20 }), func(c *Config) {
		c.Endpoint, c.Queue.Storage = d.URL, &storageID
		c.Batch.Timeout = time.Millisecond
	})
	acknowledged, n := 0, 0
	var held []int64 // bytes, when it was full
	for range 4 {
		d.fail(http.StatusServiceUnavailable)
		eventually(t, func() bool { // the room of the last delivery may not be free yet
			for ; e.ConsumeMetrics(t.Context(), gauges(1000, n)) == nil; n++ {
				acknowledged++
			}
			n++
			return e.Snapshot().Destinations[0].QueuedBlocks > 0
		}, "there is room again")
		held = append(held, e.Snapshot().Destinations[0].QueueBytes)
		d.recover()
		eventually(t, func() bool { return d.samples() == 1000*acknowledged }, "what was acknowledged arrives")
		eventually(t, func() bool { return e.Snapshot().Destinations[0].QueuedBlocks == 0 }, "nothing is left")
	}
	d.requireOrdered(t)
	for _, bytes := range held {
		require.Greater(t, 2*bytes, held[0], held)
	}
}

func TestMissingStorageIsNamed(t *testing.T) {
	e := create(t, func(c *Config) { c.Endpoint, c.Queue.Storage = "http://127.0.0.1:1", &storageID })
	require.ErrorContains(t, e.Start(t.Context(), files{}), "`queue.storage`")
	require.NoError(t, e.Shutdown(t.Context()))
}
