// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/series"
)

// watched is a book in which the series of one metric are recorded when they are seen, as in a processor.
type watched struct {
	*Book

	t       *testing.T
	limiter *series.Limiter
	policy  *policy.Policy

	ever []int         // by series: how often it was recorded in this window
	last map[int]int   // when it was recorded as one that existed before: how often, since the choice
	one  moment.Moment // of the current choice
	born map[int]bool  // since the choice, when it was known
	of   map[int]bool  // the series of the metric when it was chosen
	open map[int]bool  // recorded since the choice, and once more later
	told int           // how many series of the metric had been recorded when it was chosen
	row  *ranked[metric]
}

func newWatched(t *testing.T, all int) *watched {
	w := &watched{
		Book: NewBook(start, xxh3.HashString), t: t, limiter: series.New(1000, 100_000), policy: &policy.Policy{}, ever: make([]int, all),
	}
	w.Now, w.OnChoice, w.limiter.Watched = w.limiter.Now, func() {}, true
	w.sample.mask = 1 // not all series are sampled
	w.row = w.metrics.find("m", xxh3.HashString("m"))
	return w
}

// choose starts counting the labels of the metric.
func (w *watched) choose() {
	w.row.of.detailed = false
	w.detail(w.row)
	w.one, w.told = w.Chosen("m"), w.row.of.seen[0]
	w.last, w.born, w.of, w.open = map[int]int{}, map[int]bool{}, map[int]bool{}, map[int]bool{}
	for i := range w.ever {
		if w.limiter.Peek(w.series(i).Fingerprint) {
			w.of[i] = true
		}
	}
}

func (w *watched) series(i int) *Series { return seriesOf("m", "user", strconv.Itoa(i)) }

// see handles a batch with a point of a series. It has read the time and the choice of the metric some time before.
func (w *watched) see(i int, chosen, now moment.Moment) (told bool) {
	s := w.series(i)
	x := series.Sighting{Policy: w.policy, Moment: now, Chosen: chosen}
	if w.limiter.Known(s.Fingerprint, &x) == nil {
		set, _ := w.limiter.See(s.Fingerprint, &x)
		require.NotNil(w.t, set)
		if told = x.Due; told {
			s.New, s.Again, s.Moment, s.Chosen = x.Fresh, x.Missed, x.Moment, x.Chosen
			w.Observe(s)
			w.ever[i]++
		}
	}
	if w.one == 0 {
		return told
	}
	settled := now.SeenSince(chosen, s.Fingerprint) > w.one.EpochOf(s.Fingerprint)
	if told && x.Missed && chosen == w.one {
		w.last[i]++
	}
	if told && x.Fresh && !w.of[i] && settled {
		w.born[i] = true
	}
	if told && settled {
		delete(w.open, i)
	} else if told && !w.of[i] {
		w.open[i] = true
	}
	return told
}

// lastEpoch reports whether a window ends with the current epoch.
func lastEpoch(now moment.Moment) bool { return (now.Epoch()+1)%moment.IdleEpochs == 0 }

// sweep advances time, by parts of an epoch.
func (w *watched) sweep(part, of int) (turned bool) {
	for range w.limiter.Shards() * part / of {
		before := w.limiter.Now().Epoch()
		w.limiter.Sweep()
		if now := w.limiter.Now().Epoch(); now != before && now%moment.IdleEpochs == 0 {
			w.Turn(time.Time{})
			w.one, turned = 0, true
		}
	}
	return turned
}

// Once a metric is chosen, the next point of each of its series counts its labels, whether the series began before the
// choice, at the same time or after it. A series is recorded as one that existed before at most once, and it is known
// when all have been recorded.
func TestSeriesBeforeAtAndAfterAChoice(t *testing.T) {
	const all = 60
	runs := uint64(100)
	if testing.Short() {
		runs = 20
	}
	complete, future := uint64(0), uint64(0)
	for seed := range runs {
		random := rand.New(rand.NewPCG(7, seed))
		w := newWatched(t, all)
		w.sweep(random.IntN(40*moment.IdleEpochs), 40)
		known := 10 + random.IntN(20)
		for range 60 {
			chosen, now := w.Chosen("m"), w.limiter.Now()
			if random.IntN(8) == 0 && w.row.of.seen[0] > 0 {
				w.choose()
				require.Positive(t, w.one)
				if w.one > now {
					future++
				}
				w.sweep(random.IntN(10), 100)
				for i := range known { // batches that began before
					if random.IntN(6) == 0 {
						w.see(i, chosen, now)
					}
				}
			}
			known = min(known+random.IntN(4), all)
			for i := range known {
				if random.IntN(3) == 0 {
					continue
				}
				chosen, now := w.Chosen("m"), w.limiter.Now()
				require.Equal(t, w.one, chosen)
				before, again := w.of[i] && w.last[i] == 0, w.last[i]
				told := w.see(i, chosen, now)
				if chosen == 0 || now < chosen || lastEpoch(now) {
					continue
				}
				where := fmt.Sprintf("series %d of run %d", i, seed)
				if before {
					require.True(t, told, where)
				} else if w.born[i] {
					require.Zero(t, w.last[i], where)
				}
				require.LessOrEqual(t, w.last[i], again+1, where)
				require.Empty(t, w.open[i], where)
				require.False(t, w.see(i, chosen, now), where)
			}
			if w.one != 0 {
				m, missing := &w.row.of, 0
				for i := range w.of {
					if w.last[i] == 0 {
						missing++
					}
				}
				if missing+len(w.open) == 0 {
					complete++
				}
				require.Equal(t, w.told-len(w.of)+missing+len(w.open), m.seen[0]-m.noted[0], "run %d", seed)
			}
			w.sweep(random.IntN(60), 40)
		}
	}
	require.Greater(t, complete, 3*runs)
	require.Greater(t, future, runs/7)
}

// Whatever is chosen, and when: a series that is always sent is never missing from a window.
func TestEachSeriesIsToldOfInEachWindow(t *testing.T) {
	const steps = 8
	all := 64
	if testing.Short() {
		all = 24
	}
	for step := range 3 * steps {
		w := newWatched(t, all)
		for at := range 7 * moment.IdleEpochs * steps / 2 {
			if at == 2*(moment.IdleEpochs-1)*steps+step {
				w.choose()
			}
			for i := range all {
				w.see(i, w.Chosen("m"), w.limiter.Now())
			}
			if w.sweep(1, steps) {
				for i, n := range w.ever {
					require.Positive(t, n, "series %d, window %d, step %d", i, at/moment.IdleEpochs/steps, step)
				}
				clear(w.ever)
			}
		}
	}
}
