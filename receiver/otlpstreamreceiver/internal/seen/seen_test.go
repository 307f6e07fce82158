// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package seen

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

func TestWhatIsTakenIsRemembered(t *testing.T) {
	s := &Slot{working: map[uint64]chan struct{}{}}
	taken, highest := map[uint64]bool{}, uint64(0)
	random := rand.New(rand.NewPCG(1, 2))
	for range 50_000 {
		id := max(1, highest+uint64(random.IntN(40))-20+1)
		if random.IntN(5000) == 0 {
			id += uint64(random.IntN(3 * seenNumbers))
		}
		end := s.Begin(context.Background(), id)
		known := highest < id || highest-id < seenNumbers
		require.Equal(t, known && taken[id], end == nil, "%d of %d", id, highest)
		if end == nil {
			continue
		}
		ok := random.IntN(3) > 0
		if end(ok); ok {
			taken[id], highest = true, max(highest, id)
		}
	}
	require.Empty(t, s.working)
}

func TestARequestInWorkIsWaitedFor(t *testing.T) {
	for _, taken := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := &Slot{working: map[uint64]chan struct{}{}}
			first := s.Begin(t.Context(), 7)
			var fresh, done atomic.Int64
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					if end := s.Begin(t.Context(), 7); end != nil {
						fresh.Add(1)
						end(true)
					}
					done.Add(1)
				})
			}
			synctest.Wait()
			require.Zero(t, done.Load())
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			s.Begin(ctx, 7)(true)
			synctest.Wait()
			require.Zero(t, done.Load(), "who does not wait changes nothing")
			first(taken)
			all.Wait()
			require.Equal(t, map[bool]int64{true: 0, false: 1}[taken], fresh.Load())
		})
	}
}

func TestSlotsOfClientsAreForgotten(t *testing.T) {
	const traces, logs = otlpstream.Traces, otlpstream.Logs
	c := Clients{Most: 2}
	a, b := c.Enter(traces, "a"), c.Enter(traces, "b")
	require.Same(t, a, c.Enter(traces, "a"))
	require.Nil(t, c.Enter(logs, "a"), "another signal has other numbers, and both places are taken")
	c.Leave(a)
	require.Nil(t, c.Enter(traces, "c"), "it has another stream")
	c.Leave(a)
	c.Leave(b)
	c.Leave(nil)
	require.NotNil(t, c.Enter(traces, "c"))
	require.Same(t, b, c.Enter(traces, "b"))
	require.Nil(t, c.Enter(traces, "a"), "it was gone for longest")

	require.Nil(t, (&Clients{}).Enter(traces, "a"))
	require.Nil(t, c.Enter(traces, ""))
	require.Nil(t, c.Enter(traces, fmt.Sprintf("%065d", 1)))
}
