// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"bytes"
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// record collects the timestamps that a task gets.
type record struct {
	mu sync.Mutex
	at []time.Time
}

func (r *record) add(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = append(r.at, at)
}

// since returns the timestamps as durations since start.
func (r *record) since(start time.Time) []time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []time.Duration
	for _, at := range r.at {
		out = append(out, at.Sub(start.Round(0)))
	}
	return out
}

func TestEveryRunsAtItsTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		c := New(0)
		var r record
		c.Every(10*time.Second, start.Add(3*time.Second), r.add, nil)
		time.Sleep(34 * time.Second)
		require.NoError(t, c.Stop(t.Context()))
		assert.Equal(t, []time.Duration{3 * time.Second, 13 * time.Second, 23 * time.Second, 33 * time.Second}, r.since(start))
		time.Sleep(time.Minute)
		assert.Len(t, r.since(start), 4, "nothing runs after Stop")
	})
}

// A run ahead of the next tick does not change any of the ticks. It happens at most once, before that tick, and never
// for a canceled task.
func TestAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		c := New(0)
		var r, other, gone record
		task := c.Every(10*time.Second, start.Add(8*time.Second), r.add, nil)
		c.Ahead(task, start.Add(2*time.Second))
		c.Ahead(task, start.Add(time.Second)) // has to run ahead already
		late := c.Every(10*time.Second, start.Add(5*time.Second), other.add, nil)
		c.Ahead(late, start.Add(6*time.Second)) // will have run by then
		canceled := c.Every(10*time.Second, start.Add(3*time.Second), gone.add, nil)
		c.Cancel(canceled)
		c.Ahead(canceled, start.Add(time.Second))
		time.Sleep(29 * time.Second)
		require.NoError(t, c.Stop(t.Context()))
		assert.Equal(t, []time.Duration{2 * time.Second, 8 * time.Second, 18 * time.Second, 28 * time.Second}, r.since(start))
		assert.Equal(t, []time.Duration{5 * time.Second, 15 * time.Second, 25 * time.Second}, other.since(start))
		assert.Empty(t, gone.since(start))
	})
}

// Cancel returns the next tick of a task that runs ahead of it. A run that lasts beyond the tick is followed by
// another, as always.
func TestAheadThatLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		c := New(0)
		var r record
		long := func(at time.Time) {
			r.add(at)
			time.Sleep(4 * time.Second)
		}
		task := c.Every(10*time.Second, start.Add(5*time.Second), long, nil)
		c.Ahead(task, start.Add(2*time.Second))
		canceled := c.Every(10*time.Second, start.Add(5*time.Second), func(time.Time) { time.Sleep(time.Second) }, nil)
		c.Ahead(canceled, start.Add(2*time.Second))
		time.Sleep(2500 * time.Millisecond)
		next, waited := c.Cancel(canceled)
		assert.False(t, waited)
		assert.Equal(t, 5*time.Second, next.Sub(start.Round(0)))
		time.Sleep(20 * time.Second)
		require.NoError(t, c.Stop(t.Context()))
		assert.Equal(t, []time.Duration{2 * time.Second, 6 * time.Second, 15 * time.Second}, r.since(start))
	})
}

// A tick that passes while a run is in progress is made up for at once. Several such ticks count as one, and the rhythm
// stays the same.
func TestOverrun(t *testing.T) {
	for name, test := range map[string]struct {
		lasts time.Duration
		want  []time.Duration
		miss  int
	}{
		"none":        {9 * time.Second, []time.Duration{0, 10 * time.Second, 20 * time.Second, 30 * time.Second}, 0},
		"one tick":    {12 * time.Second, []time.Duration{0, 12 * time.Second, 20 * time.Second, 30 * time.Second}, 0},
		"one, just":   {10 * time.Second, []time.Duration{0, 10 * time.Second, 20 * time.Second, 30 * time.Second}, 0},
		"two ticks":   {25 * time.Second, []time.Duration{0, 25 * time.Second, 30 * time.Second, 40 * time.Second}, 1},
		"three ticks": {32 * time.Second, []time.Duration{0, 32 * time.Second, 40 * time.Second}, 2},
		"to the dot":  {20 * time.Second, []time.Duration{0, 20 * time.Second, 30 * time.Second, 40 * time.Second}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				c := New(0)
				var r record
				var once sync.Once
				var missed atomic.Int32
				c.Every(10*time.Second, start, func(at time.Time) {
					r.add(at)
					once.Do(func() { time.Sleep(test.lasts) })
				}, func() { missed.Add(1) })
				time.Sleep(45 * time.Second)
				require.NoError(t, c.Stop(t.Context()))
				assert.Equal(t, test.want, r.since(start)[:len(test.want)])
				assert.Equal(t, test.miss, int(missed.Load()))
				assert.Equal(t, 5, len(r.since(start))+test.miss, "every tick is one or the other")
			})
		})
	}
}

