// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func (t *table) add(fp uint64, set, epoch uint32) {
	now := momentIn(epoch, 0, 1)
	sh := t.lock(fp)
	defer sh.mu.Unlock()
	if id, _ := sh.touch(fp, now); id == 0 {
		sh.insert(fp, set, now)
	}
}

func (t *table) expire(epoch, keep uint32) (gone []uint32) {
	for i := range t.shards {
		gone, _ = t.shards[i].expire(epoch, keep, 0, gone)
	}
	return gone
}

func (t *table) len() int {
	n := 0
	for i := range t.shards {
		t.shards[i].each(func(uint64, uint32) { n++ })
	}
	return n
}

// separated is how many shards have entries of their own.
func (t *table) separated() (n int) {
	for i := range t.shards {
		if width := t.widths[i].Load(); i>>width<<width == i {
			n++
		}
	}
	return n
}

// TestTableAgreesWithMap drives few shards, which begin as one, with many insertions, expiries and moves.
func TestTableAgreesWithMap(t *testing.T) {
	type entry struct{ set, epoch uint32 }
	random := rand.New(rand.NewPCG(1, 2))
	tab, model := newTable(3000), map[uint64]entry{}
	for epoch := uint32(4000); epoch < 4500; epoch++ { // past the end of what an entry can tell apart
		for range random.IntN(700) {
			fp := settled(random.Uint64N(3000) * 0x2545f4914f6cdd1d >> (minShardBits - 1))
			e, known := model[fp]
			id, since := tab.touch(fp, momentIn(epoch, 0, 1))
			require.Equal(t, e.set, id)
			if known {
				require.Equal(t, epoch-e.epoch, since)
			}
			switch {
			case !known:
				e.set = 1 + random.Uint32N(maxSets-1)
				tab.add(fp, e.set, epoch)
			case random.IntN(10) == 0:
				e.set = 1 + random.Uint32N(maxSets-1)
				sh := tab.lock(fp)
				sh.assign(fp, e.set)
				sh.mu.Unlock()
			}
			e.epoch = epoch
			model[fp] = e
		}
		var want []uint32
		keep := uint32(random.IntN(20))
		for fp, e := range model {
			if epoch-e.epoch > keep {
				want = append(want, e.set)
				delete(model, fp)
			}
		}
		gone := tab.expire(epoch, keep)
		slices.Sort(want)
		slices.Sort(gone)
		require.Equal(t, want, gone)
		require.Equal(t, len(model), tab.len())
	}
	require.Greater(t, tab.separated(), minShardBits)
}

func TestTableFitsSeventeenBytesPerSeries(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const most = 120_000
	tab := newTable(most)
	for n := 1; n <= most; n++ {
		tab.add(settled(random.Uint64()), 1, 1)
		if n > 20_000 && n%1000 == 0 { // whatever the number, not only right before the tables grow
			require.LessOrEqual(t, tab.bytes(), int64(n)*17, "%d series", n)
		}
	}
	require.Equal(t, most, tab.len())
	tab.expire(100, 1)
	require.Zero(t, tab.bytes())
}

// TestTableKeepsWhatIsTouched has readers who touch their own entries while others come, expire, and make it resize and
// separate.
func TestTableKeepsWhatIsTouched(t *testing.T) {
	const readers, own, rounds = 2, 200, 100
	tab := newTable(10_000)
	mine := func(reader, i int) uint64 { return settled(uint64(reader*own+i+1) * 0x9e3779b97f4a7c15 & (1<<59 - 1)) }
	for r := range readers {
		for i := range own {
			tab.add(mine(r, i), uint32(r+1), 0)
		}
	}
	var epoch, lost sync.Map
	epoch.Store(0, uint32(0))
	now := func() moment { v, _ := epoch.Load(0); return momentIn(v.(uint32), 0, 1) }
	stop := make(chan struct{})
	var done sync.WaitGroup
	turn := make([]chan struct{}, readers)
	for r := range readers {
		turn[r] = make(chan struct{})
		done.Go(func() {
			for {
				for i := range own {
					fp := mine(r, i)
					if id, _ := tab.touch(fp, now()); id == 0 { // look again under the lock
						sh := tab.lock(fp)
						if id, _ = sh.touch(fp, now()); id != uint32(r+1) {
							lost.Store(fp, id)
						}
						sh.mu.Unlock()
					}
				}
				select {
				case turn[r] <- struct{}{}:
				case <-stop:
					return
				}
			}
		})
	}
	random := rand.New(rand.NewPCG(5, 6))
	for e := range uint32(rounds) {
		epoch.Store(0, e)
		for range 500 + 10*e { // in the end there are more than two shards have room for
			tab.add(settled(random.Uint64()&(1<<59-1)), 99, e)
		}
		for r := range readers { // two turns: one that began in this epoch has ended
			<-turn[r]
			<-turn[r]
		}
		tab.expire(e, 2)
	}
	close(stop)
	done.Wait()
	lost.Range(func(fp, id any) bool {
		t.Errorf("entry %x is in set %d", fp, id)
		return true
	})
	require.Greater(t, tab.separated(), minShardBits)
}

