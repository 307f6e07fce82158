// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

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
	l := newLine()
	var mu sync.Mutex
	var order []uint64
	var going sync.WaitGroup
	for _, i := range rand.Perm(n) {
		require.LessOrEqual(t, l.join(), uint64(n))
		number := uint64(i + 1)
		going.Go(func() {
			if number%7 == 0 { // it has given up
				l.pass(number)
				return
			}
			if l.wait(t.Context(), number) != nil {
				return
			}
			mu.Lock()
			order = append(order, number)
			mu.Unlock()
			l.pass(number)
			l.pass(number)
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
	l := newLine()
	l.patience = 10 * time.Millisecond
	for range 4 {
		l.join()
	}
	require.NoError(t, l.wait(t.Context(), 4))
	ctx, cancel := context.WithTimeout(t.Context(), 10*l.patience)
	defer cancel()
	l.join()
	require.Error(t, l.wait(ctx, 5), "the fourth has come, and is not done")
	l.pass(4)
	require.NoError(t, l.wait(t.Context(), 5))
}
