// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

// sized returns a policy with room for the given number of blocks.
func sized(blocks int, onFull OnFull) Policy {
	return Policy{Size: int64(blocks * (bodySize + entryOverhead)), OnFull: onFull}
}

// TestPoliciesOfDestinations: a full queue of one destination does not affect the others.
func TestPoliciesOfDestinations(t *testing.T) {
	for name, medium := range map[string]*medium{"memory": nil, "disk": newMedium()} {
		t.Run(name, func(t *testing.T) {
			q, dropped := open(t, 3, 0, func(c *Config) {
				c.Own = []Policy{sized(3, DropOldest), sized(2, DropNewest), sized(5, Block)}
				if medium != nil {
					c.Storage = on(medium)
				}
			})
			for n := range 4 {
				require.False(t, q.Refuses([]string{""}), "one of them would take it")
				require.False(t, q.Blocks([]string{""}))
				push(t, q, 0, blockOf(n, n)) // in separate lanes, so that all may be dropped
			}
			require.Equal(t, drops{ReasonFull: 1 + 2}, dropped)
			require.Equal(t, sized(2, DropNewest).Size, q.Stats(1).Capacity)
			push(t, q, 0, blockOf(4, 4))
			require.True(t, q.Blocks([]string{""}), "the last is full, too")
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			require.ErrorIs(t, q.WaitRoom(ended, []string{""}), context.Canceled)
			require.Equal(t, []int{2, 3, 4}, contents(t, q, 0))
			require.Equal(t, []int{0, 1}, contents(t, q, 1))
			require.True(t, q.Blocks([]string{""}), "that others have room changes nothing")
			require.Equal(t, []int{0, 1, 2, 3, 4}, contents(t, q, 2))
			require.False(t, q.Blocks([]string{""}))
			require.NoError(t, q.WaitRoom(t.Context(), []string{""}))
			if medium != nil {
				require.Equal(t, 1+reserves, medium.count(), "nothing is left but the index and the reserve")
			}
			require.NoError(t, q.Close(t.Context()))
		})
	}
}

// TestAgesOfDestinations: each has its own maximum age, and its own setting for fresh blocks.
func TestAgesOfDestinations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, dropped := open(t, 3, 10, func(c *Config) {
			c.Own = []Policy{sized(10, Block), sized(10, Block), sized(10, Block)}
			c.Own[1].MaxAge, c.Own[2].FreshFor = time.Minute, time.Minute
		})
		push(t, q, 0, blockOf(1, 0))
		time.Sleep(2 * time.Minute)
		push(t, q, 0, blockOf(2, 0))
		require.Equal(t, []int{1, 2}, contents(t, q, 0))
		require.Equal(t, []int{2}, contents(t, q, 1))
		require.Equal(t, drops{ReasonAge: 1}, dropped)
		require.Equal(t, []int{2, 1}, contents(t, q, 2))
		require.NoError(t, q.Close(t.Context()))
	})
}

// TestFullStorageTakesFromThoseWhoMayLose: a full storage makes room by dropping blocks that only destinations with a
// drop policy wait for. Blocks that others wait for would remain, so they are dropped for none.
func TestFullStorageTakesFromThoseWhoMayLose(t *testing.T) {
	m := newMedium()
	q, dropped := open(t, 2, 0, func(c *Config) {
		c.Storage = on(m)
		c.Own = []Policy{sized(1000, DropOldest), sized(1000, Block)}
	})
	m.limit = 0
	number := 0
	more := func() error {
		number++
		return q.Push(t.Context(), 0, []block.Block{blockOf(number, number%8)}, nil)
	}
	for range 20 {
		require.NoError(t, more())
	}
	m.limit = m.size()
	require.ErrorIs(t, more(), storage.ErrStorageFull)
	require.Empty(t, dropped, "it would have made no room")

	for range 20 { // the second destination gets everything
		l, err := q.Next(t.Context(), 1, Bound{})
		require.NoError(t, err)
		l.Done(nil)
	}
	for range 40 {
		require.NoError(t, more())
		l, err := q.Next(t.Context(), 1, Bound{})
		require.NoError(t, err)
		require.Equal(t, number, numberOf(l.Blocks[0]), "it misses nothing for the first one's sake")
		l.Done(nil)
	}
	require.Positive(t, dropped[ReasonFull])
	require.NoError(t, q.Close(t.Context()))
}

// TestWhatWasLeftOutStaysOut: a block that one destination had no room for is not sent to it after the next start,
// although it was stored for another one.
func TestWhatWasLeftOutStaysOut(t *testing.T) {
	m := newMedium()
	both := func(c *Config) { c.Storage, c.Own = on(m), []Policy{sized(1, DropNewest), sized(10, Block)} }
	q, dropped := open(t, 2, 0, both)
	for n := range 3 {
		push(t, q, 0, blockOf(n, n))
	}
	require.Equal(t, drops{ReasonFull: 2}, dropped)
	require.NoError(t, q.Close(t.Context()))
	q, dropped = open(t, 2, 0, both)
	require.Equal(t, []int{0}, contents(t, q, 0))
	require.Equal(t, []int{0, 1, 2}, contents(t, q, 1))
	require.Empty(t, dropped)
	require.Equal(t, 1+reserves, m.count(), "nothing is left but the index and the reserve")
	require.NoError(t, q.Close(t.Context()))
}

// TestAClockThatWasSetBackKeepsNothingForLonger: blocks that were stored while the clock was ahead do not wait longer
// than others.
func TestAClockThatWasSetBackKeepsNothingForLonger(t *testing.T) {
	m := newMedium()
	inBubble := func(f func(t *testing.T, q *Queue, dropped drops)) {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Hour)
			q, dropped := open(t, 1, 10, func(c *Config) { c.Storage, c.MaxAge = on(m), time.Minute })
			f(t, q, dropped)
			require.NoError(t, q.Close(t.Context()))
		})
	}
	inBubble(func(t *testing.T, q *Queue, _ drops) {
		time.Sleep(24 * time.Hour)
		push(t, q, 0, blockOf(1, 0))
	})
	inBubble(func(t *testing.T, q *Queue, dropped drops) { // each bubble has its own clock
		require.False(t, q.Stats(0).Oldest.After(time.Now()))
		next(t, q, 0, 1).Release()
		time.Sleep(time.Minute)
		push(t, q, 0, blockOf(2, 0))
		next(t, q, 0, 2).Done(nil)
		require.Equal(t, drops{ReasonAge: 1}, dropped)
	})
}
