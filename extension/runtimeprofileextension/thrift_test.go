// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// process is one that leaves garbage at a constant rate: at GOGC 50, collecting it takes a share of its CPU.
type process struct {
	planner

	now   sample
	share float64
}

func newProcess(liveMiB int64, share float64) *process {
	return &process{planner: newPlanner(&Config{Profile: ProfileMinimal}), now: sample{live: liveMiB * mib}, share: share}
}

// look lets the process work for a while and looks at it.
func (p *process) look() int {
	work := 10 * (1 - p.share)
	gc := 10 * p.share * 50 / float64(p.thrift.gogc)
	p.now.cycles++
	p.now.gcSeconds += gc
	p.now.cpuSeconds += work + gc
	return p.plan(conditions{budget: budget{host: hostMemory}, sample: p.now}).gogc
}

func TestMinimalTakesLessRoomWhereCollectionIsCheap(t *testing.T) {
	f := func(liveMiB int64, share float64, want int) {
		t.Helper()
		p := newProcess(liveMiB, share)
		p.look()
		for range 20 {
			assert.Equal(t, want, p.look(), "%d MiB, %v", liveMiB, share)
		}
	}
	f(100, 0.01, 15)
	f(100, 0.03, 25)
	f(100, 0.04, 40)
	f(100, 0.07, 50)
	f(100, 0.30, 50)
	f(1000, 0.001, 15)
	f(30, 0.01, 50) // there is little to save
	f(40, 0.01, 40)
	f(60, 0.01, 25)
	f(20, 0.001, 50)
}

func TestMinimalGivesRoomBackWhenGarbageComes(t *testing.T) {
	p := newProcess(100, 0.01)
	p.look()
	assert.Equal(t, 15, p.look())
	p.share = 0.10
	assert.Equal(t, 50, p.look(), "at once")
	p.share = 0.01
	assert.Equal(t, 15, p.look())
	p.now.live = 20 * mib
	assert.Equal(t, 50, p.look())
}

func TestMinimalDoesNotWaver(t *testing.T) {
	for share := 0.005; share < 0.2; share += 0.005 {
		p := newProcess(100, share)
		p.look()
		before := p.look()
		for i := range 50 {
			p.share = share * (1 + 0.1*float64(i%2))
			now := p.look()
			assert.GreaterOrEqual(t, now, before, "once for more, and not back: %v", share)
			before = now
		}
	}
}

func TestMinimalLearnsNothingBetweenCycles(t *testing.T) {
	p := newProcess(100, 0.01)
	p.look()
	want := p.look()
	p.now.gcSeconds, p.now.cpuSeconds = p.now.gcSeconds+100, p.now.cpuSeconds+100 // as if half of a cycle were told
	assert.Equal(t, want, p.plan(conditions{sample: p.now}).gogc)
}
