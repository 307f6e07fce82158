// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"math"
	rand "math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/series"
)

func TestEpochsOfSeriesBeginEarly(t *testing.T) {
	for _, part := range []int{0, 1, 99} {
		now := moment.In(7, part, 100)
		require.Equal(t, uint32(7), now.Epoch())
		for _, fp := range []uint64{0, 1 << 31, math.MaxUint32, math.MaxUint64} {
			require.GreaterOrEqual(t, now.EpochOf(fp), uint32(7))
			require.LessOrEqual(t, now.EpochOf(fp), uint32(8))
		}
	}
	whole, half := moment.In(7, 0, 2), moment.In(7, 1, 2)
	require.Equal(t, uint32(7), whole.EpochOf(math.MaxUint32))
	require.Equal(t, uint32(8), half.EpochOf(math.MaxUint32))
	require.Equal(t, uint32(7), half.EpochOf(1))
}

// TestNoBatchIsTheFirstOfAnEpoch: each batch marks its share of the series as alive, and statistics look at a part of
// those. If all series are sent again and again, no batch has more than twice the average.
func TestNoBatchIsTheFirstOfAnEpoch(t *testing.T) {
	racetest.Sequential(t)
	const batches, points = 64, 20_000
	r := newRig(t, threeLimits)
	md := workload(points)
	require.Equal(t, points, r.consume(md).DataPointCount())
	r.epochs(1)
	r.consume(md)
	for epoch := range 3 {
		renewed, looks := 0, 0
		for batch := range batches {
			r.sweeps(r.Limiter.Shards() / batches)
			n, due := r.outdated()
			require.LessOrEqual(t, n, 2*points/batches, "epoch %d, batch %d", epoch, batch)
			require.LessOrEqual(t, due, 2*points/batches/moment.IdleEpochs, "epoch %d, batch %d", epoch, batch)
			r.consume(md)
			renewed, looks = renewed+n, looks+due
			n, _ = r.outdated()
			require.Zero(t, n)
		}
		require.Equal(t, points, renewed)
		require.InEpsilon(t, points/moment.IdleEpochs, looks, 0.1)
	}
}

// outdated returns how many series were not seen in their current epoch, and how many of these statistics will look at.
func (r *rig) outdated() (n, due int) {
	now := r.Limiter.Now()
	for i := range r.Limiter.Shards() {
		s := r.Limiter.Series.Shards[i].Slots.Load()
		for slot, word := range s.Words {
			if fp := s.Fps[slot]; word != 0 && word&series.SeenMask != now.EpochOf(fp)&series.SeenMask {
				n++
				if r.Limiter.Due(fp, now.EpochOf(fp)-word&series.SeenMask, now) {
					due++
				}
			}
		}
	}
	return n, due
}

// TestSeriesLiveForTheirTime: a series keeps its place for the idle timeout, and not much longer, whenever in an epoch
// it was seen.
func TestSeriesLiveForTheirTime(t *testing.T) {
	racetest.Sequential(t)
	random := rand.New(rand.NewPCG(1, 3))
	tab, seen := series.NewTable(10_000), map[uint64]int{}
	shards := len(tab.Shards)
	for i := range shards { // as if it had been fuller before: they are swept at different times
		tab.Widths[i].Store(0)
	}
	for sweep := range (2*moment.IdleEpochs + 6) * shards {
		now := moment.In(uint32(sweep/shards), sweep%shards, shards)
		if sweep < moment.IdleEpochs*shards {
			fp := ident.Settled(random.Uint64())
			sh := tab.Lock(fp)
			sh.Insert(fp, 1, now)
			sh.Mu.Unlock()
			seen[fp] = sweep
		}
		gone, _ := tab.Shards[sweep%shards].Expire(now.Epoch(), series.KeptEpochs, 0, nil)
		for fp, before := range seen {
			if len(gone) == 0 {
				break
			}
			if age := sweep - before; !tab.Has(fp) {
				require.GreaterOrEqual(t, age, moment.IdleEpochs*shards)
				require.LessOrEqual(t, age, (moment.IdleEpochs+4)*shards)
				delete(seen, fp)
			}
		}
	}
	require.Empty(t, seen)
}

// TestValuesOutliveTheirSeries: a series that comes back at the last moment still has its value, so no other value
// takes its place.
func TestValuesOutliveTheirSeries(t *testing.T) {
	racetest.Sequential(t)
	for i := range 30 {
		r := newRig(t, func(c *Config) {
			c.Rules = []RuleConfig{{Name: "r", LabelLimits: map[string]int{"x": 1}}}
		})
		first, second := labelled(i, "a"), labelled(1000+i, "b")
		r.sweeps(i % 8 * r.Limiter.Shards() / 8)
		require.Equal(t, []bool{true}, r.passes(first))
		for r.Limiter.Admitted.Load() > r.Limiter.Expired.Load() {
			require.Equal(t, []bool{false}, r.passes(second), "while the first one has its place")
			r.Sweep()
		}
	}
}

func labelled(i int, x string) point {
	p := aSeries(i)
	p.attrs["x"] = x
	return p
}
