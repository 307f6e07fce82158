// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"math/rand/v2"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/segments"
)

// TestTheOldestMakeRoomOnAFullDisk: with drop_oldest nothing is refused, although nothing is delivered and a file is
// larger than the disk.
func TestTheOldestMakeRoomOnAFullDisk(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("none", disk, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("cannot mount a file system of one's own here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(disk, syscall.MNT_DETACH)) })
	for _, size := range []int{3000, 20_000, 400_000} {
		store, err := segments.Open(filepath.Join(disk, "queue"), segments.Options{Counted: BlockPrefix})
		require.NoError(t, err)
		dropped := 0
		q, _ := open(t, 1, 1<<30, func(c *Config) {
			c.Storage, c.OnFull = store, DropOldest
			c.Dropped = func(int, string, block.Header) { dropped++ }
		})
		r, n := rand.New(rand.NewPCG(8, 6)), 0
		for ; n < 12<<20/(size+entryOverhead); n++ {
			require.NoError(t, q.Push(t.Context(), 0, []block.Block{shaped(r, n, size)}, nil), "block %d of %d bytes", n, size)
		}
		left := contents(t, q, 0)
		require.Equal(t, n, dropped+len(left))
		require.Positive(t, dropped)
		require.Equal(t, n-1, left[len(left)-1])
		require.NoError(t, q.Close(t.Context()))
	}
}
