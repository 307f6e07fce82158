// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

func TestFullStorage(t *testing.T) {
	const room = 3*(bodySize+80) + indexSize + reserves*3<<10
	t.Run("tells whoever brings data", func(t *testing.T) {
		m := newMedium()
		m.limit = room + 5*(bodySize+80)
		q, dropped := open(t, 1, 10, stored(on(m)))
		held := 0
		for q.Push(t.Context(), 0, []block.Block{blockOf(2*held, 0), blockOf(2*held+1, 0)}, nil) == nil {
			held++
		}
		require.GreaterOrEqual(t, held, 4)
		next(t, q, 0, 0).Done(nil)
		require.ErrorIs(t, q.Push(t.Context(), 0, []block.Block{blockOf(100, 0)}, nil), storage.ErrStorageFull, "some room is left free")
		for n := 1; n <= held; n++ {
			next(t, q, 0, n).Done(nil)
		}
		push(t, q, 0, blockOf(101, 0))
		var want []int
		for n := held + 1; n < 2*held; n++ {
			want = append(want, n)
		}
		require.Equal(t, append(want, 101), contents(t, q, 0), "of a failed push nothing is there")
		require.Empty(t, dropped)
	})
	t.Run("drops the oldest", func(t *testing.T) {
		m := newMedium()
		m.limit = room
		q, dropped := open(t, 1, 10, func(c *Config) { c.Storage, c.OnFull = on(m), DropOldest })
		for n := range 9 {
			push(t, q, 0, blockOf(n, 0))
		}
		require.Equal(t, []int{6, 7, 8}, contents(t, q, 0))
		require.Equal(t, drops{ReasonFull: 6}, dropped)
	})
}

// TestOldestAreNotDroppedInVain: if dropping makes no room because the storage cannot delete, it stops.
func TestOldestAreNotDroppedInVain(t *testing.T) {
	client := on(newMedium())
	q, dropped := open(t, 1, 100, func(c *Config) { c.Storage, c.OnFull = client, DropOldest })
	for n := range 50 {
		push(t, q, 0, blockOf(n, 0))
	}
	client.setFull(true)
	require.ErrorIs(t, q.Push(t.Context(), 0, []block.Block{blockOf(50, 0)}, nil), storage.ErrStorageFull)
	require.LessOrEqual(t, dropped[ReasonFull], 2)
	client.setFull(false)
	push(t, q, 0, blockOf(51, 0))
	require.LessOrEqual(t, dropped[ReasonFull], 2+50/4, "a part is left free")
}

// TestAStorageThatOthersFilledIsTakenForFullNoLonger: while nothing can be delivered, others make room on the disk.
// Nothing is written before that.
func TestAStorageThatOthersFilledIsTakenForFullNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := on(newMedium())
		q, dropped := open(t, 1, 1000, stored(client))
		for n := range 50 {
			push(t, q, 0, blockOf(n, 0))
		}
		pushed := func(n int) error { return q.Push(t.Context(), 0, []block.Block{blockOf(n, 0)}, nil) }
		client.setFull(true)
		require.ErrorIs(t, pushed(50), storage.ErrStorageFull)
		client.setFull(false)
		require.ErrorIs(t, pushed(50), storage.ErrStorageFull, "a part is left free")
		client.limit = client.size() + 5*bodySize // less than a quarter more
		time.Sleep(probePause)
		require.ErrorIs(t, pushed(50), storage.ErrStorageFull, "there is too little room for what deletions need")
		client.limit = client.size() + 20*bodySize
		require.ErrorIs(t, pushed(50), storage.ErrStorageFull, "it is not looked at each time")
		time.Sleep(probePause)
		size := client.size()
		require.ErrorIs(t, q.Push(t.Context(), 0, []block.Block{blockOf(50, 0), blockOf(51, 0), shaped(rand.New(rand.NewPCG(1, 1)), 52, 40*bodySize)}, nil), storage.ErrStorageFull)
		require.Equal(t, size, client.size(), "nothing is left of what it was looked at with")
		client.limit = 0
		time.Sleep(probePause)
		for n := 50; n < 100; n++ {
			require.NoError(t, pushed(n))
		}
		require.Len(t, contents(t, q, 0), 100)
		require.Empty(t, dropped)
	})
}
