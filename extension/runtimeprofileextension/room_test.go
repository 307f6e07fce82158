// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// filling is a heap that a process fills with garbage at a constant rate, collected like by the runtime.
type filling struct {
	emptyRoom

	now         sample
	took        float64 // per cycle, in CPU seconds
	own, others int     // cycles: those that return memory, and the runtime's
	most        int64   // the maximum free memory when it was returned
}

func newFilling(live int64, gogc int, took float64) *filling {
	f := &filling{now: sample{live: live, objects: live, knobs: knobs{gogc: gogc}}, took: took}
	f.emptyRoom = newEmptyRoom(f.now, 12*mib)
	f.collect(&f.others)
	return f
}

func (f *filling) collect(count *int) {
	*count++
	f.now.cycles++
	f.now.gcSeconds += f.took
	f.now.free += f.now.objects - f.now.live
	f.now.objects = f.now.live
}

// look adds garbage and CPU time for the interval between two checks of an idle process, and checks.
func (f *filling) look(garbage int64, used float64) { f.pass(checkInterval, garbage, used) }

// watch is like look, with the current interval between checks.
func (f *filling) watch(garbage int64, used float64) {
	part := f.wait.Seconds() / checkInterval.Seconds()
	f.pass(f.wait, int64(part*float64(garbage)), part*used)
}

func (f *filling) pass(wait time.Duration, garbage int64, used float64) {
	f.now.at = f.now.at.Add(wait)
	f.now.objects += garbage
	f.now.used += used
	f.now.free = max(0, f.now.free-garbage)
	if gogc := int64(f.now.knobs.gogc); gogc > 0 && f.now.objects >= f.now.live+f.now.live*gogc/100 {
		f.collect(&f.others)
	}
	if f.isDue(f.now) {
		f.most = max(f.most, f.now.empty())
		f.collect(&f.own)
		f.now.free = 0
		f.now.used += f.took
		f.now.at = f.now.at.Add(time.Millisecond)
		f.gave(f.now)
	}
}

// The price of collections follows from the free memory between them.
func TestRoomIsGivenBackWhenItWasEmptyForLong(t *testing.T) {
	const looks = 1000
	f := newFilling(100*mib, 50, 0.1)
	empty := 0.0
	for range looks {
		f.look(mib, 0.1)
		empty += float64(f.now.free+f.now.objects-f.now.live) / float64(f.now.live) / looks
	}
	assert.Equal(t, 1, f.others)
	share := float64(f.own) * (f.took + pageReturnCost*float64(f.most)) / f.now.used
	assert.InDelta(t, emptyPrice*empty, share, 0.003)
	assert.Less(t, empty, 0.2)
}

// If garbage is created fast, a cycle returns it as soon as that pays off, and no sooner: collecting costs as much as
// the memory is worth.
func TestRoomForGarbageIsGivenBackWhenItIsFull(t *testing.T) {
	for _, garbage := range []int64{4 * mib, 10 * mib, 30 * mib} {
		f := newFilling(100*mib, 100, 0.1)
		begun, seconds, empty := f.now, 0.0, 0.0
		for range 2000 {
			wait := f.wait.Seconds()
			before := f.now.empty()
			f.watch(garbage, 0.5)
			seconds += wait
			empty += wait * float64(before+f.now.empty()) / 2
		}
		assert.LessOrEqual(t, f.others, 2, garbage)
		used := f.now.used - begun.used
		most, live := float64(f.most), float64(f.now.live)
		assert.InEpsilon(t, emptyPrice*most/2/live, (float64(f.own)*(f.took+pageReturnCost*most))/used, 0.15, garbage)
		assert.Greater(t, f.most, int64(12*mib))
	}
}

func TestRoomIsLookedAtSeldomWhereNothingHappens(t *testing.T) {
	f := newFilling(100*mib, 50, 0.1)
	for range 100 {
		f.watch(0, 0.001)
		assert.Equal(t, checkInterval, f.wait)
	}
}

