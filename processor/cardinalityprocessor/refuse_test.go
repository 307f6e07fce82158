// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	rand "math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/series"
)

func TestGroupIndexAgreesWithAMap(t *testing.T) {
	racetest.Sequential(t)
	random := rand.New(rand.NewPCG(1, 2))
	var index series.GroupIndex
	all := map[uint64]*series.Group{}
	var keys []uint64
	for round := range 20_000 {
		grows := round/4000%2 == 0
		switch n := random.IntN(10); {
		case n < 6 == grows || len(keys) == 0:
			g := &series.Group{Key: random.Uint64() >> (random.IntN(2) * 40)} // some have the same prefix
			if all[g.Key] == nil {
				g.Count.Store(int64(round))
				all[g.Key] = g
				keys = append(keys, g.Key)
				index.Put(g)
			}
		default:
			i := random.IntN(len(keys))
			index.Remove(all[keys[i]])
			delete(all, keys[i])
			keys[i] = keys[len(keys)-1]
			keys = keys[:len(keys)-1]
		}
		key := random.Uint64()
		if len(keys) > 0 && round%2 == 0 {
			key = keys[random.IntN(len(keys))]
		}
		want := 0
		if g := all[key]; g != nil {
			want = int(g.Count.Load())
		}
		require.Equal(t, want, index.Used(key))
	}
	require.Equal(t, len(all), index.Live)
	require.LessOrEqual(t, len(*index.Slots.Load()), max(series.MinGroupSlots, 8*len(all)))
}

// TestWhoHasAPlaceIsNeverRefused, while tables grow, shards are separated, groups come and go, and others are refused
// without a lock.
func TestWhoHasAPlaceIsNeverRefused(t *testing.T) {
	const mine = 3000
	r := newRig(t, func(c *Config) {
		c.Rules = []RuleConfig{{Name: "each", GroupBy: []string{"attribute:who"}, MaxSeries: mine}}
	})
	own := func(i int) point { return point{name: "m", attrs: attrs{"who": "me", "i": int64(i)}} }
	var done sync.WaitGroup
	var stop atomic.Bool
	for other := range 2 {
		done.Go(func() {
			for i := 0; !stop.Load(); i++ {
				_, _ = r.process(t.Context(), metricsOf(
					point{name: "m", attrs: attrs{"who": "other" + strconv.Itoa(other), "i": int64(i)}},
					point{name: "m", attrs: attrs{"who": "me", "i": "too many" + strconv.Itoa(i)}},
				))
			}
		})
	}
	admitted := map[int]bool{}
	for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end) && len(admitted) < mine; {
		for i := range mine {
			md, err := r.process(t.Context(), metricsOf(own(i)))
			if passed := err == nil && md.DataPointCount() == 1; passed {
				admitted[i] = true
			} else {
				require.False(t, admitted[i], "series %d lost its place", i)
			}
		}
	}
	stop.Store(true)
	done.Wait()
	requireWithinLimits(t, r)
}
