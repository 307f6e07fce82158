// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
)

func forgetPlaces() {
	elsewhere.mu.Lock()
	defer elsewhere.mu.Unlock()
	clear(elsewhere.of)
}

// TestWhatIsLeftElsewhereIsTold: after a reload that removes or changes the directory of the queue, the data there is
// not sent. Each start logs where it is and how much, until a queue is configured there again and sends it.
func TestWhatIsLeftElsewhereIsTold(t *testing.T) {
	const calls, each = 3, 10
	one, other, files := t.TempDir(), t.TempDir(), t.TempDir()
	d := newReceived(t, nil)
	inDirectory := func(d string) func(*Config) { return func(c *Config) { c.Queue.Directory = d } }
	inMemory := func(*Config) {}
	inStorage := func(c *Config) { c.Queue.Storage = &storageID }
	file := filepath.Join(files, fileStorageName(create(t, func(c *Config) { c.Endpoint = d.URL }).set.ID))
	folder := func(d string) string { return filepath.Join(d, "exporter_remotewrite") }

	for _, step := range []struct {
		name   string
		change func(*Config)
		up     bool
		told   []string // places
	}{
		{"a queue on disk", inDirectory(one), false, nil},
		{"the same", inDirectory(one), false, nil},
		{"memory", inMemory, true, []string{folder(one)}},
		{"still memory", inMemory, true, []string{folder(one)}},
		{"another place", inDirectory(other), false, []string{folder(one)}},
		{"a storage", inStorage, false, []string{folder(one), folder(other)}},
		{"memory again", inMemory, true, []string{folder(one), folder(other), file}},
		{"where the storage's file is taken over", inDirectory(files), true, []string{folder(one), folder(other)}},
		{"the second place", inDirectory(other), true, []string{folder(one)}},
		{"the first place", inDirectory(one), true, nil},
		{"memory in the end", inMemory, true, nil},
	} {
		host := componenttest.NewNopHost()
		if step.name == "a storage" {
			host = newFiles(t, files, nil)
		}
		if step.up {
			d.recover()
		} else {
			d.setAnswer(status(1<<30, http.StatusServiceUnavailable))
		}
		e, _, logs := instrumentedOn(t, host, d.URL, step.change)
		var told []string
		for _, entry := range logs.FilterMessageSnippet("in another place").All() {
			fields := entry.ContextMap()
			told = append(told, fields["place"].(string))
			require.Positive(t, fields["bytes"], step.name)
			require.Positive(t, fields["requests"], step.name)
			require.GreaterOrEqual(t, fields["samples"], int64(calls*each), step.name)
			require.Zero(t, fields["samples"].(int64)%each, step.name)
		}
		require.Equal(t, step.told, told, step.name)
		e.consumeAll(t, calls)
		if step.up {
			eventually(t, func() bool { return e.Snapshot().Destinations[0].QueuedBlocks == 0 }, "it has nothing left")
		}
		require.NoError(t, e.Shutdown(t.Context()))
		require.Equal(t, !step.up, logs.FilterMessageSnippet("the next start sends it").Len() == 1, step.name)
	}
	require.Equal(t, 11*calls*each, d.samples(), "everything arrives in the end")
}
