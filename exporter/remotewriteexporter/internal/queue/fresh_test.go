// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func freshFirst(c *Config) { c.FreshFor = time.Minute }

// TestFreshBlocksGoFirst: after an outage new blocks do not wait for all the old ones, whatever their epochs are; new
// and old ones are each sent in order.
func TestFreshBlocksGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, dropped := open(t, 1, 100, freshFirst)
		push(t, q, 0, blockOf(1, 0), blockOf(2, 1))
		tried := next(t, q, 0, 1) // all the time
		push(t, q, 0, blockOf(3, 0))
		time.Sleep(10 * time.Minute)
		push(t, q, 1, blockOf(4, 0))
		time.Sleep(10 * time.Minute)
		push(t, q, 1, blockOf(5, 1), blockOf(6, 1))
		push(t, q, 2, blockOf(7, 0))
		late := next(t, q, 0, 2) // in progress, so later epochs wait
		tried.Done(nil)
		require.Equal(t, 6, q.Stats(0).Blocks)
		first := next(t, q, 0, 5)
		other := next(t, q, 0, 3)
		first.Done(nil)
		next(t, q, 0, 6).Done(nil)
		next(t, q, 0, 7).Done(nil)
		idle(t, q)
		other.Release() // it was not delivered
		push(t, q, 2, blockOf(8, 3))
		next(t, q, 0, 8).Done(nil)
		next(t, q, 0, 3).Done(nil)
		idle(t, q)
		late.Done(nil)
		require.Equal(t, []int{4}, contents(t, q, 0))
		require.Zero(t, q.Stats(0).Bytes)
		require.Empty(t, dropped)
	})
}

// TestWhatIsLateMakesRoom: the oldest blocks are dropped first, even if they are not the next to be sent.
func TestWhatIsLateMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, dropped := open(t, 1, 4, func(c *Config) {
			freshFirst(c)
			c.OnFull = DropOldest
		})
		push(t, q, 0, blockOf(1, 0), blockOf(2, 1), blockOf(3, 0))
		time.Sleep(2 * time.Minute)
		push(t, q, 1, blockOf(4, 0))
		next(t, q, 0, 4).Done(nil)
		push(t, q, 1, blockOf(5, 0), blockOf(6, 1), blockOf(7, 2))
		require.Equal(t, []int{5, 6, 7, 3}, contents(t, q, 0))
		require.Equal(t, drops{ReasonFull: 2}, dropped)
	})
}

// TestReturnedBlocksFollow: a block that is returned late has its place among the late ones.
func TestReturnedBlocksFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := open(t, 1, 100, freshFirst)
		push(t, q, 0, blockOf(1, 0), blockOf(2, 0), blockOf(3, 0))
		out := next(t, q, 0, 1)
		time.Sleep(2 * time.Minute)
		late := next(t, q, 0, 2)
		out.Release()
		idle(t, q)
		late.Release()
		out = next(t, q, 0, 1)
		push(t, q, 0, blockOf(4, 0))
		require.Equal(t, 4, numberOf(next(t, q, 0, 4).Blocks[0]))
		out.Release()
		require.Equal(t, 1, numberOf(next(t, q, 0, 1).Blocks[0]))
	})
	synctest.Test(t, func(t *testing.T) {
		q, _ := open(t, 1, 100, freshFirst)
		push(t, q, 0, blockOf(1, 0), blockOf(2, 0), blockOf(3, 0))
		out := next(t, q, 0, 1)
		time.Sleep(2 * time.Minute)
		late := next(t, q, 0, 2)
		out.Release()
		idle(t, q) // the first one waits for the one in progress
		late.Done(nil)
		require.Equal(t, []int{1, 3}, contents(t, q, 0))
	})
}

// TestEachKeepsItsOrder runs random operations: every block is sent once, and in each lane fresh blocks and late blocks
// are each sent in order. No late block is sent while a fresh one can be.
func TestEachKeepsItsOrder(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 5))
			q, dropped := open(t, 1, 10_000, freshFirst)
			const lanes = 3
			pushed, epoch := 0, uint32(0)
			var born []time.Time
			var last [2][lanes]int
			out := map[int]*Lease{} // by lane
			sent := map[int]bool{}
			finish := func(lane int) {
				if l := out[lane]; l != nil {
					l.Done(nil)
					delete(out, lane)
				}
			}
			for step := 0; step < 400 || len(sent) < pushed; step++ {
				switch random.IntN(5) {
				case 0, 1:
					if step < 400 {
						push(t, q, epoch, blockOf(pushed, random.IntN(lanes)))
						born = append(born, time.Now())
						pushed++
					}
				case 2:
					time.Sleep(time.Duration(random.IntN(40)) * time.Second)
					if random.IntN(4) == 0 {
						epoch++
					}
				case 3:
					finish(random.IntN(lanes))
				case 4:
					if len(out) > 0 { // one at a time: otherwise several are possible
						finish(0)
						finish(1)
						finish(2)
					}
					if q.Stats(0).Blocks == 0 {
						continue
					}
					l, err := q.Next(t.Context(), 0, Bound{})
					require.NoError(t, err)
					n, lane := numberOf(l.Blocks[0]), l.Blocks[0].Shard
					late := 0
					if time.Since(born[n]) > time.Minute {
						late = 1
						for i, at := range born {
							require.True(t, sent[i] || time.Since(at) > time.Minute, "%d is fresh, and %d was sent", i, n)
						}
					}
					require.LessOrEqual(t, last[late][lane], n)
					last[late][lane] = n
					require.False(t, sent[n])
					sent[n] = true
					out[lane] = l
				}
			}
			require.Empty(t, dropped)
		})
	}
}

// TestWhatComesBackLateIsThereAfterACrash, also behind blocks in progress. The index must not begin with those.
func TestWhatComesBackLateIsThereAfterACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMedium()
		both := func(c *Config) {
			freshFirst(c)
			c.Storage = on(m)
		}
		q, _ := open(t, 1, 100, both)
		push(t, q, 0, blockOf(1, 0), blockOf(2, 0), blockOf(3, 0))
		out := next(t, q, 0, 1)
		time.Sleep(2 * time.Minute)
		late := next(t, q, 0, 2)
		out.Release()
		idle(t, q) // the first one waits for the one in progress
		push(t, q, 0, blockOf(4, 1))

		after, dropped := open(t, 1, 100, both)
		require.ElementsMatch(t, []int{1, 2, 3, 4}, contents(t, after, 0))
		require.Empty(t, dropped)
		late.Release()
	})
}
