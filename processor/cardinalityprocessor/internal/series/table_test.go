// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	rand "math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
)

func (t *Table) add(fp uint64, set, epoch uint32) {
	now := moment.In(epoch, 0, 1)
	sh := t.Lock(fp)
	defer sh.Mu.Unlock()
	if id, _ := sh.touch(fp, Nowhere, now.EpochOf(fp)); id == 0 {
		sh.Insert(fp, set, now)
	}
}

func (t *Table) expire(epoch, keep uint32) (gone []uint32) {
	for i := range t.Shards {
		gone, _ = t.Shards[i].Expire(epoch, keep, 0, gone)
	}
	return gone
}

// TestTableAgreesWithMap runs many insertions, expiries and moves in few shards, which begin as one.
func TestTableAgreesWithMap(t *testing.T) {
	racetest.Sequential(t)
	type entry struct{ set, epoch uint32 }
	random := rand.New(rand.NewPCG(1, 2))
	tab, model := NewTable(3000), map[uint64]entry{}
	lines := map[uint64]int32{}                        // the previous line of the series, or any
	for epoch := uint32(4000); epoch < 4500; epoch++ { // longer than an entry can distinguish
		for range random.IntN(700) {
			fp := ident.Settled(random.Uint64N(3000) * 0x2545f4914f6cdd1d >> (MinShardBits - 1))
			e, known := model[fp]
			id, since := tab.TouchAt(fp, lines[fp], moment.In(epoch, 0, 1).EpochOf(fp))
			require.Equal(t, e.set, id)
			lines[fp] = tab.Warm([]uint64{fp}, nil)[0]
			if known {
				require.Equal(t, epoch-e.epoch, since)
			}
			switch {
			case !known:
				e.set = 1 + random.Uint32N(maxSets-1)
				tab.add(fp, e.set, epoch)
			case random.IntN(10) == 0:
				e.set = 1 + random.Uint32N(maxSets-1)
				sh := tab.Lock(fp)
				sh.assign(fp, e.set)
				sh.Mu.Unlock()
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
		require.Equal(t, len(model), tab.Len())
	}
	require.Greater(t, tab.Separated(), MinShardBits)
}

func TestTableFitsSeventeenBytesPerSeries(t *testing.T) {
	racetest.Sequential(t)
	random := rand.New(rand.NewPCG(3, 4))
	const most = 120_000
	tab := NewTable(most)
	for n := 1; n <= most; n++ {
		tab.add(ident.Settled(random.Uint64()), 1, 1)
		if n > 20_000 && n%1000 == 0 { // at any number, not only right before the tables grow
			require.LessOrEqual(t, tab.Bytes(), int64(n)*17, "%d series", n)
		}
	}
	require.Equal(t, most, tab.Len())
	tab.expire(100, 1)
	require.Zero(t, tab.Bytes())
}

// TestTableKeepsWhatIsTouched has readers that touch their own entries while others are added and expire, and the table
// is resized and separated.
func TestTableKeepsWhatIsTouched(t *testing.T) {
	const readers, own, rounds = 2, 200, 100
	tab := NewTable(10_000)
	mine := func(reader, i int) uint64 {
		return ident.Settled(uint64(reader*own+i+1) * 0x9e3779b97f4a7c15 & (1<<59 - 1))
	}
	for r := range readers {
		for i := range own {
			tab.add(mine(r, i), uint32(r+1), 0)
		}
	}
	var epoch, lost sync.Map
	epoch.Store(0, uint32(0))
	now := func() moment.Moment { v, _ := epoch.Load(0); return moment.In(v.(uint32), 0, 1) }
	stop := make(chan struct{})
	var done sync.WaitGroup
	turn := make([]chan struct{}, readers)
	for r := range readers {
		turn[r] = make(chan struct{})
		var fps []uint64
		for i := range own {
			fps = append(fps, mine(r, i))
		}
		done.Go(func() {
			var lines []int32
			for {
				lines = tab.Warm(fps, lines[:0])
				for i, fp := range fps {
					if id, _ := tab.TouchAt(fp, lines[i], now().EpochOf(fp)); id == 0 { // again, with the lock
						sh := tab.Lock(fp)
						if id, _ = sh.touch(fp, Nowhere, now().EpochOf(fp)); id != uint32(r+1) {
							lost.Store(fp, id)
						}
						sh.Mu.Unlock()
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
		for range 500 + 10*e { // in the end, more than fit into two shards
			tab.add(ident.Settled(random.Uint64()&(1<<59-1)), 99, e)
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
	require.Greater(t, tab.Separated(), MinShardBits)
}

// TestInsertersFindTheirShards: a goroutine that waits for a shard while it is separated inserts its entry in the right
// one.
func TestInsertersFindTheirShards(t *testing.T) {
	const inserters, each = 4, 10_000
	tab := NewTable(2_000_000)
	fp := func(inserter, i int) uint64 { return ident.Settled(uint64(inserter*each+i+1) * 0x9e3779b97f4a7c15) }
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
			if !tab.Has(fp(inserter, i)) {
				lost++
			}
		}
	}
	require.Zero(t, lost)
	require.Equal(t, inserters*each, tab.Len())
}

// TestPartsMissNothing: entries that existed before a save are in the saved parts, however shards are separated
// meanwhile.
func TestPartsMissNothing(t *testing.T) {
	tab, random := NewTable(2_000_000), rand.New(rand.NewPCG(7, 8))
	before := map[uint64]bool{}
	for range ShardEntries {
		fp := ident.Settled(random.Uint64())
		before[fp] = true
		tab.add(fp, 1, 1)
	}
	require.Equal(t, 1, tab.Separated())
	var done sync.WaitGroup
	done.Go(func() {
		for range 30_000 {
			tab.add(ident.Settled(random.Uint64()), 2, 1)
		}
	})
	for round := range 2 { // one meanwhile, and one afterwards
		seen := map[uint64]bool{}
		for part := range PartCount {
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
	require.Greater(t, tab.Separated(), 8)
}
