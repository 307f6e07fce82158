// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

// diskOf returns a directory on a file system of its own.
func diskOf(t *testing.T, size string) string {
	t.Helper()
	disk := t.TempDir()
	if err := syscall.Mount("none", disk, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("cannot mount a file system of one's own here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(disk, syscall.MNT_DETACH)) })
	folder := filepath.Join(disk, "queue")
	require.NoError(t, os.Mkdir(folder, 0o700))
	return folder
}

// killed copies what a kill would leave to another file system, and returns what a queue finds there.
func killed(t *testing.T, e engine, directory string) map[int]bool {
	t.Helper()
	copied := diskOf(t, "64m")
	for name, b := range content(t, directory) {
		require.NoError(t, os.WriteFile(filepath.Join(copied, name), b, 0o600))
	}
	client, end := e.open(t, copied)
	defer end()
	q, dropped := open(t, 1, 1<<20, stored(client))
	found := map[int]bool{}
	for q.Stats(0).Blocks > 0 {
		l, err := q.Next(t.Context(), 0, Bound{1 << 20, 1 << 30, 1 << 30})
		require.NoError(t, err)
		for _, b := range l.Blocks {
			found[numberOf(b)] = true
		}
		l.Done(nil)
	}
	require.Empty(t, dropped)
	require.NoError(t, q.Close(t.Context()))
	return found
}

// TestAFullDiskKeepsWhatItTook: acknowledged data is delivered, or found after a kill, in the order of its shard; for
// other data the caller gets an error. Delivered data makes room again, as often as the disk is full.
func TestAFullDiskKeepsWhatItTook(t *testing.T) {
	for name, e := range engines {
		for _, size := range []int{3000, 20_000, 400_000} {
			for policy, onFull := range map[string]OnFull{"block": Block, "drop_oldest": DropOldest} {
				t.Run(name+"/"+policy, func(t *testing.T) {
					fillAndEmpty(t, e, diskOf(t, "4m"), size, onFull)
				})
			}
		}
	}
}

func fillAndEmpty(t *testing.T, e engine, directory string, size int, onFull OnFull) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(size), 4))
	client, end := e.open(t, directory)
	waiting, dropped := map[int]bool{}, 0
	q, _ := open(t, 1, 1<<30, func(c *Config) {
		c.Storage, c.OnFull = client, onFull
		c.Dropped = func(_ int, reason string, _ block.Header) {
			require.Equal(t, ReasonFull, reason)
			dropped++
		}
	})
	number, refused, delivered := 0, 0, 0
	for round := range 4 {
		for full := 0; full < 3 && number < (round+1)*(12<<20)/(size+entryOverhead); {
			number++
			err := q.Push(t.Context(), 0, []block.Block{shaped(r, number, 8+r.IntN(size))}, nil)
			if err == nil {
				waiting[number] = true
				continue
			}
			require.ErrorIs(t, err, storage.ErrStorageFull)
			refused++
			full++
		}
		found := killed(t, e, directory)
		if onFull == Block {
			require.Zero(t, dropped)
			for n := range waiting {
				require.True(t, found[n], "round %d", round)
			}
		}
		last := [3]int{}
		for range (1 + round%2) * q.Stats(0).Blocks / 2 { // half of it, or all
			l, err := q.Next(t.Context(), 0, Bound{})
			require.NoError(t, err)
			n := numberOf(l.Blocks[0])
			require.True(t, waiting[n], "block %d was taken, and is delivered once", n)
			require.Greater(t, n, last[l.Blocks[0].Shard])
			require.True(t, found[n], "a kill would not have lost it")
			last[l.Blocks[0].Shard] = n
			delete(waiting, n)
			delivered++
			l.Done(nil)
		}
	}
	require.Empty(t, contents(t, q, 0))
	require.Len(t, waiting, dropped)
	if onFull == Block {
		require.Positive(t, refused)
	} else {
		require.Positive(t, dropped)
	}
	require.Positive(t, delivered)
	require.NoError(t, q.Close(t.Context()))
	end()
	require.Empty(t, killed(t, e, directory))
}