// A run that begins slightly late gets the time it was due. A run that begins later gets the current time.
func TestAlignment(t *testing.T) {
	for late, want := range map[time.Duration]time.Duration{
		time.Millisecond:        10 * time.Second,
		2 * time.Millisecond:    10 * time.Second,
		2500 * time.Microsecond: 10*time.Second + 2500*time.Microsecond,
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			c := New(1)
			var r record
			c.Every(10*time.Second, start, r.add, nil)
			time.Sleep(time.Second)
			c.Once(8*time.Second, func(time.Time) { time.Sleep(time.Second + late) }) // occupies the only slot
			time.Sleep(15 * time.Second)
			require.NoError(t, c.Stop(t.Context()))
			assert.Equal(t, []time.Duration{0, want}, r.since(start)[:2], late)
		})
	}
}

// A run that begins later than its next tick replaces that tick, too: otherwise the run after it would get an earlier
// time.
func TestTimesNeverStepBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		c := New(1)
		var r record
		c.Every(10*time.Second, start, r.add, nil)
		time.Sleep(time.Second)
		c.Once(8*time.Second, func(time.Time) { time.Sleep(11*time.Second + time.Millisecond) }) // occupies the only slot
		time.Sleep(40 * time.Second)
		require.NoError(t, c.Stop(t.Context()))
		assert.Equal(t, []time.Duration{0, 20*time.Second + time.Millisecond, 30 * time.Second, 40 * time.Second}, r.since(start)[:4])
	})
}

// With short intervals, only a delay of up to 1 % counts as on time.
func TestAlignmentOfShortIntervals(t *testing.T) {
	c := &Clock{start: time.Now()}
	c.offset = time.Duration(c.start.UnixNano())
	tick := time.Since(c.start) - time.Millisecond
	task := &Task{interval: 10 * time.Millisecond, tick: tick, due: tick + 10*time.Millisecond, index: -1}
	assert.NotEqual(t, c.wall(tick), c.stamp(task))
}

// step makes the wall clock look to c as if it had been set by d since c last read it.
func step(c *Clock, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset -= d
}

// Setting the wall clock changes the timestamps of runs, but not when they happen.
func TestClockStep(t *testing.T) {
	for _, d := range []time.Duration{-time.Hour, -time.Second, time.Second, 30 * 365 * 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			c := New(0)
			var before, after, canceled record
			c.Every(10*time.Second, start.Add(3*time.Second), before.add, nil)
			gone := c.Every(10*time.Second, start.Add(4*time.Second), canceled.add, nil)
			time.Sleep(6 * time.Second)
			step(c, d)
			next, waiting := c.Cancel(gone)
			assert.True(t, waiting)
			assert.Equal(t, 14*time.Second, next.Sub(start.Round(0)), d)

			step(c, d)
			c.Every(10*time.Second, start.Add(8*time.Second), after.add, nil)
			time.Sleep(3 * time.Second)
			step(c, d)
			time.Sleep(15 * time.Second)
			require.NoError(t, c.Stop(t.Context()))
			assert.Equal(t, []time.Duration{3 * time.Second, 13 * time.Second, 23 * time.Second}, before.since(start), d)
			assert.Equal(t, []time.Duration{8 * time.Second, 18 * time.Second}, after.since(start), d)
			assert.Len(t, canceled.since(start), 1)
		})
	}
}

func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		c := New(3)
		var running, most, runs atomic.Int32
		for range 20 {
			c.Every(time.Minute, start, func(time.Time) {
				most.Store(max(most.Load(), running.Add(1)))
				time.Sleep(time.Second)
				running.Add(-1)
				runs.Add(1)
			}, nil)
		}
		time.Sleep(30 * time.Second)
		require.NoError(t, c.Stop(t.Context()))
		assert.Equal(t, int32(3), most.Load())
		assert.Equal(t, int32(20), runs.Load())
	})
}

