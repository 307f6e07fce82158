// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"context"
	"math"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

func TestBudgetServesInTheOrderOfComing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100)
		require.NoError(t, b.take(t.Context(), 90, nil))
		var order []int
		for _, n := range []int{50, 5, 41} {
			go func() {
				if b.take(context.Background(), n, nil) == nil {
					order = append(order, n)
				}
			}()
			synctest.Wait()
		}
		require.Empty(t, order, "what would fit waits for its turn, too")
		require.False(t, b.try(1))
		b.give(40)
		synctest.Wait()
		require.Equal(t, []int{50}, order)
		b.give(5)
		synctest.Wait()
		require.Equal(t, []int{50, 5}, order)
		b.give(45)
		synctest.Wait()
		require.Equal(t, []int{50, 5, 41}, order)
		b.give(96)
		require.Equal(t, 100, b.free)
	})
}

func TestBudgetWaitsSoLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100)
		require.NoError(t, b.take(t.Context(), 60, nil))
		served := false
		go func() { served = b.take(context.Background(), 30, nil) == nil }()
		began, nudges := time.Now(), 0
		go func() {}()
		synctest.Wait()
		require.True(t, served)
		require.ErrorIs(t, b.take(t.Context(), 50, func() { nudges++ }), errBusy)
		require.Equal(t, maxWait, time.Since(began))
		require.Positive(t, nudges)
		b.give(90)
		require.True(t, b.try(100))
		require.ErrorIs(t, b.take(t.Context(), 101, nil), promwrite.ErrTooLarge)
	})
}

func TestWhoLeavesTheQueueLetsOthersPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100)
		require.NoError(t, b.take(t.Context(), 60, nil))
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = b.take(ctx, 80, nil) }()
		synctest.Wait()
		small := false
		go func() { small = b.take(context.Background(), 20, nil) == nil }()
		synctest.Wait()
		require.False(t, small)
		cancel()
		synctest.Wait()
		require.True(t, small)
		require.Equal(t, 20, b.free)
	})
}

func TestMemoryFollowsWhatThereIs(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	const gib = 1 << 30
	host := fstest.MapFS{"proc/meminfo": file("MemFree: 1 kB\nMemTotal:       8388608 kB\n")}
	require.Equal(t, 2*gib, memoryFor(host, math.MaxInt64))
	require.Equal(t, gib, memoryFor(host, 4*gib))
	require.Equal(t, leastMemory, memoryFor(host, 1))
	require.Equal(t, unknownMemory/memoryShare, memoryFor(fstest.MapFS{}, math.MaxInt64))
	second := fstest.MapFS{
		"proc/meminfo": host["proc/meminfo"], "proc/self/cgroup": file("0::/a/b\n"),
		"sys/fs/cgroup/memory.max": file("max\n"), "sys/fs/cgroup/a/memory.max": file("1073741824\n"), "sys/fs/cgroup/a/b/memory.max": file("max\n"),
	}
	require.Equal(t, gib/4, memoryFor(second, math.MaxInt64))
	first := fstest.MapFS{
		"proc/meminfo": host["proc/meminfo"], "proc/self/cgroup": file("3:cpu:/x\n4:memory:/of/the/host\n"),
		"sys/fs/cgroup/memory/memory.limit_in_bytes": file("2147483648\n"),
	}
	require.Equal(t, gib/2, memoryFor(first, math.MaxInt64))
	require.Positive(t, goLimit())
}
