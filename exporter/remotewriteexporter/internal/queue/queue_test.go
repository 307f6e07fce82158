// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/internal/promwrite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const bodySize = 100

// blockOf returns a block that is identified by its number.
func blockOf(number, shard int) block.Block {
	body := binary.LittleEndian.AppendUint64(make([]byte, 0, bodySize), uint64(number))
	return block.New(block.Header{Version: promwrite.V2, Samples: 1, RawSize: 2 * bodySize, Shard: shard}, body[:bodySize])
}

func numberOf(b block.Block) int { return int(binary.LittleEndian.Uint64(b.Body())) }

// drops counts what a queue drops.
type drops map[string]int

func (d drops) count(_ int, reason string, _ block.Header) { d[reason]++ }

// open makes a queue of size blocks for destinations a, b and so on.
func open(t *testing.T, destinations, size int, change func(*Config)) (*Queue, drops) {
	t.Helper()
	dropped := drops{}
	cfg := Config{
		Destinations:  []string{"a", "b", "c"}[:destinations],
		Policy:        Policy{Size: int64(size * (bodySize + entryOverhead))},
		Dropped:       dropped.count,
		StorageFailed: func(error) {},
		Lost:          func(blocks int) { dropped["lost"] += blocks },
	}
	if change != nil {
		change(&cfg)
	}
	q, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	return q, dropped
}

func push(t *testing.T, q *Queue, epoch uint32, blocks ...block.Block) {
	t.Helper()
	require.NoError(t, q.Push(t.Context(), epoch, blocks, nil))
}

// next leases the next block and requires that it has the given number.
func next(t *testing.T, q *Queue, destination, number int) *Lease {
	t.Helper()
	l, err := q.Next(t.Context(), destination, Bound{})
	require.NoError(t, err)
	require.Equal(t, number, numberOf(l.Blocks[0]))
	return l
}

// contents drains a destination's queue and returns the numbers of its blocks.
func contents(t *testing.T, q *Queue, destination int) []int {
	t.Helper()
	var numbers []int
	for q.Stats(destination).Blocks > 0 {
		l, err := q.Next(t.Context(), destination, Bound{})
		require.NoError(t, err)
		numbers = append(numbers, numberOf(l.Blocks[0]))
		l.Done(nil)
	}
	return numbers
}

// idle requires that no block can be leased for the first destination at the moment.
func idle(t *testing.T, q *Queue) {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	l, _ := q.destinations[0].lease(Bound{})
	require.Nil(t, l)
}

// together leases the next blocks up to a bound and requires their numbers.
func together(t *testing.T, q *Queue, most Bound, numbers ...int) *Lease {
	t.Helper()
	l, err := q.Next(t.Context(), 0, most)
	require.NoError(t, err)
	var got []int
	for _, b := range l.Blocks {
		got = append(got, numberOf(b))
	}
	require.Equal(t, numbers, got)
	require.Len(t, l.Deadlines, len(numbers))
	return l
}

var anyNumber = Bound{Samples: 1000, Bytes: 1 << 20, Raw: 1 << 20}

func TestBlocksOfALaneGoTogether(t *testing.T) {
	for name, most := range map[string]Bound{
		"samples": {Samples: 3, Bytes: 1 << 20, Raw: 1 << 20},
		"bytes":   {Samples: 1000, Bytes: 4*bodySize - 1, Raw: 1 << 20},
		"raw":     {Samples: 1000, Bytes: 1 << 20, Raw: 8*bodySize - 1},
	} {
		t.Run(name, func(t *testing.T) {
			q, _ := open(t, 1, 10, nil)
			push(t, q, 0, blockOf(1, 0), blockOf(2, 1), blockOf(3, 0), blockOf(4, 0), blockOf(5, 0))
			push(t, q, 1, blockOf(6, 0))
			first, other := together(t, q, most, 1, 3, 4), together(t, q, most, 2)
			idle(t, q)
			s := q.Stats(0)
			require.Equal(t, [3]int{6, 2, 2}, [3]int{s.Blocks, s.Leased, s.Waiting})
			first.Release()
			first = together(t, q, most, 1, 3, 4)
			other.Done(nil)
			first.Done(nil)
			together(t, q, most, 5).Done(nil)
			together(t, q, most, 6).Done(nil)
			require.Equal(t, Stats{Capacity: s.Capacity}, q.Stats(0))
		})
	}
}