// Ticks are missed while no slot is free, and during a run that never ends. Both are reported when they happen.
func TestMissedTicksAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(1)
		start := time.Now()
		release := make(chan struct{})
		var stuck, kept atomic.Int32
		c.Every(10*time.Second, start, func(time.Time) { <-release }, func() { stuck.Add(1) })
		var r record
		c.Every(10*time.Second, start.Add(time.Second), r.add, func() { kept.Add(1) })
		time.Sleep(5 * time.Second)
		for minute := range 3 {
			time.Sleep(time.Minute)
			assert.Equal(t, 6*minute+5, int(stuck.Load()), "all but that of its own run, and one that may be made up for")
			assert.Equal(t, 6*minute+6, int(kept.Load()), "all but one that waits")
		}
		close(release)
		time.Sleep(15 * time.Second)
		assert.Equal(t, []time.Duration{185 * time.Second, 191 * time.Second}, r.since(start))
		require.NoError(t, c.Stop(t.Context()))
	})
}

// Tasks that wait for a slot get it in turn: none of several tasks that are always late gets it more often than the
// others.
func TestPlacesAreGivenInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(2)
		start := time.Now()
		const tasks = 7
		var runs [tasks]atomic.Int32
		for i := range runs {
			c.Every(time.Second, start.Add(time.Duration(i)*time.Millisecond), func(time.Time) {
				runs[i].Add(1)
				time.Sleep(1500 * time.Millisecond)
			}, nil)
		}
		time.Sleep(10 * time.Minute)
		require.NoError(t, c.Stop(t.Context()))
		for i := range runs {
			assert.InEpsilon(t, 2*600/1.5/tasks, runs[i].Load(), 0.1, i)
		}
	})
}

// A task that is canceled while it waits for a slot, or while it runs beyond its next tick, does not run again.
func TestCancelOfTasksThatAreLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(1)
		start := time.Now()
		var late, kept record
		long := c.Every(10*time.Second, start, func(at time.Time) {
			late.add(at)
			time.Sleep(15 * time.Second)
		}, nil)
		waits := c.Every(10*time.Second, start.Add(time.Second), kept.add, nil)
		time.Sleep(12 * time.Second)
		next, idle := c.Cancel(long)
		assert.False(t, idle)
		assert.Equal(t, 10*time.Second, next.Sub(start.Round(0)), "the first that it has not run for")
		next, idle = c.Cancel(waits)
		assert.True(t, idle)
		assert.Equal(t, time.Second, next.Sub(start.Round(0)))
		time.Sleep(time.Minute)
		assert.Len(t, late.since(start), 1)
		assert.Empty(t, kept.since(start))
		require.NoError(t, c.Stop(t.Context()))
	})
}

// When ten thousand runs that were blocked end at once, the next runs do not all begin at once: their rate is limited,
// and none is skipped for it.
func TestLateRunsBeginInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tasks, interval = 10_000, 10 * time.Second
		c := New(0)
		start := time.Now()
		released := start.Add(time.Minute)
		var perSecond [30]atomic.Int32
		var runs, missed atomic.Int32
		for range tasks {
			c.Every(interval, Next(start, interval, rand.Uint64()), func(time.Time) {
				if since := time.Since(released); since >= 0 && since < 30*time.Second {
					perSecond[since/time.Second].Add(1)
				}
				runs.Add(1)
				time.Sleep(time.Until(released))
			}, func() { missed.Add(1) })
		}
		time.Sleep(90*time.Second - time.Millisecond)
		for second := range perSecond {
			assert.LessOrEqual(t, perSecond[second].Load(), int32(3.3*tasks/10), "the late ones and those of the second")
		}
		assert.Equal(t, int32(9*tasks), runs.Load()+missed.Load())
		// Of the six runs in the blocked time, one ran and one was made up for, for some tasks together with the next
		// tick.
		assert.GreaterOrEqual(t, missed.Load(), int32(4*tasks))
		assert.LessOrEqual(t, missed.Load(), int32(4.5*tasks))
		require.NoError(t, c.Stop(t.Context()))
	})
}

