// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/internal/racetest"
)

// TestKilledAtAnyPoint pushes and sends, is killed after a random number of storage operations, and continues with what
// is stored. Acknowledged data must arrive at every destination, in order, and twice only if it was being sent when the
// process was killed.
func TestKilledAtAnyPoint(t *testing.T) { killedAtAnyPoint(t, 0, false) }

// TestKilledAtAnyPointWhileFreshGoesFirst is the same with blocks that are late soon, so that only fresh and late ones
// each have an order.
func TestKilledAtAnyPointWhileFreshGoesFirst(t *testing.T) {
	killedAtAnyPoint(t, 20*time.Microsecond, false)
}

// TestKilledAtAnyPointOfATakeover is the same with an earlier version that repeatedly stores elsewhere, and a later one
// that takes its data over.
func TestKilledAtAnyPointOfATakeover(t *testing.T) { killedAtAnyPoint(t, 0, true) }

func killedAtAnyPoint(t *testing.T, freshFor time.Duration, upgrades bool) {
	racetest.Sequential(t)
	const rounds, destinations, lanes = 500, 2, 3
	random := rand.New(rand.NewPCG(1, 2))
	m := newMedium()
	number := 0
	acknowledged := map[int]bool{}
	var delivered [destinations]map[int]int // times
	for i := range delivered {
		delivered[i] = map[int]int{}
	}
	mayRepeat := map[int]bool{}
	v := versions{medium: m}
	odds := 2 // of a push
	if upgrades {
		odds = 4 // so that a takeover completes
	}

	for round := range rounds + 1 {
		client := on(m)
		if round < rounds {
			client.lives = 2 + random.IntN(60)
		}
		cfg := Config{
			Destinations: []string{"a", "b"}, Policy: Policy{Size: 1 << 30, FreshFor: freshFor}, Storage: client,
			Dropped:       func(_ int, reason string, _ block.Header) { t.Errorf("dropped for %s", reason) },
			StorageFailed: func(error) {},
		}
		var err error
		if upgrades {
			cfg.Storage, err = v.storage(t, client, round%40 < 4 && round < rounds)
		}
		var q *Queue
		if err == nil {
			q, err = Open(t.Context(), cfg)
		}
		if err != nil {
			require.ErrorIs(t, err, errKilled)
			continue
		}
		epoch := q.NextEpoch()
		last := [destinations][lanes]int{}
		for alive := true; alive; {
			if round < rounds && random.IntN(odds) == 0 {
				var blocks []block.Block
				for range 1 + random.IntN(3) {
					number++
					blocks = append(blocks, blockOf(number, random.IntN(lanes)))
				}
				err := q.Push(t.Context(), epoch, blocks, nil)
				for _, b := range blocks {
					acknowledged[numberOf(b)] = err == nil
				}
				alive = err == nil
				continue
			}
			if round == rounds {
				alive = q.Stats(0).Blocks+q.Stats(1).Blocks > 0
			}
			d := random.IntN(destinations)
			if q.Stats(d).Blocks == 0 {
				continue
			}
			l, err := q.Next(t.Context(), d, Bound{Samples: 1 + random.IntN(4), Bytes: 1 << 20, Raw: 1 << 20})
			if err != nil {
				require.ErrorIs(t, err, errKilled)
				break
			}
			for _, b := range l.Blocks {
				n, lane := numberOf(b), b.Shard
				if freshFor == 0 {
					require.Less(t, last[d][lane], n, "order within a lane")
				}
				last[d][lane] = n
				delivered[d][n]++
				if delivered[d][n] > 1 {
					require.True(t, mayRepeat[n], "block %d arrived again at %d", n, d)
				}
			}
			if client.lives != 0 {
				l.Done(nil)
			}
			// The last operation of the client succeeded; later ones are lost.
			if alive = client.lives != 0 || round == rounds && alive; !alive {
				for _, b := range l.Blocks {
					mayRepeat[numberOf(b)] = true
				}
			}
		}
	}
	for n, ok := range acknowledged {
		if ok {
			for d := range delivered {
				require.Positive(t, delivered[d][n], "block %d at destination %d", n, d)
			}
		}
	}
	require.Greater(t, len(acknowledged), rounds)
	if upgrades {
		require.Nil(t, v.earlier)
		require.Greater(t, v.times, 5)
		require.Equal(t, []string{indexKey}, slices.Collect(maps.Keys(m.values)), "only the index is left")
		return
	}
	require.Len(t, m.values, kept, "only the index and the reserve are left")
}