func TestWhatCannotGoTogetherWaits(t *testing.T) {
	one := blockOf(2, 0)
	one.Version = promwrite.V1
	q, _ := open(t, 1, 10, nil)
	push(t, q, 0, blockOf(1, 0), one, blockOf(3, 0))
	for n := range 3 {
		l := together(t, q, anyNumber, n+1)
		idle(t, q)
		l.Done(nil)
	}
}

func TestBlocksBehindALeaseOfSeveralCanBeDropped(t *testing.T) {
	q, dropped := open(t, 1, 4, func(c *Config) { c.OnFull = DropOldest })
	push(t, q, 0, blockOf(1, 0), blockOf(2, 0), blockOf(3, 0))
	l := together(t, q, Bound{Samples: 2, Bytes: 1 << 20, Raw: 1 << 20}, 1, 2)
	push(t, q, 0, blockOf(4, 0), blockOf(5, 0))
	require.Equal(t, drops{ReasonFull: 1}, dropped)
	l.Release()
	together(t, q, anyNumber, 1, 2, 4, 5).Done(nil)
}

func TestLaneHasOneBlockOut(t *testing.T) {
	q, _ := open(t, 1, 10, nil)
	push(t, q, 0, blockOf(1, 0), blockOf(2, 0), blockOf(3, 1))
	first, other := next(t, q, 0, 1), next(t, q, 0, 3)
	idle(t, q)
	other.Done(nil)
	idle(t, q)
	first.Release()
	next(t, q, 0, 1).Done(nil)
	next(t, q, 0, 2).Done(nil)
	require.Zero(t, q.Stats(0).Bytes)
}

func TestEpochWaitsForTheOneBefore(t *testing.T) {
	q, _ := open(t, 1, 10, nil)
	push(t, q, 4, blockOf(1, 0), blockOf(2, 1))
	push(t, q, 5, blockOf(3, 0), blockOf(4, 2))
	one, two := next(t, q, 0, 1), next(t, q, 0, 2)
	one.Done(nil)
	idle(t, q)
	require.Equal(t, uint32(6), q.NextEpoch())
	two.Done(nil)
	three := next(t, q, 0, 3)
	next(t, q, 0, 4).Done(nil)
	three.Done(nil)
}

func TestDestinationsGoTheirOwnWays(t *testing.T) {
	q, _ := open(t, 2, 10, nil)
	push(t, q, 0, blockOf(1, 0), blockOf(2, 0))
	require.Equal(t, []int{1, 2}, contents(t, q, 1))
	require.Equal(t, 2, q.Stats(0).Blocks)
	require.Equal(t, []int{1, 2}, contents(t, q, 0))
}

func TestOldestMakesRoom(t *testing.T) {
	q, dropped := open(t, 1, 3, func(c *Config) { c.OnFull = DropOldest })
	push(t, q, 0, blockOf(1, 0), blockOf(2, 1), blockOf(3, 0))
	held := next(t, q, 0, 1)
	push(t, q, 1, blockOf(4, 0), blockOf(5, 0))
	require.Equal(t, drops{ReasonFull: 2}, dropped)
	held.Done(nil)
	require.Equal(t, []int{4, 5}, contents(t, q, 0))
}

func TestNewestIsLeftOut(t *testing.T) {
	q, dropped := open(t, 2, 2, func(c *Config) { c.OnFull = DropNewest })
	push(t, q, 0, blockOf(1, 0), blockOf(2, 0))
	require.Equal(t, []int{1, 2}, contents(t, q, 0))
	require.False(t, q.Refuses(nobody), "the first destination has room")
	push(t, q, 0, blockOf(3, 0), blockOf(4, 0))
	require.Equal(t, drops{ReasonFull: 2}, dropped)
	require.True(t, q.Refuses(nobody))
	require.Equal(t, []int{3, 4}, contents(t, q, 0))
	require.Equal(t, []int{1, 2}, contents(t, q, 1))
}

