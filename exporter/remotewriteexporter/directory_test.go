// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// leaveInFileStorage leaves what a destination that is down was not sent, in the file of file_storage in a folder. No request is under way
// when it returns: the shutdown waits for the answer. One that nobody waits for may be served once the destination is up again, and counts twice.
func leaveInFileStorage(t *testing.T, directory string, d *received, calls int) (file string) {
	t.Helper()
	e := create(t, func(c *Config) {
		c.Endpoint, c.Queue.Storage, c.Shards.Max = d.URL, &storageID, 1
	})
	require.NoError(t, e.Start(t.Context(), newFiles(t, directory, nil)))
	e.consumeAll(t, calls)
	require.NoError(t, e.Shutdown(t.Context()))
	file = filepath.Join(directory, "exporter_remotewrite__remotewrite")
	require.FileExists(t, file)
	return file
}

// TestQueueOfFileStorageIsSentFirst: whoever moves from `queue.storage` to `queue.directory` in the same folder loses nothing. What
// comes meanwhile is sent after it, and the file is gone then.
func TestQueueOfFileStorageIsSentFirst(t *testing.T) {
	directory := t.TempDir()
	d := newReceived(t, status(1<<30, http.StatusServiceUnavailable))
	file := leaveInFileStorage(t, directory, d, 10)

	moved := func(c *Config) { c.Queue.Directory = directory }
	e, _, logs := instrumented(t, d.URL, moved)
	for n := range 10 {
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 10+n)))
	}
	require.Equal(t, 1, logs.FilterMessageSnippet("is sent first").Len())
	require.Empty(t, logs.FilterMessageSnippet("is deleted").All())
	require.NoError(t, e.Shutdown(t.Context()))
	require.FileExists(t, file, "nothing of it is sent")

	d.recover()
	e, _, logs = instrumented(t, d.URL, moved)
	eventually(t, func() bool { return d.samples() == 200 }, "all arrives")
	eventually(t, func() bool { return logs.FilterMessageSnippet("is deleted").Len() == 1 }, "the file is no longer needed")
	require.NoFileExists(t, file)
	d.requireOrdered(t)
	require.NoError(t, e.Shutdown(t.Context()))

	_, _, logs = instrumented(t, d.URL, moved)
	require.Empty(t, logs.All(), "and nothing speaks of it any more")
}

// A folder that was copied while the process ran is what a kernel would have kept of a killed one.
func TestQueueOfFileStorageOutlivesAKill(t *testing.T) {
	directory, copied := t.TempDir(), t.TempDir()
	d := newReceived(t, status(1<<30, http.StatusServiceUnavailable))
	leaveInFileStorage(t, directory, d, 10)
	var taken atomic.Int64
	d.setAnswer(func(_ int, w http.ResponseWriter, _ *http.Request) bool { // a few go, and then it is down again
		if taken.Add(1) > 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		return false
	})
	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		c.Endpoint, c.Queue.Directory = d.URL, directory
		c.Batch.MaxSamples, c.Shards.Max = 10, 1 // nothing is sent together, or beside something else
	})
	eventually(t, func() bool { return d.samples() >= 30 }, "some of it arrives")
	require.NoError(t, os.CopyFS(copied, os.DirFS(directory)))
	require.NoError(t, e.Shutdown(t.Context()), "no request of it is served any more")

	d.recover()
	start(t, componenttest.NewNopHost(), func(c *Config) { c.Endpoint, c.Queue.Directory = d.URL, copied })
	eventually(t, func() bool { return d.samples() >= 100 }, "all arrives")
	eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(copied, "exporter_remotewrite__remotewrite"))
		return os.IsNotExist(err)
	}, "the file is no longer needed")
	require.LessOrEqual(t, d.samples(), 110, "nothing but the last request comes again")
}

func TestFileOfFileStorageThatCannotBeRead(t *testing.T) {
	directory := t.TempDir()
	file := filepath.Join(directory, "exporter_remotewrite__remotewrite")
	require.NoError(t, os.WriteFile(file, make([]byte, 64<<10), 0o600))
	d := newReceived(t, nil)
	e, _, logs := instrumented(t, d.URL, func(c *Config) { c.Queue.Directory = directory })
	require.Equal(t, 1, logs.FilterMessageSnippet("cannot be read").Len())
	e.consumeAll(t, 1)
	eventually(t, func() bool { return d.samples() == 10 }, "it goes on without it")
	require.NoFileExists(t, file)
	require.FileExists(t, file+".damaged")
}

func TestFileOfFileStorageThatIsInUse(t *testing.T) {
	directory := t.TempDir()
	d := newReceived(t, nil)
	e := create(t, func(c *Config) { c.Endpoint, c.Queue.Storage = d.URL, &storageID })
	require.NoError(t, e.Start(t.Context(), newFiles(t, directory, nil)))
	other := create(t, func(c *Config) { c.Endpoint, c.Queue.Directory = d.URL, directory })
	require.ErrorContains(t, other.Start(t.Context(), componenttest.NewNopHost()), "which another process may use")
	require.NoError(t, other.Shutdown(t.Context()))
	require.NoError(t, e.Shutdown(t.Context()))
}

// TestStorageTakesThePlaceOfADirectory: a configuration laid over the agent's own may say where the queue is.
func TestStorageTakesThePlaceOfADirectory(t *testing.T) {
	directory := t.TempDir()
	d := newReceived(t, nil)
	e, _, logs := instrumentedOn(t, newFiles(t, directory, nil), d.URL, func(c *Config) {
		c.Queue.Storage, c.Queue.Directory = &storageID, filepath.Join(directory, "other")
	})
	require.Equal(t, 1, logs.FilterMessageSnippet("`queue.directory` has no effect").Len())
	e.consumeAll(t, 1)
	eventually(t, func() bool { return d.samples() == 10 }, "it arrives")
	require.FileExists(t, filepath.Join(directory, "exporter_remotewrite__remotewrite"))
	require.NoDirExists(t, filepath.Join(directory, "other"))
}

// The names are those of file_storage.
func TestNamesOfFileStorage(t *testing.T) {
	for _, id := range []component.ID{
		component.MustNewID("remotewrite"), component.MustNewIDWithName("remotewrite", "far/away ~ä"), component.MustNewIDWithName("prometheusremotewrite", "2.0"),
	} {
		directory := t.TempDir()
		client, err := newFiles(t, directory, nil)[storageID].(storage.Extension).GetClient(t.Context(), component.KindExporter, id, storageName)
		require.NoError(t, err)
		require.FileExists(t, filepath.Join(directory, fileStorageName(id)))
		require.NoError(t, client.Close(t.Context()))
	}
}
