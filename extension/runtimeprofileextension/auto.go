// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

// ladder are the values of GOGC that auto uses. They are few and far apart, so that usual changes of the load do not
// change GOGC. Above 400, a saved cycle costs more memory than its CPU time is worth; below 50, the process mostly
// collects garbage, and GOMEMLIMIT is the better limit.
var ladder = []int{50, 75, 100, 150, 200, 300, 400}

const (
	firstRung = 2 // 100, the runtime's default

	// busyRatio and idleRatio are the shares of CPU above and below which a step is worth it. They differ by a factor
	// of four and adjacent rungs by less than two, so that a step does not cause its reverse.
	busyRatio = 0.02
	idleRatio = 0.005

	// margin prevents a heap close to a threshold from switching a knob to and fro: a value is only restored with room
	// to spare.
	margin = 1.25

	// hostShare is how much of the host's memory, in percent, the heap may use if nothing limits the process.
	hostShare = 25

	// If the live heap leaves less than headroom percent of itself below GOMEMLIMIT, cycles would follow each other
	// without end. Then GOMEMLIMIT is raised in steps of guardStep percent, up to lastResort, which leaves a little for
	// the kernel.
	headroom   = 25
	guardStep  = 5
	lastResort = 95

	// filesStep is the step in which pages of files are counted, since their number depends on what the code does, and
	// a change of GOMEMLIMIT is logged. The count decreases only by two steps or more.
	filesStep = 4 << 20
)

// controller chooses the GOGC with the least collection for the available memory. It goes up one rung at a time, only
// while collection costs CPU worth saving and the heap goal fits; it goes down as far as needed at once.
type controller struct {
	rung  int
	share int64 // share of the cgroup's limit, in percent, that GOMEMLIMIT is set to
	files int64 // the assumed size of resident pages of files
	whole bool  // the live heap needs the memory reserved for files
}

func newController() controller {
	return controller{rung: firstRung, share: profiles[ProfileAuto].share}
}

// look updates the assumed size of files.
func (a *controller) look(s sample) {
	steps := (s.files + filesStep - 1) / filesStep
	if now := steps * filesStep; now > a.files || now < a.files-filesStep {
		a.files = now
	}
}

// gogc chooses GOGC for limit, the GOMEMLIMIT that will be set with it.
func (a *controller) gogc(c conditions, limit int64) int {
	room := limit
	switch {
	case limit == noLimit:
		room = percentOf(c.budget.total(), hostShare)
	case c.budget.cgroup > 0:
		room = min(room, c.budget.cgroup-a.files)
	}
	s := c.sample
	if room <= 0 || s.live+s.roots <= 0 {
		return ladder[a.rung] // nothing is known to compute with
	}
	// The runtime's heap goal is live + (live + roots) * GOGC / 100, to which the overhead is added.
	fits := float64(room-s.overhead-s.live) * 100 / float64(s.live+s.roots)
	switch {
	case fits < float64(ladder[a.rung]):
		for a.rung > 0 && fits < float64(ladder[a.rung]) {
			a.rung--
		}
	case c.gcRatio > busyRatio && a.rung+1 < len(ladder) && fits > margin*float64(ladder[a.rung+1]):
		a.rung++
	case c.gcRatio < idleRatio && a.rung > firstRung:
		a.rung--
	}
	return ladder[a.rung]
}

// within chooses GOMEMLIMIT for a budget of the process's resident memory. Pages of files get their part of it as long
// as the live heap leaves it to them: the kernel can reclaim them, but not the heap.
func (a *controller) within(budget int64, s sample) int64 {
	rest := budget - a.files
	switch {
	case rest < s.need():
		a.whole = true
	case float64(rest) > margin*float64(s.need()):
		a.whole = false
	}
	if a.whole {
		return budget
	}
	return rest
}

// guard chooses GOMEMLIMIT for the cgroup's limit.
func (a *controller) guard(c conditions) int64 {
	need := c.sample.need()
	for a.share < lastResort && percentOf(c.budget.cgroup, a.share) < need {
		a.share += guardStep
	}
	lower := a.share - guardStep
	if lower >= profiles[ProfileAuto].share && float64(percentOf(c.budget.cgroup, lower)) > margin*float64(need) {
		a.share = lower
	}
	return percentOf(c.budget.cgroup, a.share)
}