func TestBlockLargerThanTheQueueIsTaken(t *testing.T) {
	q, dropped := open(t, 1, 0, func(c *Config) { c.OnFull = DropOldest })
	push(t, q, 0, blockOf(1, 0))
	require.Empty(t, dropped)
	require.Equal(t, []int{1}, contents(t, q, 0))
}

func TestWhoBringsDataWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := open(t, 2, 1, nil)
		require.False(t, q.Blocks(nobody))
		require.NoError(t, q.WaitRoom(t.Context(), nobody))
		push(t, q, 0, blockOf(1, 0))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.True(t, q.Blocks(nobody))
		require.ErrorIs(t, q.WaitRoom(ctx, nobody), context.DeadlineExceeded)

		room := make(chan error, 1)
		go func() { room <- q.WaitRoom(t.Context(), nobody) }()
		next(t, q, 0, 1).Done(nil)
		synctest.Wait()
		require.Empty(t, room, "the other destination is still full")
		next(t, q, 1, 1).Done(nil)
		require.NoError(t, <-room)
	})
}

func TestOldBlocksAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, dropped := open(t, 1, 10, func(c *Config) { c.MaxAge = time.Minute })
		push(t, q, 0, blockOf(1, 0), blockOf(2, 0))
		time.Sleep(time.Minute)
		push(t, q, 0, blockOf(3, 0))
		l := next(t, q, 0, 3)
		require.Equal(t, time.Now().Add(time.Minute), l.Deadlines[0])
		require.Equal(t, drops{ReasonAge: 2}, dropped)
		l.Done(nil)
	})
}

func TestNextEndsWithStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := open(t, 1, 10, nil)
		ended := make(chan error, 1)
		go func() {
			_, err := q.Next(t.Context(), 0, Bound{})
			ended <- err
		}()
		synctest.Wait()
		q.Stop()
		require.ErrorIs(t, <-ended, ErrClosed)
	})
}

func TestDrainWaitsUntilNothingIsQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := open(t, 2, 10, nil)
		push(t, q, 0, blockOf(1, 0))
		drained := make(chan struct{})
		go func() { q.Drain(t.Context()); close(drained) }()
		next(t, q, 0, 1).Done(nil)
		synctest.Wait()
		select {
		case <-drained:
			t.Fatal("a block is left")
		default:
		}
		next(t, q, 1, 1).Done(nil)
		<-drained
	})
}

func TestCloseDropsWhatIsInMemory(t *testing.T) {
	q, dropped := open(t, 2, 10, nil)
	push(t, q, 0, blockOf(1, 0), blockOf(2, 1))
	require.NoError(t, q.Close(t.Context()))
	require.NoError(t, q.Close(t.Context()))
	require.Equal(t, drops{ReasonShutdown: 4}, dropped)
	require.ErrorIs(t, q.Push(t.Context(), 0, []block.Block{blockOf(3, 0)}, nil), ErrClosed)
	require.ErrorIs(t, q.WaitRoom(t.Context(), nobody), ErrClosed)
}

func TestStatsTellAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := open(t, 1, 10, nil)
		require.True(t, q.Stats(0).Oldest.IsZero())
		push(t, q, 0, blockOf(1, 1))
		began := time.Now()
		time.Sleep(time.Second)
		push(t, q, 0, blockOf(2, 0))
		s := q.Stats(0)
		require.Equal(t, began, s.Oldest)
		require.Equal(t, 2, s.Blocks)
		require.Equal(t, int64(2*(bodySize+entryOverhead)), s.Bytes)
	})
}

// nobody is the tenant of queues without tenants.
var nobody = []string{""}
