// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

// heldClient is a storage whose deletions block until they are released.
type heldClient struct {
	*memoryClient

	through chan struct{}
}

func (c *heldClient) Batch(ctx context.Context, ops ...*storage.Operation) error {
	if first := ops[0]; first.Type == storage.Delete || strings.HasPrefix(first.Key, donePrefix) {
		<-c.through
	}
	return c.memoryClient.Batch(ctx, ops...)
}

// TestALaneGoesOnWhenTheStorageWasTold: with as many senders as there are, the next request of a lane is not sent
// before the last one can no longer be sent again after a crash. Other lanes do not wait for that.
func TestALaneGoesOnWhenTheStorageWasTold(t *testing.T) {
	for destinations := 1; destinations <= 2; destinations++ { // with two, the storage records that one of them is done
		t.Run(strconv.Itoa(destinations), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &heldClient{on(newMedium()), make(chan struct{})}
				q, _ := open(t, destinations, 10, stored(c))
				push(t, q, 0, blockOf(1, 0), blockOf(2, 0), blockOf(3, 1))
				first := next(t, q, 0, 1)
				go first.Done(nil)
				synctest.Wait()
				other := next(t, q, 0, 3)
				idle(t, q)
				require.Equal(t, 3, q.Stats(0).Blocks)
				c.through <- struct{}{}
				synctest.Wait()
				require.Equal(t, 2, q.Stats(0).Blocks)
				close(c.through)
				next(t, q, 0, 2).Done(nil)
				other.Done(nil)
			})
		})
	}
}

// TestDeletionsThatFailAreMadeUpFor: a full storage may not even be able to delete. When it can again, finished blocks
// are deleted before anything is written, and new ones are accepted.
func TestDeletionsThatFailAreMadeUpFor(t *testing.T) {
	for _, restart := range []bool{false, true} {
		m := newMedium()
		client := on(m)
		failures := 0
		change := func(c *Config) { c.Storage, c.StorageFailed = client, func(error) { failures++ } }
		q, dropped := open(t, 1, 100, change)
		for n := range 10 {
			push(t, q, 0, blockOf(n, 0))
		}
		client.setFull(true)
		for n := range 8 {
			next(t, q, 0, n).Done(nil)
		}
		require.Positive(t, failures)
		require.ErrorIs(t, q.Push(t.Context(), 0, []block.Block{blockOf(10, 0)}, nil), storage.ErrStorageFull)
		require.Len(t, m.values, kept+10)
		client.setFull(false)
		push(t, q, 0, blockOf(10, 0))
		require.Len(t, m.values, kept+3, "what was finished is gone")
		if restart {
			client = on(m)
			q, dropped = open(t, 1, 100, change)
		}
		require.Equal(t, []int{8, 9, 10}, contents(t, q, 0))
		require.Len(t, m.values, kept)
		require.Empty(t, dropped)
	}
}

// TestDeletionsThatFailAreTriedAgain without any other operation.
func TestDeletionsThatFailAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMedium()
		client := on(m)
		q, _ := open(t, 1, 100, stored(client))
		push(t, q, 0, blockOf(1, 0), blockOf(2, 0))
		client.setFull(true)
		next(t, q, 0, 1).Done(nil)
		next(t, q, 0, 2).Done(nil)
		time.Sleep(time.Minute)
		require.Equal(t, kept+2, m.count())
		client.setFull(false)
		time.Sleep(2 * forgetPause)
		require.Equal(t, kept, m.count())
		require.NoError(t, q.Close(t.Context()))
	})
}

// TestLeftoversAreSwept: what a process could not delete before its end is deleted by the next.
func TestLeftoversAreSwept(t *testing.T) {
	m := newMedium()
	q, _ := open(t, 1, 100, stored(on(m)))
	for n := range 20 {
		push(t, q, 0, blockOf(n, 0))
	}
	dead := maps.Clone(m.values)
	for range 19 {
		next(t, q, 0, 20-q.Stats(0).Blocks).Done(nil)
	}
	push(t, q, 0, blockOf(20, 0)) // the index begins with the last of them
	for k, v := range dead {
		if _, ok := m.values[k]; !ok {
			m.values[k] = v
		}
	}
	m.values[key(donePrefix, 3)] = []byte("x")
	m.values[key(donePrefix, 5000)] = []byte("x")
	require.Greater(t, len(m.values), kept+18)
	q, dropped := open(t, 1, 100, stored(walkingClient{on(m)}))
	require.Len(t, m.values, kept+2)
	require.Equal(t, []int{19, 20}, contents(t, q, 0))
	require.Empty(t, dropped)
}
