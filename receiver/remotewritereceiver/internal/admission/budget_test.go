// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"testing"
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
		require.ErrorIs(t, b.take(t.Context(), 50, func(int, int, bool) { nudges++ }), ErrBusy)
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
	const gib = 1 << 30
	require.Equal(t, 2*gib, SizeFor(8*gib))
	require.Equal(t, 32<<20, SizeFor(128<<20))
	require.Equal(t, leastMemory, SizeFor(80<<20), "enough for a request of the usual size")
	require.Equal(t, (64<<20)/leastShare, SizeFor(64<<20), "unless a container has no more")
	require.Equal(t, unknownMemory/memoryShare, SizeFor(0))
}
