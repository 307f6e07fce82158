// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/internal/racetest"
)

// kept is how many values stay when there are no blocks: the index and the reserve.
const kept = 1 + reserves

func stored(client storage.Client) func(*Config) { return func(c *Config) { c.Storage = client } }

func on(m *medium) *memoryClient { return &memoryClient{medium: m, lives: -1} }

func TestStoredBlocksSurvive(t *testing.T) {
	m := newMedium()
	q, _ := open(t, 2, 10, stored(on(m)))
	push(t, q, 7, blockOf(1, 0), blockOf(2, 1))
	push(t, q, 8, blockOf(3, 0))
	next(t, q, 0, 1).Done(nil)
	held := next(t, q, 1, 1)
	held.Release()
	require.NoError(t, q.Close(t.Context()))

	q, dropped := open(t, 2, 10, stored(on(m)))
	require.Equal(t, uint32(9), q.NextEpoch())
	push(t, q, 9, blockOf(4, 0))
	require.Equal(t, []int{2, 3, 4}, contents(t, q, 0))
	require.Equal(t, []int{1, 2, 3, 4}, contents(t, q, 1))
	require.Empty(t, dropped)
	require.Len(t, m.values, kept, "only the index and the reserve are left")
}

func TestOrderOfDestinationsMayChange(t *testing.T) {
	m := newMedium()
	q, _ := open(t, 2, 10, stored(on(m)))
	push(t, q, 0, blockOf(1, 0))
	next(t, q, 0, 1).Done(nil)

	q, _ = open(t, 3, 10, func(c *Config) { c.Storage, c.Destinations = on(m), []string{"b", "c", "a"} })
	require.Equal(t, []int{1}, contents(t, q, 0))
	require.Equal(t, []int{1}, contents(t, q, 1), "a new destination gets what is there")
	require.Empty(t, contents(t, q, 2))
	require.Len(t, m.values, kept)
}

func TestDestinationThatIsGoneLeavesNothingBehind(t *testing.T) {
	m := newMedium()
	q, _ := open(t, 2, 10, stored(on(m)))
	push(t, q, 0, blockOf(1, 0))
	next(t, q, 0, 1).Done(nil)
	open(t, 1, 10, stored(on(m)))
	require.Len(t, m.values, kept)
}

// A queue on disk of many gigabytes can be a million blocks.
func TestStoredBlocksTakeLittleMemory(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(entry{}), uintptr(96))
}

func TestStoredBodiesLeaveMemory(t *testing.T) {
	q, _ := open(t, 1, 1<<20, stored(on(newMedium())))
	big := make([]byte, 1<<20)
	for range 2 * maxRetained / len(big) {
		push(t, q, 0, block.New(block.Header{Version: 2}, big))
	}
	kept := 0
	for _, e := range q.destinations[0].fresh.groups[0].lanes[0].entries {
		if e.block != nil {
			kept += len(big)
		}
	}
	require.Equal(t, maxRetained, kept)
	for q.Stats(0).Blocks > 0 {
		l, err := q.Next(t.Context(), 0, Bound{})
		require.NoError(t, err)
		require.Len(t, l.Blocks[0].Body(), len(big))
		l.Done(nil)
	}
	require.Zero(t, q.retained)
}

func TestCorruptBlocksAreSkipped(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"flipped":   func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"preamble":  func(b []byte) []byte { b[3] ^= 1; return b },
		"truncated": func(b []byte) []byte { return b[:len(b)-1] },
		"empty":     func([]byte) []byte { return []byte{} },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMedium()
			q, _ := open(t, 1, 10, stored(on(m)))
			push(t, q, 0, blockOf(1, 0), blockOf(2, 0), blockOf(3, 0))
			k := key(BlockPrefix, 1)
			m.values[k] = damage(m.values[k])

			q, dropped := open(t, 1, 10, stored(on(m)))
			require.Equal(t, []int{1, 3}, contents(t, q, 0))
			require.Equal(t, drops{ReasonCorrupt: 1}, dropped)
			require.Len(t, m.values, kept)
		})
	}
}

