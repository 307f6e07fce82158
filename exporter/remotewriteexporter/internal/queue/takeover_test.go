// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

// logClient is a storage on a medium with the guarantees of a log.
type logClient struct{ *memoryClient }

func (logClient) FreesWithoutRoom() bool { return true }

func (c logClient) Keys() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.values))
}

// earlierOn is what an earlier version left on a medium, read by a process with a limited number of operations.
type earlierOn struct {
	of     *versions
	client *memoryClient
}

func (e earlierOn) Keys() []string { return slices.Collect(maps.Keys(e.of.earlier.values)) }

func (e earlierOn) Get(key string) ([]byte, error) { return bytes.Clone(e.of.earlier.values[key]), nil }

func (e earlierOn) Close() error { return nil }

func (e earlierOn) Remove() error {
	if e.client.lives == 0 {
		return errKilled
	}
	e.client.lives--
	e.of.earlier = nil
	e.of.times++
	return nil
}

// versions has the media of an earlier version and of this one.
type versions struct {
	earlier *medium // nil once it is taken over
	medium  *medium
	times   int // number of takeovers
	old     bool
}

// storage returns the storage of the earlier version or, unless what it left has to be taken over first, of this one.
func (v *versions) storage(t *testing.T, client *memoryClient, old bool) (storage.Client, error) {
	if old && v.earlier == nil {
		v.earlier, v.old = newMedium(), true
	}
	if v.old = v.old && old; v.old {
		client.medium = v.earlier
		return client, nil
	}
	return v.takeOver(t, client)
}

func (v *versions) takeOver(t *testing.T, client *memoryClient) (storage.Client, error) {
	var earlier Earlier
	if v.earlier != nil {
		earlier = earlierOn{v, client}
	}
	taken, _, err := TakeOver(t.Context(), logClient{client}, earlier, func(error) {})
	return taken, err
}

// upgraded opens the queue of a later version.
func (v *versions) upgraded(t *testing.T, destinations int) *Queue {
	t.Helper()
	client, err := v.takeOver(t, on(v.medium))
	require.NoError(t, err)
	q, dropped := open(t, destinations, 100, stored(client))
	t.Cleanup(func() { require.Empty(t, dropped) })
	return q
}

func TestEarlierBlocksGoFirst(t *testing.T) {
	v := &versions{earlier: newMedium(), medium: newMedium()}
	q, _ := open(t, 2, 10, stored(on(v.earlier)))
	push(t, q, 7, blockOf(1, 0), blockOf(2, 1))
	push(t, q, 8, blockOf(3, 0))
	next(t, q, 0, 1).Done(nil)
	require.NoError(t, q.Close(t.Context()))
	left := maps.Clone(v.earlier.values)

	q = v.upgraded(t, 2)
	require.Equal(t, uint32(9), q.NextEpoch())
	push(t, q, 9, blockOf(4, 0))
	require.Equal(t, 3, q.Stats(0).Blocks)
	next(t, q, 0, 2).Done(nil)
	require.Equal(t, left, v.earlier.values, "it is only read")

	q = v.upgraded(t, 2) // after a kill
	require.Equal(t, []int{3, 4}, contents(t, q, 0))
	require.Equal(t, []int{1, 2, 3}, contents(t, q, 1)[:3])
	require.Nil(t, v.earlier, "nothing of it is of use")
	require.NotContains(t, v.medium.values, takeoverKey)
	push(t, q, 9, blockOf(5, 0))
	require.Equal(t, []int{5}, contents(t, v.upgraded(t, 2), 0))
}

