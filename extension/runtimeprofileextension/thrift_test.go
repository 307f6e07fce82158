// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// process creates garbage at a constant rate: at GOGC 50, collecting it takes a share of its CPU time.
type process struct {
	planner

	now     sample
	share   float64
	garbage float64 // since the last cycle
}

func newProcess(of Profile, liveMiB int64, share float64) *process {
	return &process{planner: newPlanner(&Config{Profile: of}), now: sample{live: liveMiB * mib}, share: share}
}

// look lets the process work for a while and checks it.
func (p *process) look() int {
	const used, cycle = 10, 0.05 // CPU seconds
	work := used * (1 - p.share)
	live := float64(p.now.live)
	garbage := used * p.share / cycle * live / 2
	p.garbage += garbage
	p.now.allocated += int64(garbage)
	p.now.used += work
	for room := live * float64(p.thrift.gogc) / 100; p.garbage >= room; p.garbage -= room {
		p.now.cycles++
		p.now.gcSeconds += cycle
		p.now.used += cycle
		p.now.cpuSeconds = p.now.used
	}
	return p.plan(conditions{budget: budget{host: hostMemory}, sample: p.now}).gogc
}

// settle checks until earlier conditions are forgotten.
func (p *process) settle() (gogc int) {
	for range 8 {
		gogc = p.look()
	}
	return gogc
}

func TestMinimalTakesLessRoomWhereCollectionIsCheap(t *testing.T) {
	f := func(liveMiB int64, share float64, want int) {
		t.Helper()
		p := newProcess(ProfileMinimal, liveMiB, share)
		p.settle()
		for range 20 {
			assert.Equal(t, want, p.look(), "%d MiB, %v", liveMiB, share)
		}
	}
	f(100, 0.001, 15)
	f(100, 0.005, 20)
	f(100, 0.01, 25)
	f(100, 0.02, 35)
	f(100, 0.03, 40)
	f(100, 0.06, 50)
	f(100, 0.30, 50)
	f(1000, 0.001, 15)
	f(30, 0.005, 50) // there is little to save
	f(40, 0.005, 40)
	f(60, 0.005, 25)
	f(20, 0.001, 50)
}

// If other processes disturb the collector, the runtime overestimates its cost.
func TestMinimalTakesNoCycleForDearerThanUsual(t *testing.T) {
	f := func(by float64) int {
		p := newThrift(ProfileMinimal)
		now := sample{live: 100 * mib}
		for range 8 {
			now.cycles++
			now.gcSeconds += by * usualCost * float64(now.live)
			now.allocated += now.live / 2
			now.used += 3
			p.choose(now)
		}
		return p.gogc
	}
	assert.Equal(t, 35, f(0.7))
	assert.Equal(t, 45, f(1))
	assert.Equal(t, 45, f(5))
}

// The optimum: collecting costs as much as the room for garbage is worth, by the price of empty room.
func TestMinimalHasOnePriceForRoom(t *testing.T) {
	for _, garbage := range []float64{0.01, 0.02, 0.04, 0.08} { // the share of the CPU if there is as much room as live memory
		p := newThrift(ProfileMinimal)
		room := p.worthwhile(garbage)
		collecting := garbage / room
		assert.InDelta(t, emptyPrice*room/2, collecting, 1e-9)
		for _, other := range []float64{0.9 * room, 1.1 * room} {
			assert.Greater(t, garbage/other+emptyPrice*other/2, collecting+emptyPrice*room/2)
		}
	}
}

func TestLeanTakesWhatCollectionCosts(t *testing.T) {
	f := func(liveMiB int64, share float64, want int) {
		t.Helper()
		p := newProcess(ProfileLean, liveMiB, share)
		p.settle()
		for range 20 {
			assert.Equal(t, want, p.look(), "%d MiB, %v", liveMiB, share)
		}
	}
	f(100, 0.001, 15)
	f(12, 0.001, 25)
	f(100, 0.02, 25)
	f(100, 0.04, 50)
	f(100, 0.05, 75)
	f(100, 0.10, 150)
	f(100, 0.30, 200)
}

func TestMinimalGivesRoomBackWhenGarbageComes(t *testing.T) {
	p := newProcess(ProfileMinimal, 100, 0.001)
	assert.Equal(t, 15, p.settle())
	p.share = 0.40
	p.look()
	assert.Equal(t, 50, p.look(), "soon")
	p.share = 0.001
	assert.Equal(t, 15, p.settle())
	p.now.live = 20 * mib
	assert.Equal(t, 50, p.look())
}

func TestThriftDoesNotWaver(t *testing.T) {
	for _, of := range []Profile{ProfileMinimal, ProfileLean} {
		for share := 0.005; share < 0.2; share += 0.005 {
			p := newProcess(of, 100, share)
			before := p.settle()
			for i := range 50 {
				p.share = share * (1 + 0.1*float64(i%2))
				now := p.look()
				assert.GreaterOrEqual(t, now, before, "once for more, and not back: %s, %v", of, share)
				before = now
			}
		}
	}
}

// If cycles are minutes apart, much of the room is not needed.
func TestMinimalDoesNotWaitForACycle(t *testing.T) {
	p := newProcess(ProfileMinimal, 100, 0.30) // while it starts
	assert.Equal(t, 50, p.settle())
	p.share = 0.0001
	cycles := p.now.cycles
	assert.Equal(t, 15, p.settle())
	assert.Equal(t, cycles, p.now.cycles)
}

func TestMinimalNeedsACycleToReckonWith(t *testing.T) {
	p := newProcess(ProfileMinimal, 100, 0.0001)
	assert.Equal(t, 50, p.settle())
	assert.Zero(t, p.now.cycles)
}

func TestMinimalLearnsNothingFromHalfACycle(t *testing.T) {
	p := newProcess(ProfileMinimal, 100, 0.01)
	want := p.settle()
	p.now.gcSeconds, p.now.cpuSeconds = p.now.gcSeconds+100, p.now.cpuSeconds+100
	assert.Equal(t, want, p.plan(conditions{sample: p.now}).gogc)
}

func TestWhatIsUsedGrows(t *testing.T) {
	before := readSample()
	room := make([]byte, 1<<20)
	for i := range room {
		room[i] = byte(i)
	}
	after := readSample()
	assert.GreaterOrEqual(t, after.allocated-before.allocated, int64(len(room)))
	assert.GreaterOrEqual(t, after.used, before.used)
	assert.Positive(t, after.used)
}
