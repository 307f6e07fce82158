// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

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
	s := &seen{working: map[uint64]chan struct{}{}}
	taken, highest := map[uint64]bool{}, uint64(0)
	random := rand.New(rand.NewPCG(1, 2))
	for range 50_000 {
		id := max(1, highest+uint64(random.IntN(40))-20+1)
		if random.IntN(5000) == 0 {
			id += uint64(random.IntN(3 * seenNumbers))
		}
		end := s.begin(context.Background(), id)
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
			s := &seen{working: map[uint64]chan struct{}{}}
			first := s.begin(t.Context(), 7)
			var fresh, done atomic.Int64
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					if end := s.begin(t.Context(), 7); end != nil {
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
			s.begin(ctx, 7)(true)
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
	c := clients{most: 2}
	a, b := c.enter(traces, "a"), c.enter(traces, "b")
	require.Same(t, a, c.enter(traces, "a"))
	require.Nil(t, c.enter(logs, "a"), "another signal has other numbers, and both places are taken")
	c.leave(a)
	require.Nil(t, c.enter(traces, "c"), "it has another stream")
	c.leave(a)
	c.leave(b)
	c.leave(nil)
	require.NotNil(t, c.enter(traces, "c"))
	require.Same(t, b, c.enter(traces, "b"))
	require.Nil(t, c.enter(traces, "a"), "it was gone for longest")

	require.Nil(t, (&clients{}).enter(traces, "a"))
	require.Nil(t, c.enter(traces, ""))
	require.Nil(t, c.enter(traces, fmt.Sprintf("%065d", 1)))
}
