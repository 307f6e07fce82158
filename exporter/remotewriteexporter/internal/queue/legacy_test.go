// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

// leftOf returns what a queue in memory leaves: twenty blocks, three of which were delivered to the first destination.
func leftOf(t *testing.T) []*Legacy {
	t.Helper()
	var memory block.Memory
	q, _ := open(t, 2, 1<<10, nil)
	for n := range 20 {
		b := memory.New(blockOf(n, 0).Header, blockOf(n, 0).Body())
		push(t, q, uint32(n/8), b)
		b.Free()
	}
	for n := range 3 {
		next(t, q, 0, n).Done(nil)
	}
	return leave(t, q)
}

func leave(t *testing.T, q *Queue) []*Legacy {
	t.Helper()
	q.Stop()
	l := q.Leave()
	require.NoError(t, q.Close(t.Context()))
	if l == nil {
		return nil
	}
	return []*Legacy{l}
}

// numbers returns the numbers from the given one up to nineteen.
func numbers(from int) (list []int) {
	for n := from; n < 20; n++ {
		list = append(list, n)
	}
	return list
}

// TestWhatWasInMemoryIsStored: a reload may add a storage to a queue. Data that was acknowledged before survives a kill
// from then on, after the data in the storage and before new data.
func TestWhatWasInMemoryIsStored(t *testing.T) {
	for name, e := range engines {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			client, end := e.open(t, directory)
			q, _ := open(t, 2, 1<<10, stored(client))
			push(t, q, 0, blockOf(100, 0))
			require.Empty(t, leave(t, q), "it is stored")
			end()

			client, end = e.open(t, directory)
			legacy := leftOf(t)
			q, _ = open(t, 2, 1<<10, func(c *Config) { c.Storage, c.Legacy = client, legacy })
			push(t, q, q.NextEpoch(), blockOf(200, 0))
			want := [][]int{append(append([]int{100}, numbers(3)...), 200), append(append([]int{100}, numbers(0)...), 200)}
			copied := t.TempDir()
			require.NoError(t, os.CopyFS(copied, os.DirFS(directory)))
			for d := range want {
				require.Equal(t, want[d], contents(t, q, d))
			}
			require.Empty(t, leave(t, q))
			end()

			client, end = e.open(t, copied)
			q, dropped := open(t, 2, 1<<10, stored(client))
			for d := range want {
				require.Equal(t, want[d], contents(t, q, d), "after a kill")
			}
			require.Empty(t, dropped)
			require.NoError(t, q.Close(t.Context()))
			end()
		})
	}
}

// TestADestinationHasWhatWasLeftOnce: another one may come back for its own data later.
func TestADestinationHasWhatWasLeftOnce(t *testing.T) {
	l := leftOf(t)[0].Without([]string{"b"})
	q, _ := open(t, 2, 1<<10, func(c *Config) { c.Legacy = []*Legacy{l} })
	require.Equal(t, numbers(3), contents(t, q, 0))
	require.Empty(t, contents(t, q, 1))
}

// TestWhatCannotBeStoredStaysInMemory: if the storage has no room for it, it stays in memory as before, also for the
// next reload.
func TestWhatCannotBeStoredStaysInMemory(t *testing.T) {
	legacy := leftOf(t)
	m := newMedium()
	failures := 0
	onFull := func(c *Config) {
		c.Storage, c.Legacy = on(m), legacy
		c.StorageFailed = func(err error) {
			require.ErrorIs(t, err, storage.ErrStorageFull)
			failures++
		}
	}
	m.limit = 1
	q, dropped := open(t, 2, 1<<10, onFull)
	require.Equal(t, 1, failures)
	for n := 3; n < 6; n++ {
		next(t, q, 0, n).Done(nil)
	}
	legacy = leave(t, q)
	require.Equal(t, drops{ReasonShutdown: 14 + 20}, dropped, "should there be no other")

	m.limit, failures = 0, 0
	q, _ = open(t, 2, 1<<10, onFull)
	require.Zero(t, failures)
	require.Empty(t, leave(t, q), "it is stored now")
	q, dropped = open(t, 2, 1<<10, stored(on(m)))
	require.Equal(t, numbers(6), contents(t, q, 0))
	require.Equal(t, numbers(0), contents(t, q, 1))
	require.Equal(t, 1+reserves, m.count(), "nothing is left but the index and the reserve")
	require.Empty(t, dropped)
	require.NoError(t, q.Close(t.Context()))
}
