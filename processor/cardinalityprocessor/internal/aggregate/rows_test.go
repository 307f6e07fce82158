// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/racetest"
)

// TestRowsAreAsInAMap: with random operations, a shard has the same contents as a map, whatever row is guessed, also
// when many keys share few places, and when rows are reused or moved together.
func TestRowsAreAsInAMap(t *testing.T) {
	racetest.Sequential(t)
	moved := 0
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 56))
		s, twin := &newFeederShards(1)[0], map[uint64]uint64{}
		key := func() uint64 {
			k := random.Uint64N(3000) + 2
			if seed%3 == 0 { // all belong to the same few places
				return k
			}
			return k * 0x9e3779b97f4a7c15
		}
		for range 4000 {
			k := key()
			row := s.rows.Load().find(k)
			_, there := twin[k]
			require.Equal(t, there, row != noRow)
			switch grows := random.IntN(100) < 50+int(seed%4)*10; {
			case !there && grows:
				twin[k] = random.Uint64()
				row = s.insert(k, feeder{bits: twin[k]}, uint32(seed))
				require.True(t, s.rows.Load().is(row, k))
			case there && !grows:
				s.remove(row)
				delete(twin, k)
				require.False(t, s.rows.Load().is(row, k))
			}
			if random.IntN(400) == 0 {
				for _, k := range slices.Sorted(maps.Keys(twin)) {
					if random.IntN(5) > 0 {
						s.remove(s.rows.Load().find(k))
						delete(twin, k)
					}
				}
				used := s.used
				if s.shrink(); s.used < used {
					moved++
				}
			}
		}
		require.Equal(t, len(twin), s.live)
		for k, bits := range twin {
			row := s.knows(k, uint32(seed), random.Uint32N(2*s.used+2)) // whatever is guessed
			require.Equal(t, bits, s.rows.Load().feeder(row).bits)
			require.Equal(t, uint32(seed), s.rows.Load().row(row).seen.Load())
		}
	}
	require.Positive(t, moved)
}

// TestRowsFollowEachOther: series that arrived one after the other are found in consecutive rows.
func TestRowsFollowEachOther(t *testing.T) {
	s := &newFeederShards(1)[0]
	for k := range uint64(1000) {
		require.Equal(t, uint32(k), s.insert(k*0x9e3779b97f4a7c15+2, feeder{}, 1))
	}
	for row := range uint32(500) {
		s.remove(row + 200)
	}
	require.Equal(t, uint32(699), s.insert(7, feeder{}, 1), "a free row is taken again")
	s.shrink()
	require.Equal(t, uint32(1000), s.used, "half of it is used")
	for row := range uint32(300) {
		s.remove(row + 700)
	}
	s.shrink()
	require.Equal(t, uint32(201), s.used)
	for k := range uint64(200) {
		require.True(t, s.rows.Load().is(uint32(k), k*0x9e3779b97f4a7c15+2))
	}
}

// TestRowsAreFoundWhileTheyMove: existing rows are found while others are added, removed and moved together.
func TestRowsAreFoundWhileTheyMove(t *testing.T) {
	const stay, come = 100, 2000
	s := &newFeederShards(1)[0]
	key := func(i int) uint64 { return uint64(i)*0x9e3779b97f4a7c15 + 2 }
	for i := range stay {
		s.insert(key(i), feeder{bits: key(i)}, 0)
	}
	var asking sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		asking.Go(func() {
			row := uint32(0)
			for epoch := uint32(0); ; epoch++ {
				for i := range stay {
					row = s.knows(key(i), epoch/2, row+1)
					if row == noRow {
						t.Errorf("key %d is not found", i)
						return
					}
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for range 20 {
		s.mu.Lock()
		for i := range come {
			s.insert(key(stay+i), feeder{}, 0)
		}
		s.mu.Unlock()
		s.mu.Lock()
		for i := range come {
			s.remove(s.rows.Load().find(key(stay + i)))
		}
		s.shrink()
		s.mu.Unlock()
	}
	close(stop)
	asking.Wait()
}