// A downgrade followed by an upgrade loses nothing, whatever was stored where.
func TestEarlierVersionMayComeAgain(t *testing.T) {
	v := &versions{earlier: newMedium(), medium: newMedium()}
	q, _ := open(t, 1, 10, stored(on(v.earlier)))
	push(t, q, 0, blockOf(1, 0), blockOf(2, 0))
	q = v.upgraded(t, 1)
	push(t, q, 1, blockOf(3, 0))
	next(t, q, 0, 1).Done(nil)

	q, _ = open(t, 1, 10, stored(on(v.earlier))) // which does not know that
	push(t, q, 1, blockOf(4, 0))
	q = v.upgraded(t, 1)
	push(t, q, 2, blockOf(5, 0))
	require.Equal(t, []int{3, 1, 2, 4, 5}, contents(t, q, 0))
	require.Nil(t, v.earlier)
	require.Equal(t, []string{indexKey}, slices.Collect(maps.Keys(v.medium.values)))
}

// Blocks that an earlier version could no longer delete are not sent.
func TestEarlierLeftoversAreNotSent(t *testing.T) {
	v := &versions{earlier: newMedium(), medium: newMedium()}
	q, _ := open(t, 1, 10, stored(on(v.earlier)))
	push(t, q, 0, blockOf(1, 0))
	orphan := v.earlier.values[key(BlockPrefix, 0)]
	require.Equal(t, []int{1}, contents(t, q, 0))
	push(t, q, 0, blockOf(2, 0))
	v.earlier.values[key(BlockPrefix, 0)] = orphan
	require.Equal(t, []int{2}, contents(t, v.upgraded(t, 1), 0))

	v = &versions{earlier: newMedium(), medium: newMedium()}
	q, _ = open(t, 1, 10, stored(on(v.earlier)))
	push(t, q, 0, blockOf(1, 0), blockOf(2, 0))
	delete(v.earlier.values, indexKey)
	require.Equal(t, []int{1, 2}, contents(t, v.upgraded(t, 1), 0), "without an index all are")
}

// On a full disk, delivered blocks are not sent again by this process, and the earlier storage is freed.
func TestEarlierBlocksLeaveAFullDisk(t *testing.T) {
	v := &versions{earlier: newMedium(), medium: newMedium()}
	q, _ := open(t, 1, 10, stored(on(v.earlier)))
	push(t, q, 0, blockOf(1, 0), blockOf(2, 0), blockOf(3, 0))
	client := on(v.medium)
	taken, err := v.takeOver(t, client)
	require.NoError(t, err)
	q, _ = open(t, 1, 10, stored(taken))
	client.setFull(true)
	next(t, q, 0, 1).Done(nil)
	next(t, q, 0, 2).Done(nil)
	require.Error(t, q.Push(t.Context(), 0, []block.Block{blockOf(4, 0)}, nil))
	require.Equal(t, 1, q.Stats(0).Blocks)
	client.setFull(false)
	push(t, q, 0, blockOf(4, 0))
	require.Equal(t, []int{3, 4}, contents(t, v.upgraded(t, 1), 0), "it was said with what was written next")
	require.Nil(t, v.earlier)
}

// A storage that cannot be deleted remains, and is not used any more.
func TestEarlierStorageThatStays(t *testing.T) {
	v := &versions{earlier: newMedium(), medium: newMedium()}
	q, _ := open(t, 1, 10, stored(on(v.earlier)))
	push(t, q, 0, blockOf(1, 0), blockOf(2, 0))
	var told []error
	taken, blocks, err := TakeOver(t.Context(), logClient{on(v.medium)}, stubborn{earlierOn{of: v}}, func(err error) { told = append(told, err) })
	require.NoError(t, err)
	require.Equal(t, 2, blocks)
	q, _ = open(t, 1, 10, stored(taken))
	require.Equal(t, []int{1, 2}, contents(t, q, 0))
	push(t, q, 0, blockOf(3, 0))
	require.Equal(t, []error{errStays}, told)
	require.Equal(t, []int{3}, contents(t, v.upgraded(t, 1), 0))
	require.Nil(t, v.earlier)
}

var errStays = errors.New("it cannot be deleted")

type stubborn struct{ earlierOn }

func (stubborn) Remove() error { return errStays }
