// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

// ladder holds the values of GOGC that auto moves between. Few and far apart,
// so that the load's breathing does not move them. Beyond 400 a cycle saved
// costs more memory than the CPU it frees is worth; below 50 the collector
// mostly collects garbage, and GOMEMLIMIT guards better.
var ladder = []int{50, 75, 100, 150, 200, 300, 400}

const (
	firstRung = 2 // 100, the runtime's own default

	// The shares of CPU above and below which a step pays. They are a factor of
	// four apart and rungs less than two: no step is the reason of its reverse.
	busyRatio = 0.02
	idleRatio = 0.005

	// margin keeps a heap that wavers about a threshold from moving a knob to
	// and fro: what was given up for want of memory comes back with some to spare.
	margin = 1.25

	// hostShare is how much of a bare host, in percent, the heap may plan with
	// when nothing says how much of it is ours.
	hostShare = 25

	// Where the live heap leaves the guard less than headroom percent of itself,
	// cycles would follow each other without end; the guard yields instead, up
	// to the last share that leaves the kernel any slack.
	headroom   = 25
	guardStep  = 5
	lastResort = 95

	// Pages of files come and go with what the code does, and a change of GOMEMLIMIT is told in the log. So they are
	// counted in steps, and fewer only when they are fewer by two.
	filesStep = 4 << 20
)

// controller looks for the GOGC that collects least within the memory at hand.
// It goes up one rung at a time, only while collection costs CPU worth saving
// and the heap goal fits; it goes down as far as needed at once.
type controller struct {
	rung  int
	share int64 // of the cgroup's limit, in percent, that GOMEMLIMIT guards
	files int64 // what pages of files are reckoned with
	whole bool  // the live heap needs what the files were to have
}

func newController() controller {
	return controller{rung: firstRung, share: profiles[ProfileAuto].share}
}

// look takes notice of what else there is in memory.
func (a *controller) look(s sample) {
	steps := (s.files + filesStep - 1) / filesStep
	if now := steps * filesStep; now > a.files || now < a.files-filesStep {
		a.files = now
	}
}

// gogc chooses within limit, the GOMEMLIMIT that goes with it.
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
		return ladder[a.rung] // nothing known to reckon with
	}
	// The runtime's goal is live + (live + roots) * GOGC / 100, and the overhead
	// comes on top.
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

// within chooses GOMEMLIMIT from a budget for all the process has resident. Pages of files have their part of it as long as
// the live heap leaves them one: the kernel can take them back, and the heap it cannot.
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

// guard chooses GOMEMLIMIT from the cgroup's limit.
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