// What was lost with a corrupt block is counted for each destination that waits for it, as far as its header can be read.
func TestCorruptBlocksTellWhatIsLost(t *testing.T) {
	for name, test := range map[string]struct {
		samples int
		damage  func([]byte) []byte
	}{
		"body":      {1, func(b []byte) []byte { b[len(b)/2] ^= 1; return b }},
		"preamble":  {1, func(b []byte) []byte { b[3] ^= 1; return b }},
		"truncated": {1, func(b []byte) []byte { return b[:len(b)/2] }},
		"version":   {0, func(b []byte) []byte { b[preambleSize+4] = 0; return b }},
		"magic":     {0, func(b []byte) []byte { b[preambleSize] ^= 1; return b }},
		"short":     {0, func(b []byte) []byte { return b[:preambleSize-1] }},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMedium()
			q, _ := open(t, 3, 10, stored(on(m)))
			push(t, q, 0, blockOf(1, 0))
			next(t, q, 1, 1).Done(nil)
			k := key(BlockPrefix, 0)
			m.values[k] = test.damage(m.values[k])

			lost := map[int]int{}
			open(t, 3, 10, func(c *Config) {
				c.Storage = on(m)
				c.Dropped = func(destination int, reason string, h block.Header) {
					require.Equal(t, ReasonCorrupt, reason)
					lost[destination] = h.Samples
				}
			})
			require.Equal(t, map[int]int{0: test.samples, 2: test.samples}, lost)
			require.Len(t, m.values, kept, "only the index and the reserve are left")
		})
	}
}

func TestBlockThatIsDamagedInItsTurnIsSkipped(t *testing.T) {
	m := newMedium()
	q, _ := open(t, 1, 10, stored(on(m)))
	push(t, q, 0, blockOf(1, 0), blockOf(2, 0))
	q, dropped := open(t, 1, 10, stored(on(m)))
	delete(m.values, key(BlockPrefix, 0))
	require.Equal(t, 2, numberOf(next(t, q, 0, 2).Blocks[0]))
	require.Equal(t, drops{ReasonCorrupt: 1}, dropped)
}

func TestDamageAmongBlocksThatGoTogetherCostsNoOther(t *testing.T) {
	m := newMedium()
	q, _ := open(t, 1, 10, stored(on(m)))
	push(t, q, 0, blockOf(1, 0), blockOf(2, 0), blockOf(3, 0), blockOf(4, 0))
	q, dropped := open(t, 1, 10, stored(on(m)))
	delete(m.values, key(BlockPrefix, 1))
	together(t, q, anyNumber, 1).Done(nil)
	together(t, q, anyNumber, 3, 4).Done(nil)
	require.Equal(t, drops{ReasonCorrupt: 1}, dropped)
	require.Len(t, m.values, kept, "only the index and the reserve are left")
}

func TestLostIndexIsFoundAgain(t *testing.T) {
	m := newMedium()
	q, _ := open(t, 1, 10, stored(on(m)))
	push(t, q, 0, blockOf(1, 0), blockOf(2, 0), blockOf(3, 0))
	next(t, q, 0, 1).Done(nil)
	m.values[indexKey] = []byte("nonsense")

	q, dropped := open(t, 1, 10, stored(walkingClient{on(m)}))
	require.Equal(t, []int{2, 3}, contents(t, q, 0))
	require.Equal(t, drops{ReasonCorrupt: 1}, dropped)
}

func TestLostIndexWithoutAWalkBeginsAnew(t *testing.T) {
	m := newMedium()
	m.values[indexKey] = indexOf(9, 3)
	q, dropped := open(t, 1, 10, stored(on(m)))
	push(t, q, 0, blockOf(1, 0))
	require.Equal(t, []int{1}, contents(t, q, 0))
	require.Equal(t, drops{ReasonCorrupt: 1}, dropped)
}

func TestUnreadableStorageKeepsTheBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMedium()
		q, _ := open(t, 1, 10, stored(on(m)))
		push(t, q, 0, blockOf(1, 0))
		client := on(m)
		q, dropped := open(t, 1, 10, stored(client))
		client.failed = true
		_, err := q.Next(t.Context(), 0, Bound{})
		require.ErrorIs(t, err, errKilled)
		client.failed = false
		require.Equal(t, []int{1}, contents(t, q, 0))
		require.Empty(t, dropped)
	})
}