func TestRoomThatIsFullSoonIsNotGivenBack(t *testing.T) {
	f := newFilling(100*mib, 20, 0.1)
	f.returnAtOnce = math.MaxInt64
	for range 200 {
		f.look(4*mib, 0.1) // five checks
	}
	assert.Zero(t, f.own)
	assert.Equal(t, 41, f.others)
}

// If other processes disturb the collector, the runtime overestimates its cost.
func TestACycleCostsWhatItWasSeenToCost(t *testing.T) {
	const looks = 1000
	f := newFilling(100*mib, 200, 0.1)
	run := func() int {
		f.own = 0
		for range looks {
			f.look(mib, 0.1)
			f.now.gcSeconds += 10
		}
		return f.own
	}
	cheap := run()
	f.took = 0.4
	learning := run()
	assert.Less(t, learning, cheap)
	assert.InDelta(t, cheap/2, run(), 3)
	f.took = 0.1
	assert.InDelta(t, cheap, run(), 2, "at once")
}

// Other work during a cycle does not count as a part of it.
func TestACycleIsNotTakenForDearByWhatElseIsDone(t *testing.T) {
	f := newFilling(100*mib, 200, 0.1)
	for range 3 {
		f.look(mib, 0.2)
		f.now.used, f.now.at = f.now.used+0.1, f.now.at.Add(time.Second/4)
		f.collect(&f.own)
		f.gave(f.now)
	}
	assert.InDelta(t, 0.075/(100*mib), f.cost, 1e-12)
	f.look(mib, 0.2)
	f.now.used, f.now.at = f.now.used+0.1, f.now.at.Add(time.Second)
	f.collect(&f.own)
	f.gave(f.now)
	assert.InDelta(t, 0.1*2/3/(100*mib), f.cost, 1e-12, "nor for cheap, where it took long")
}

func TestRoomIsNotGivenBackWhereThatIsDear(t *testing.T) {
	f := newFilling(100*mib, 50, 2)
	f.cost = 2. / (100 * mib)
	for range 200 {
		f.look(mib, 0.1)
	}
	assert.Zero(t, f.own)
}

func TestLittleRoomIsNotGivenBack(t *testing.T) {
	f := newFilling(10*mib, 30, 0.001)
	for range 200 {
		f.look(mib/16, 1)
	}
	assert.Zero(t, f.own)
}

func TestWhatABurstLeftIsGivenBack(t *testing.T) {
	f := newFilling(100*mib, 50, 0.1)
	f.now.free = 60 * mib
	for range 100 {
		f.look(0, 0.1)
	}
	assert.Equal(t, 1, f.own)
	assert.Zero(t, f.now.free)
}

func TestNothingIsCollectedWhereCollectionIsOff(t *testing.T) {
	f := newFilling(100*mib, -1, 0.1)
	f.now.free = 60 * mib
	for range 100 {
		f.look(0, 1)
	}
	assert.Zero(t, f.own)
}

func TestRoomIsGivenBackToTheSystem(t *testing.T) {
	quietEnv(t)
	synctest.Test(t, func(t *testing.T) {
		s := newSubject(&Config{Profile: ProfileMinimal}, tree(nil))
		s.start(t)
		defer s.shutdown(t)
		garbage := make([]byte, 64*mib)
		for i := range garbage {
			garbage[i] = byte(i)
		}
		require.Greater(t, readSample().objects, int64(64*mib))
		var now sample
		for range 100 { // a process's CPU time does not follow a test's clock
			time.Sleep(time.Minute)
			synctest.Wait()
			if now = readSample(); now.free+now.objects-now.live < 8*mib {
				break
			}
			fillWith(new(int))
		}
		assert.Less(t, now.free+now.objects-now.live, int64(8*mib))
	})
}

// fillWith uses some CPU.
func fillWith(n *int) {
	for range 10_000_000 {
		*n++
	}
}