// A task that takes slightly longer than its interval runs all the time.
func TestRunsFollowAtOnce(t *testing.T) {
	for _, lasts := range []time.Duration{1010 * time.Millisecond, 1500 * time.Millisecond, 1999 * time.Millisecond, 2500 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			c := New(0)
			var runs, missed atomic.Int32
			for i := range 100 {
				c.Every(time.Second, time.Now().Add(time.Duration(i)*10*time.Millisecond), func(time.Time) {
					runs.Add(1)
					time.Sleep(lasts)
				}, func() { missed.Add(1) })
			}
			time.Sleep(100*time.Second + time.Millisecond)
			assert.InEpsilon(t, 100*100_000/float64(lasts.Milliseconds()), runs.Load(), 0.03, lasts)
			assert.InDelta(t, 100*100, runs.Load()+missed.Load(), 300, "but for those that wait to be made up for")
			require.NoError(t, c.Stop(t.Context()))
		})
	}
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		c := New(0)
		var r record
		waiting := c.Every(10*time.Second, start, r.add, nil)
		running := c.Every(10*time.Second, start, func(time.Time) { time.Sleep(5 * time.Second) }, nil)
		time.Sleep(time.Second)

		next, idle := c.Cancel(waiting)
		assert.True(t, idle)
		assert.Equal(t, 10*time.Second, next.Sub(start.Round(0)))
		next, idle = c.Cancel(running)
		assert.False(t, idle)
		assert.Equal(t, 10*time.Second, next.Sub(start.Round(0)))

		time.Sleep(time.Minute)
		assert.Len(t, r.since(start), 1)
		require.NoError(t, c.Stop(t.Context()))
	})
}

func TestStopWaitsWithinItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(0)
		c.Once(0, func(time.Time) { time.Sleep(time.Minute) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, c.Stop(ctx), context.DeadlineExceeded)
		require.NoError(t, c.Stop(t.Context()))
		require.NoError(t, c.Stop(t.Context()), "twice is as good as once")
	})
}

// Ten thousand tasks need no goroutines while they wait, run evenly distributed over the interval, and stop at once.
func TestManyTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tasks, interval = 10_000, 10 * time.Second
		c := New(0)
		var perSecond [10]atomic.Int32
		start := time.Now()
		for range tasks {
			c.Every(interval, Next(start, interval, rand.Uint64()), func(at time.Time) {
				perSecond[int(at.Sub(start.Round(0))/time.Second)%10].Add(1)
			}, nil)
		}
		synctest.Wait()
		assert.LessOrEqual(t, working(), maxParked)
		time.Sleep(interval - time.Nanosecond)
		for second := range perSecond {
			assert.InDelta(t, tasks/10, perSecond[second].Load(), tasks/50)
		}
		require.NoError(t, c.Stop(t.Context()))
	})
}

// Tasks run in the order in which they are due, whatever is added and canceled.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(1)
		start := time.Now()
		var r record
		random := rand.New(rand.NewPCG(1, 2))
		var added []*Task
		for range 500 {
			added = append(added, c.Once(time.Duration(random.IntN(1000)+1)*time.Second, r.add))
		}
		canceled := 0
		for i, task := range added {
			if i%3 == 0 {
				c.Cancel(task)
				canceled++
			}
		}
		time.Sleep(time.Hour)
		require.NoError(t, c.Stop(t.Context()))
		at := r.since(start)
		assert.Len(t, at, 500-canceled)
		assert.True(t, slices.IsSorted(at))
	})
}

// Goroutines that have run a task wait for more, but only a limited number of them.
func TestParkedGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(0)
		start := time.Now()
		var runs atomic.Int32
		for range 3 * maxParked {
			c.Every(time.Minute, start, func(time.Time) {
				time.Sleep(time.Second)
				runs.Add(1)
			}, nil)
		}
		for minute := range 3 {
			time.Sleep(30 * time.Second)
			synctest.Wait()
			assert.Equal(t, int32(3*maxParked*(minute+1)), runs.Load())
			assert.Equal(t, maxParked, working())
			time.Sleep(30 * time.Second)
		}
		require.NoError(t, c.Stop(t.Context()))
	})
}

// working returns the number of goroutines that run tasks or wait for them. runtime.NumGoroutine also counts goroutines
// that have ended, until the runtime has removed them.
func working() int {
	stacks := make([]byte, 1<<20)
	return bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte("(*Clock).work("))
}

func TestNext(t *testing.T) {
	now := time.Unix(1_700_000_003, 500)
	for _, interval := range []time.Duration{10 * time.Millisecond, time.Second, 15 * time.Second, time.Hour} {
		grain := min(interval/100, 100*time.Millisecond)
		for _, hash := range []uint64{0, 1, uint64(interval) - 1, 12345678901234567890} {
			next := Next(now, interval, hash)
			assert.GreaterOrEqual(t, next.Sub(now), time.Duration(0))
			assert.Less(t, next.Sub(now), interval)
			point := time.Duration(next.UnixNano()) % interval
			assert.Equal(t, time.Duration(hash%uint64(interval)).Truncate(grain), point, "the same point whenever it is asked for")
			assert.Equal(t, next, Next(next, interval, hash), "now is soon enough")
		}
	}
}
