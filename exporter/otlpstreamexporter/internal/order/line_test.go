// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package order

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestALineGoesByItsNumbers(t *testing.T) {
	const n = 1000
	l := NewLine()
	var mu sync.Mutex
	var order []uint64
	var going sync.WaitGroup
	for _, i := range rand.Perm(n) {
		require.LessOrEqual(t, l.Join(), uint64(n))
		number := uint64(i + 1)
		going.Go(func() {
			if number%7 == 0 { // has given up
				l.Pass(number)
				return
			}
			if l.Wait(t.Context(), number) != nil {
				return
			}
			mu.Lock()
			order = append(order, number)
			mu.Unlock()
			l.Pass(number)
			l.Pass(number)
		})
	}
	going.Wait()
	require.Len(t, order, n-n/7)
	require.IsIncreasing(t, order)
	require.Empty(t, l.waiting)
	require.Empty(t, l.passed)
	require.Empty(t, l.claimed)
}

func TestALineWaitsForNobodyWhoNeverComes(t *testing.T) {
	l := NewLine()
	l.patience = 10 * time.Millisecond
	for range 4 {
		l.Join()
	}
	require.NoError(t, l.Wait(t.Context(), 4))
	ctx, cancel := context.WithTimeout(t.Context(), 10*l.patience)
	defer cancel()
	l.Join()
	require.Error(t, l.Wait(ctx, 5), "the fourth has come, and is not done")
	l.Pass(4)
	require.NoError(t, l.Wait(t.Context(), 5))
}
