// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

// kept is the number of values that remain without blocks: the index and the reserve.
const kept = 1 + reserves

func stored(client storage.Client) func(*Config) { return func(c *Config) { c.Storage = client } }

func on(m *medium) *memoryClient { return &memoryClient{medium: m, lives: -1} }

func TestStoredBlocksSurvive(t *testing.T) {
	m := newMedium()
	q, _ := open(t, 2, 10, stored(on(m)))
	push(t, q, 7, blockOf(1, 0), blockOf(2, 1))
	push(t, q, 8, blockOf(3, 0))
	next(t, q, 0, 1).Done(nil)
	held := next(t, q, 1, 1)
	held.Release()
	require.NoError(t, q.Close(t.Context()))

	q, dropped := open(t, 2, 10, stored(on(m)))
	require.Equal(t, uint32(9), q.NextEpoch())
	push(t, q, 9, blockOf(4, 0))
	require.Equal(t, []int{2, 3, 4}, contents(t, q, 0))
	require.Equal(t, []int{1, 2, 3, 4}, contents(t, q, 1))
	require.Empty(t, dropped)
	require.Len(t, m.values, kept, "only the index and the reserve are left")
}

func TestOrderOfDestinationsMayChange(t *testing.T) {
	m := newMedium()
	q, _ := open(t, 2, 10, stored(on(m)))
	push(t, q, 0, blockOf(1, 0))
	next(t, q, 0, 1).Done(nil)

	q, _ = open(t, 3, 10, func(c *Config) { c.Storage, c.Destinations = on(m), []string{"b", "c", "a"} })
	require.Equal(t, []int{1}, contents(t, q, 0))
	require.Equal(t, []int{1}, contents(t, q, 1), "a new destination gets what is there")
	require.Empty(t, contents(t, q, 2))
	require.Len(t, m.values, kept)
}

func TestDestinationThatIsGoneLeavesNothingBehind(t *testing.T) {
	m := newMedium()
	q, _ := open(t, 2, 10, stored(on(m)))
	push(t, q, 0, blockOf(1, 0))
	next(t, q, 0, 1).Done(nil)
	open(t, 1, 10, stored(on(m)))
	require.Len(t, m.values, kept)
}

// A queue of many gigabytes on disk may have a million blocks.
func TestStoredBlocksTakeLittleMemory(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(entry{}), uintptr(96))
}

func TestStoredBodiesLeaveMemory(t *testing.T) {
	q, _ := open(t, 1, 1<<20, stored(on(newMedium())))
	big := make([]byte, 1<<20)
	for range 2 * maxRetained / len(big) {
		push(t, q, 0, block.New(block.Header{Version: 2}, big))
	}
	kept := 0
	for _, e := range q.destinations[0].fresh.groups[0].lanes[0].entries {
		if e.block != nil {
			kept += len(big)
		}
	}
	require.Equal(t, maxRetained, kept)
	for q.Stats(0).Blocks > 0 {
		l, err := q.Next(t.Context(), 0, Bound{})
		require.NoError(t, err)
		require.Len(t, l.Blocks[0].Body(), len(big))
		l.Done(nil)
	}
	require.Zero(t, q.retained)
}
