// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

const mib = 1 << 20

// heap returns the conditions of a process in a 1000 MiB cgroup.
func heap(liveMiB int64, gcRatio float64) conditions {
	return conditions{
		budget:  budget{cgroup: 1000 * mib, host: hostMemory},
		sample:  sample{live: liveMiB * mib, roots: mib, overhead: 10 * mib},
		gcRatio: gcRatio,
	}
}

func autoPlanner() planner { return newPlanner(&Config{Profile: ProfileAuto}) }

func TestAutoClimbsWhileCollectionIsWorthSaving(t *testing.T) {
	p := autoPlanner()
	for _, want := range []int{150, 200, 300, 400, 400} {
		assert.Equal(t, want, p.plan(heap(50, 0.10)).gogc)
	}
	assert.Equal(t, 400, p.plan(heap(50, 0.01)).gogc, "neither busy nor idle: stay")
	for _, want := range []int{300, 200, 150, 100, 100} {
		assert.Equal(t, want, p.plan(heap(50, 0.001)).gogc, "an idle process gives the memory back")
	}
}

func TestAutoStaysWithinTheLimit(t *testing.T) {
	for _, live := range []int64{20, 80, 150, 220, 300, 390, 500} {
		p := autoPlanner()
		var got knobs
		for range 20 {
			got = p.plan(heap(live, 0.10))
		}
		goal := live*mib + (live+1)*mib*int64(got.gogc)/100 + 10*mib
		if got.gogc > ladder[0] {
			assert.LessOrEqual(t, goal, got.limit, "live %d MiB at GOGC %d", live, got.gogc)
		}
	}
}

func TestAutoComesDownAtOnceWhenTheHeapGrows(t *testing.T) {
	p := autoPlanner()
	for range 5 {
		p.plan(heap(50, 0.10))
	}
	assert.Equal(t, 100, p.plan(heap(350, 0.10)).gogc)
	assert.Equal(t, 50, p.plan(heap(700, 0.10)).gogc)
}

func TestAutoGuardYieldsBeforeCyclesRunEndless(t *testing.T) {
	p := autoPlanner()
	f := func(live, want int64) {
		t.Helper()
		assert.Equal(t, percentOf(1000*mib, want), p.plan(heap(live, 0.10)).limit)
	}
	f(100, 80)
	f(600, 80)
	f(650, 85)
	f(700, 90)
	f(900, 95) // nothing is left to give: the memory_limiter or the kernel ends it
	f(640, 95) // not reversed by small changes of the heap
	f(500, 90) // one step at a time
	f(500, 85)
	f(500, 80)
	f(500, 80)
}

func TestAutoCountsPagesOfFilesIn(t *testing.T) {
	p := newPlanner(&Config{Profile: ProfileAuto, MemoryLimit: "100MiB"})
	f := func(live, files, want int64) {
		t.Helper()
		c := conditions{
			budget:  budget{host: hostMemory},
			sample:  sample{live: live * mib, roots: mib, overhead: 10 * mib, files: files * mib},
			gcRatio: 0.10,
		}
		got := p.plan(c)
		assert.Equal(t, want*mib, got.limit)
		if goal := c.sample.live + (c.sample.live+mib)*int64(got.gogc)/100 + c.sample.overhead; got.gogc > ladder[0] {
			assert.LessOrEqual(t, goal, got.limit, "the heap's goal at GOGC %d", got.gogc)
		}
	}
	f(20, 0, 100)
	f(20, 21, 76)
	f(20, 25, 72)
	f(20, 21, 72) // file pages vary: small changes have no effect
	f(20, 20, 80)
	f(20, 16, 80)
	f(50, 16, 80)
	f(60, 16, 100) // the live heap needs it, and the kernel can drop file pages
	f(55, 16, 100)
	f(40, 16, 80)
	f(90, 40, 100)
	f(10, 300, 100)

	p = newPlanner(&Config{Profile: ProfileBalanced, MemoryLimit: "100MiB"})
	f(10, 40, 100) // with other profiles it is GOMEMLIMIT unchanged
}

func TestAutoLeavesACgroupRoomForFiles(t *testing.T) {
	p := autoPlanner()
	c := conditions{
		budget:  budget{cgroup: 100 * mib, host: hostMemory},
		sample:  sample{live: 20 * mib, roots: mib, overhead: 10 * mib, files: 40 * mib},
		gcRatio: 0.10,
	}
	for range 10 {
		p.plan(c)
	}
	assert.Equal(t, knobs{gogc: 100, limit: percentOf(100*mib, 80)}, p.plan(c), "goal and files are 91 MiB; with 150 they would be 102")
	c.sample.files = 0
	for range 10 {
		p.plan(c)
	}
	assert.Equal(t, 150, p.plan(c).gogc)
}

func TestAutoDoesNotWaver(t *testing.T) {
	p := autoPlanner()
	moves, last := 0, knobs{}
	for i := range 200 {
		now := p.plan(heap(255+int64(i%2)*20, 0.10))
		if now != last {
			moves++
		}
		last = now
	}
	assert.LessOrEqual(t, moves, 4)
}

func TestAutoOnABareHostPlansWithAQuarter(t *testing.T) {
	p := autoPlanner()
	c := conditions{
		budget:  budget{host: 4000 * mib},
		sample:  sample{live: 100 * mib, roots: mib, overhead: 10 * mib},
		gcRatio: 0.10,
	}
	for range 10 {
		p.plan(c)
	}
	assert.Equal(t, knobs{gogc: 400, limit: noLimit}, p.plan(c))
	c.sample.live = 400 * mib
	assert.Equal(t, 100, p.plan(c).gogc)
	c.budget = budget{}
	assert.Equal(t, 100, p.plan(c).gogc, "no budget known: nothing moves")
}