func TestFullStorage(t *testing.T) {
	const room = 3*(bodySize+80) + indexSize + reserves*3<<10
	t.Run("tells whoever brings data", func(t *testing.T) {
		m := newMedium()
		m.limit = room + 5*(bodySize+80)
		q, dropped := open(t, 1, 10, stored(on(m)))
		held := 0
		for q.Push(t.Context(), 0, []block.Block{blockOf(2*held, 0), blockOf(2*held+1, 0)}, nil) == nil {
			held++
		}
		require.GreaterOrEqual(t, held, 4)
		next(t, q, 0, 0).Done(nil)
		require.ErrorIs(t, q.Push(t.Context(), 0, []block.Block{blockOf(100, 0)}, nil), storage.ErrStorageFull, "some room is left free")
		for n := 1; n <= held; n++ {
			next(t, q, 0, n).Done(nil)
		}
		push(t, q, 0, blockOf(101, 0))
		var want []int
		for n := held + 1; n < 2*held; n++ {
			want = append(want, n)
		}
		require.Equal(t, append(want, 101), contents(t, q, 0), "of a failed push nothing is there")
		require.Empty(t, dropped)
	})
	t.Run("drops the oldest", func(t *testing.T) {
		m := newMedium()
		m.limit = room
		q, dropped := open(t, 1, 10, func(c *Config) { c.Storage, c.OnFull = on(m), DropOldest })
		for n := range 9 {
			push(t, q, 0, blockOf(n, 0))
		}
		require.Equal(t, []int{6, 7, 8}, contents(t, q, 0))
		require.Equal(t, drops{ReasonFull: 6}, dropped)
	})
}

// TestKilledAtAnyPoint pushes and sends, is killed after a random number of storage operations, and goes on with what is
// stored. What was acknowledged must arrive at every destination, in order, and twice only if it was out when the
// process was killed.
func TestKilledAtAnyPoint(t *testing.T) { killedAtAnyPoint(t, 0, false) }

// TestKilledAtAnyPointWhileFreshGoesFirst is the same where much is soon late, so that there is no order but of those.
func TestKilledAtAnyPointWhileFreshGoesFirst(t *testing.T) {
	killedAtAnyPoint(t, 20*time.Microsecond, false)
}

// TestKilledAtAnyPointOfATakeover is the same where again and again an earlier version stores elsewhere, and a later one takes that
// over.
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
		odds = 4 // so that a takeover comes to its end
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
			// The operation after which the client is dead still happened; what comes next is lost.
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

// heldClient is a storage whose deletions take until they are let through.
type heldClient struct {
	*memoryClient

	through chan struct{}
}

func (c *heldClient) Batch(ctx context.Context, ops ...*storage.Operation) error {
	if first := ops[0]; first.Type == storage.Delete || strings.HasPrefix(first.Key, donePrefix) {
		<-c.through
	}
	return c.memoryClient.Batch(ctx, ops...)
}

// TestALaneGoesOnWhenTheStorageWasTold: with as many senders as there are, the next request of a lane is not sent before the last one
// can no longer come again after a crash. Other lanes do not wait for that.
func TestALaneGoesOnWhenTheStorageWasTold(t *testing.T) {
	for destinations := 1; destinations <= 2; destinations++ { // with two, the storage is told that one of them is done
		t.Run(strconv.Itoa(destinations), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &heldClient{on(newMedium()), make(chan struct{})}
				q, _ := open(t, destinations, 10, stored(c))
				push(t, q, 0, blockOf(1, 0), blockOf(2, 0), blockOf(3, 1))
				first := next(t, q, 0, 1)
				go first.Done(nil)
				synctest.Wait()
				other := next(t, q, 0, 3)
				idle(t, q)
				require.Equal(t, 3, q.Stats(0).Blocks)
				c.through <- struct{}{}
				synctest.Wait()
				require.Equal(t, 2, q.Stats(0).Blocks)
				close(c.through)
				next(t, q, 0, 2).Done(nil)
				other.Done(nil)
			})
		})
	}
}

