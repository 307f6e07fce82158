// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/internal/racetest"
)

func pushTo(t *testing.T, q *Queue, to, number int) {
	t.Helper()
	require.NoError(t, q.PushTo(t.Context(), 0, []block.Block{blockOf(number, 0)}, []int{to}, nil))
}

// TestPartsAreForOneDestination: the others get nothing of it, and it does not take their room.
func TestPartsAreForOneDestination(t *testing.T) {
	m := newMedium()
	for name, change := range map[string]func(*Config){"memory": nil, "disk": func(c *Config) { c.Storage = on(m) }} {
		t.Run(name, func(t *testing.T) {
			q, dropped := open(t, 3, 2, change)
			for n := range 6 {
				pushTo(t, q, n%3, n)
			}
			push(t, q, 0, blockOf(6, 0))
			require.Equal(t, []int{0, 3, 6}, contents(t, q, 0))
			require.Equal(t, []int{1, 4, 6}, contents(t, q, 1))
			require.Equal(t, []int{2, 5, 6}, contents(t, q, 2))
			require.Empty(t, dropped)
			require.NoError(t, q.Close(t.Context()))
		})
	}
	require.Equal(t, 1+reserves, m.count(), "nothing is left but the index and the reserve")
}

// TestPartsFindTheirDestination: after a restart or a reload each part is sent to its destination; and to all of them
// if that is gone.
func TestPartsFindTheirDestination(t *testing.T) {
	for name, m := range map[string]*medium{"memory": nil, "disk": newMedium()} {
		t.Run(name, func(t *testing.T) {
			var legacy []*Legacy
			again := func(destinations ...string) *Queue {
				q, _ := open(t, 0, 10, func(c *Config) {
					c.Destinations, c.Legacy = destinations, legacy
					if m != nil {
						c.Storage = on(m)
					}
				})
				return q
			}
			end := func(q *Queue) {
				q.Stop()
				legacy = nil
				if l := q.Leave(); l != nil {
					legacy = []*Legacy{l}
				}
				require.NoError(t, q.Close(t.Context()))
			}
			q := again("a", "b", "c")
			for n := range 6 {
				pushTo(t, q, n%3, n)
			}
			end(q)
			q = again("c", "a", "b")
			next(t, q, 0, 2).Done(nil) // to c, which gets this one
			end(q)
			q = again("b", "d", "a")
			require.Equal(t, []int{1, 4, 5}, contents(t, q, 0))
			require.Equal(t, []int{5}, contents(t, q, 1), "a new one gets what nobody is there for, and nothing else that is old")
			next(t, q, 2, 0).Done(nil)
			end(q)
			q = again("a", "b")
			require.Equal(t, []int{3, 5}, contents(t, q, 0))
			require.Empty(t, contents(t, q, 1))
			end(q)
			if m != nil {
				require.Equal(t, 1+reserves, m.count(), "nothing is left but the index and the reserve")
			}
			require.Empty(t, legacy)
		})
	}
}

// TestPartsSurviveKills: all acknowledged data arrives at its destination, in order, and nowhere else.
func TestPartsSurviveKills(t *testing.T) {
	racetest.Sequential(t)
	const rounds = 200
	random := rand.New(rand.NewPCG(3, 4))
	m := newMedium()
	names := []string{"a", "b", "c"}
	number, missing := 0, map[int]int{} // acknowledged blocks, and their destinations
	last := map[string]int{}
	for round := range rounds + 1 {
		client := on(m)
		if round < rounds {
			client.lives = 2 + random.IntN(60)
		}
		q, err := Open(t.Context(), Config{
			Destinations: names, Policy: Policy{Size: 1 << 30}, Storage: client,
			Dropped:       func(_ int, reason string, _ block.Header) { t.Errorf("dropped for %s", reason) },
			StorageFailed: func(error) {},
		})
		if err != nil {
			require.ErrorIs(t, err, errKilled)
			continue
		}
		clear(last) // one may be sent again
		epoch := q.NextEpoch()
		for alive := true; alive; {
			if round < rounds && random.IntN(2) == 0 {
				number++
				to := random.IntN(len(names))
				err := q.PushTo(t.Context(), epoch, []block.Block{blockOf(number*len(names)+to, 0)}, []int{to}, nil)
				if alive = err == nil; alive {
					missing[number] = to
				}
				continue
			}
			if round == rounds {
				alive = q.Stats(0).Blocks+q.Stats(1).Blocks+q.Stats(2).Blocks > 0
			}
			d := random.IntN(len(names))
			if q.Stats(d).Blocks == 0 {
				continue
			}
			l, err := q.Next(t.Context(), d, Bound{})
			if err != nil {
				break
			}
			got := numberOf(l.Blocks[0])
			require.Equal(t, d, got%len(names), "it is where it was to go")
			require.Less(t, last[names[d]], got)
			last[names[d]] = got
			delete(missing, got/len(names))
			l.Done(nil)
			alive = alive && client.lives != 0
		}
	}
	require.Greater(t, number, rounds)
	require.Empty(t, missing)
}
