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
	sh := t.shard(fp)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if id, _ := sh.touch(fp, epoch); id == 0 {
		sh.insert(fp, set, epoch)
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

// TestTableAgreesWithMap drives few shards with many insertions, expiries and moves.
func TestTableAgreesWithMap(t *testing.T) {
	type entry struct{ set, epoch uint32 }
	random := rand.New(rand.NewPCG(1, 2))
	tab, model := newTable(3000), map[uint64]entry{}
	for epoch := uint32(4000); epoch < 4500; epoch++ { // past the end of what an entry can tell apart
		for range random.IntN(400) {
			fp := settled(random.Uint64N(3000) * 0x2545f4914f6cdd1d & (1<<58 - 1))
			e, known := model[fp]
			id, since := tab.touch(fp, epoch)
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
				tab.shard(fp).mu.Lock()
				tab.shard(fp).assign(fp, e.set)
				tab.shard(fp).mu.Unlock()
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

// TestTableKeepsWhatIsTouched has readers who touch their own entries while others come, expire and make it resize.
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
	now := func() uint32 { v, _ := epoch.Load(0); return v.(uint32) }
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
						sh := tab.shard(fp)
						sh.mu.Lock()
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
		for range 500 {
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
