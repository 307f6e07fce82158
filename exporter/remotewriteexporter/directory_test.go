// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"bytes"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/godwit-otel/godwit/internal/racetest"
)

// leaveInFileStorage leaves unsent data for a destination that is down in the file of file_storage in a directory. No
// request is in progress when it returns: Shutdown waits for the response. Otherwise a request might be handled once
// the destination is up again, and count twice.
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

// TestQueueOfFileStorageIsSentFirst: migrating from `queue.storage` to `queue.directory` in the same directory loses
// nothing. New data is sent after the old, and then the file is deleted.
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

// A directory that was copied while the process was running is what a kernel would have kept of a killed one.
func TestQueueOfFileStorageOutlivesAKill(t *testing.T) {
	directory, copied := t.TempDir(), t.TempDir()
	d := newReceived(t, status(1<<30, http.StatusServiceUnavailable))
	leaveInFileStorage(t, directory, d, 10)
	var taken atomic.Int64
	d.setAnswer(func(_ int, w http.ResponseWriter, _ *http.Request) bool { // a few are accepted, and then it is down again
		if taken.Add(1) > 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		return false
	})
	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		c.Endpoint, c.Queue.Directory = d.URL, directory
		c.Batch.MaxSamples, c.Shards.Max = 10, 1 // nothing is sent together or concurrently
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

// TestStorageTakesThePlaceOfADirectory: a configuration that is merged into the agent's own may override the place of
// the queue.
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

// The names are the same as in file_storage.
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

// TestDamagedFileOfFileStorageStopsNoStart: pages of zeros, a truncated file, flipped bits and pages of another kind,
// anywhere. Undamaged data arrives, once; losses are reported, and the file is kept.
func TestDamagedFileOfFileStorageStopsNoStart(t *testing.T) {
	racetest.Sequential(t)
	const calls, series, damages = 60, 200, 60
	d := newReceived(t, status(1<<30, http.StatusServiceUnavailable))
	directory := t.TempDir()
	e := create(t, func(c *Config) { c.Endpoint, c.Queue.Storage = d.URL, &storageID })
	require.NoError(t, e.Start(t.Context(), newFiles(t, directory, nil)))
	for n := range calls {
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(series, n)))
	}
	require.NoError(t, e.Shutdown(t.Context()))
	sound, err := os.ReadFile(filepath.Join(directory, "exporter_remotewrite__remotewrite"))
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(20, 26))
	found, arrived := 0, 0
	for n := range damages {
		b := bytes.Clone(sound)
		page := r.IntN(len(b)/4096) * 4096
		switch n % 5 {
		case 0:
			clear(b[page : page+4096])
		case 1:
			b = b[:1+r.IntN(len(b)-1)]
		case 2:
			at := r.IntN(64) // the header of a page, and of its contents
			b[page+at] ^= 1 << r.IntN(8)
		case 3:
			other := r.IntN(len(b)/4096) * 4096
			copy(b[page:page+4096], sound[other:other+4096])
		case 4:
			for i := range 4096 {
				b[page+i] = byte(r.Uint32())
			}
		}
		damaged := t.TempDir()
		file := filepath.Join(damaged, "exporter_remotewrite__remotewrite")
		require.NoError(t, os.WriteFile(file, b, 0o600))
		d := newReceived(t, nil)
		e, tel, logs := instrumentedOn(t, newFiles(t, damaged, nil), d.URL, func(c *Config) { c.Queue.Storage = &storageID })
		isTold := logs.FilterMessageSnippet("cannot be read").Len() == 1
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(1, calls)))
		eventually(t, func() bool { return e.Snapshot().Destinations[0].QueuedBlocks == 0 && d.samples() > 0 }, "what there is arrives")
		if !isTold { // a damaged key looks like another one
			d.requireOrdered(t)
		}
		require.LessOrEqual(t, d.samples(), calls*series+1, "nothing arrives twice")
		arrived += d.samples() - 1
		if isTold {
			found++
			require.FileExists(t, file+".damaged")
			require.NoFileExists(t, file+".salvage")
			require.Positive(t, value(t, tel, "otelcol_exporter_remotewrite_storage_damaged_bytes"))
		} else if d.samples() < calls*series+1 { // the checksum of the value detects it
			require.Positive(t, value(t, tel, "otelcol_exporter_remotewrite_dropped_blocks", "destination="+d.URL, "reason=corrupt"), "damage %d", n)
		}
		require.NoError(t, e.Shutdown(t.Context()))

		_, _, logs = instrumentedOn(t, newFiles(t, damaged, nil), d.URL, func(c *Config) { c.Queue.Storage = &storageID })
		require.Empty(t, logs.FilterMessageSnippet("cannot be read").All(), "it is told once")
	}
	t.Logf("%d of %d damages were found in pages, %d of %d samples arrived", found, damages, arrived, damages*calls*series)
	require.Greater(t, found, damages/3)
	require.Greater(t, arrived, damages*calls*series/2)
}

// TestACopyThatWasInterruptedIsMadeAgain: the process ended while it copied the readable part of a damaged file.
func TestACopyThatWasInterruptedIsMadeAgain(t *testing.T) {
	directory := t.TempDir()
	down := newReceived(t, status(1<<30, http.StatusServiceUnavailable))
	file := leaveInFileStorage(t, directory, down, 10)
	require.NoError(t, os.Rename(file, file+".salvage"))
	for _, half := range []string{"", "damaged"} {
		if half != "" {
			require.NoError(t, os.Rename(file+".damaged", file+".salvage"))
			require.NoError(t, os.WriteFile(file, make([]byte, 64<<10), 0o600))
		}
		d := newReceived(t, nil)
		e, _, logs := instrumentedOn(t, newFiles(t, directory, nil), d.URL, func(c *Config) { c.Queue.Storage = &storageID })
		eventually(t, func() bool { return d.samples() == 100 }, "all that was stored arrives")
		require.NoError(t, e.Shutdown(t.Context()))
		require.Equal(t, 1, logs.FilterMessageSnippet("cannot be read").Len())
		require.FileExists(t, file+".damaged")
		require.NoFileExists(t, file+".salvage")
	}
}