// TestInsertersFindTheirShards: who waits for a shard that separates meanwhile goes to where its entry belongs.
func TestInsertersFindTheirShards(t *testing.T) {
	const inserters, each = 4, 10_000
	tab := newTable(2_000_000)
	fp := func(inserter, i int) uint64 { return settled(uint64(inserter*each+i+1) * 0x9e3779b97f4a7c15) }
	var done sync.WaitGroup
	for inserter := range inserters {
		done.Go(func() {
			for i := range each {
				tab.add(fp(inserter, i), 1, 1)
			}
		})
	}
	done.Wait()
	lost := 0
	for inserter := range inserters {
		for i := range each {
			if !tab.has(fp(inserter, i)) {
				lost++
			}
		}
	}
	require.Zero(t, lost)
	require.Equal(t, inserters*each, tab.len())
}

// TestPartsMissNothing: what was there before is in the parts that are saved, however shards separate meanwhile.
func TestPartsMissNothing(t *testing.T) {
	tab, random := newTable(2_000_000), rand.New(rand.NewPCG(7, 8))
	before := map[uint64]bool{}
	for range shardEntries {
		fp := settled(random.Uint64())
		before[fp] = true
		tab.add(fp, 1, 1)
	}
	require.Equal(t, 1, tab.separated())
	var done sync.WaitGroup
	done.Go(func() {
		for range 30_000 {
			tab.add(settled(random.Uint64()), 2, 1)
		}
	})
	for round := range 2 { // one meanwhile, and one afterwards
		seen := map[uint64]bool{}
		for part := range partCount {
			tab.eachOf(part, func(fp uint64, set uint32) {
				if fp>>(64-partBits) != uint64(part) {
					t.Errorf("%x is in part %d", fp, part)
				}
				seen[fp] = seen[fp] || set == 1
			})
		}
		for fp := range before {
			if !seen[fp] {
				t.Fatalf("round %d: %x is in no part", round, fp)
			}
		}
		done.Wait()
	}
	require.Greater(t, tab.separated(), 8)
}

// TestKnownSeriesWaitForNobody: a sweep has locks, of all shards for all that is known of it, and so may whoever else.
func TestKnownSeriesWaitForNobody(t *testing.T) {
	for _, epochs := range []int{0, 1} {
		r := newRig(t, func(c *Config) { threeLimits(c); c.Statistics.Enabled = epochs == 0 })
		md := workload(1000)
		require.Equal(t, 1000, r.consume(md).DataPointCount())
		r.epochs(epochs)
		locks := []sync.Locker{&r.limiter.groups.mu, &r.overflow.mu}
		for i := range r.limiter.shards() {
			locks = append(locks, &r.limiter.series.shards[i].mu, &r.limiter.values.shards[i].mu)
		}
		for i := range r.overflow.shards {
			locks = append(locks, &r.overflow.shards[i].mu)
		}
		for _, l := range locks {
			l.Lock()
		}
		passed := make(chan error, 1)
		go func() {
			_, err := r.process(t.Context(), md)
			passed <- err
		}()
		select {
		case err := <-passed:
			require.NoError(t, err)
		case <-time.After(time.Minute):
			t.Error("a known series waits for a lock")
		}
		for _, l := range locks {
			l.Unlock()
		}
	}
}
