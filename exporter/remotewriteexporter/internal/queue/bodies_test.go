// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/internal/handback"
)

// The memory of bodies is reused while others wait, are being sent, are returned, or are dropped for lack of room: a
// destination always gets what was pushed. In the end no memory is in use.
func TestBodiesAreWhatWasPushed(t *testing.T) {
	defer handback.Poison(true)()
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		var memory block.Memory
		policy := OnFull(random.IntN(3))
		q, _ := open(t, 1+random.IntN(3), 10, func(cfg *Config) { cfg.OnFull = policy })
		var all []block.Block
		var leases []*Lease
		look := func() {
			for _, l := range leases {
				for i, b := range l.Blocks {
					require.Equal(t, blockOf(int(b.MaxTime), 0).Body(), b.Body(), "seed %d, block %d of %d", seed, i, len(l.Blocks))
				}
			}
		}
		end := func(i int) {
			l := leases[i]
			leases = append(leases[:i], leases[i+1:]...)
			switch random.IntN(4) {
			case 0:
				l.Release()
			case 1:
				l.Done([]error{errors.New("lost")})
			default:
				l.Done(nil)
			}
		}
		for number := 1; number <= 300; number++ { // poison is zeros
			var blocks []block.Block
			for shard := range 1 + random.IntN(2) {
				like := blockOf(number, shard)
				like.MaxTime = int64(number)
				blocks = append(blocks, memory.New(like.Header, like.Body()))
			}
			made := len(blocks)
			if random.IntN(4) == 0 {
				blocks = append(blocks, blocks[0]) // as if the rules of a destination change nothing
			}
			push(t, q, 0, blocks...)
			for _, b := range blocks[:made] {
				b.Free()
			}
			all = append(all, blocks...)
			for d := range q.Destinations() {
				if s := q.Stats(d); s.Waiting > 0 && s.Leased == 0 {
					l, err := q.Next(t.Context(), d, Bound{Samples: random.IntN(4), Bytes: 1 << 20, Raw: 1 << 20})
					require.NoError(t, err)
					leases = append(leases, l)
				}
			}
			look()
			for len(leases) > random.IntN(4) {
				end(random.IntN(len(leases)))
				look()
			}
		}
		for len(leases) > 0 {
			end(0)
		}
		for d := range q.Destinations() {
			contents(t, q, d)
		}
		for _, b := range all {
			require.NotEqual(t, blockOf(int(b.MaxTime), 0).Body(), b.Body(), "seed %d: it is free", seed)
		}
		require.NoError(t, q.Close(t.Context()))
	}
}

// Several queues may inherit the same blocks, and finish with them at different times.
func TestInheritedBodiesAreWhatWasPushed(t *testing.T) {
	defer handback.Poison(true)()
	var memory block.Memory
	q, _ := open(t, 2, 10, nil)
	for number := range 5 {
		b := memory.New(blockOf(number, 0).Header, blockOf(number, 0).Body())
		push(t, q, 0, b)
		b.Free()
	}
	next(t, q, 0, 0).Done(nil)
	q.Stop()
	left := []*Legacy{q.Leave()}
	require.NoError(t, q.Close(t.Context()))
	first, _ := open(t, 2, 10, func(cfg *Config) { cfg.Legacy = left })
	second, _ := open(t, 1, 10, func(cfg *Config) { cfg.Legacy = left })
	require.Equal(t, []int{1, 2, 3, 4}, contents(t, first, 0))
	require.Equal(t, []int{0, 1, 2, 3, 4}, contents(t, first, 1))
	require.NotEmpty(t, contents(t, second, 0))
	require.NoError(t, first.Close(t.Context()))
	require.NoError(t, second.Close(t.Context()))
}

// Stored blocks may be read from memory until they are stored.
func TestStoredBodiesStay(t *testing.T) {
	defer handback.Poison(true)()
	var memory block.Memory
	q, _ := open(t, 2, 10, stored(on(newMedium())))
	for number := range 5 {
		b := memory.New(blockOf(number, 0).Header, blockOf(number, 0).Body())
		push(t, q, 0, b)
		b.Free()
	}
	require.Equal(t, []int{0, 1, 2, 3, 4}, contents(t, q, 0))
	require.Equal(t, []int{0, 1, 2, 3, 4}, contents(t, q, 1))
	require.NoError(t, q.Close(t.Context()))
}