// TestDeletionsThatFailAreMadeUpFor: a storage that is full may not even be able to delete. When it can again what is
// finished goes, before anything is written, and what comes is taken.
func TestDeletionsThatFailAreMadeUpFor(t *testing.T) {
	for _, restart := range []bool{false, true} {
		m := newMedium()
		client := on(m)
		failures := 0
		change := func(c *Config) { c.Storage, c.StorageFailed = client, func(error) { failures++ } }
		q, dropped := open(t, 1, 100, change)
		for n := range 10 {
			push(t, q, 0, blockOf(n, 0))
		}
		client.setFull(true)
		for n := range 8 {
			next(t, q, 0, n).Done(nil)
		}
		require.Positive(t, failures)
		require.ErrorIs(t, q.Push(t.Context(), 0, []block.Block{blockOf(10, 0)}, nil), storage.ErrStorageFull)
		require.Len(t, m.values, kept+10)
		client.setFull(false)
		push(t, q, 0, blockOf(10, 0))
		require.Len(t, m.values, kept+3, "what was finished is gone")
		if restart {
			client = on(m)
			q, dropped = open(t, 1, 100, change)
		}
		require.Equal(t, []int{8, 9, 10}, contents(t, q, 0))
		require.Len(t, m.values, kept)
		require.Empty(t, dropped)
	}
}

// TestDeletionsThatFailAreTriedAgain without anything else happening.
func TestDeletionsThatFailAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMedium()
		client := on(m)
		q, _ := open(t, 1, 100, stored(client))
		push(t, q, 0, blockOf(1, 0), blockOf(2, 0))
		client.setFull(true)
		next(t, q, 0, 1).Done(nil)
		next(t, q, 0, 2).Done(nil)
		time.Sleep(time.Minute)
		require.Equal(t, kept+2, m.count())
		client.setFull(false)
		time.Sleep(2 * forgetPause)
		require.Equal(t, kept, m.count())
		require.NoError(t, q.Close(t.Context()))
	})
}

// TestOldestAreNotDroppedInVain: where dropping makes no room, as the storage cannot delete, it stops.
func TestOldestAreNotDroppedInVain(t *testing.T) {
	client := on(newMedium())
	q, dropped := open(t, 1, 100, func(c *Config) { c.Storage, c.OnFull = client, DropOldest })
	for n := range 50 {
		push(t, q, 0, blockOf(n, 0))
	}
	client.setFull(true)
	require.ErrorIs(t, q.Push(t.Context(), 0, []block.Block{blockOf(50, 0)}, nil), storage.ErrStorageFull)
	require.LessOrEqual(t, dropped[ReasonFull], 2)
	client.setFull(false)
	push(t, q, 0, blockOf(51, 0))
	require.LessOrEqual(t, dropped[ReasonFull], 2+50/4, "a part is left free")
}

// TestLeftoversAreSwept: what a process that ended could not delete is deleted by the next.
func TestLeftoversAreSwept(t *testing.T) {
	m := newMedium()
	q, _ := open(t, 1, 100, stored(on(m)))
	for n := range 20 {
		push(t, q, 0, blockOf(n, 0))
	}
	dead := maps.Clone(m.values)
	for range 19 {
		next(t, q, 0, 20-q.Stats(0).Blocks).Done(nil)
	}
	push(t, q, 0, blockOf(20, 0)) // the index begins with the last of them
	for k, v := range dead {
		if _, ok := m.values[k]; !ok {
			m.values[k] = v
		}
	}
	m.values[key(donePrefix, 3)] = []byte("x")
	m.values[key(donePrefix, 5000)] = []byte("x")
	require.Greater(t, len(m.values), kept+18)
	q, dropped := open(t, 1, 100, stored(walkingClient{on(m)}))
	require.Len(t, m.values, kept+2)
	require.Equal(t, []int{19, 20}, contents(t, q, 0))
	require.Empty(t, dropped)
}
