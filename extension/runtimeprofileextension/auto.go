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
)

// controller looks for the GOGC that collects least within the memory at hand.
// It goes up one rung at a time, only while collection costs CPU worth saving
// and the heap goal fits; it goes down as far as needed at once.
type controller struct {
	rung  int
	share int64 // of the cgroup's limit, in percent, that GOMEMLIMIT guards
}

func newController() controller {
	return controller{rung: firstRung, share: profiles[ProfileAuto].share}
}

// gogc chooses within limit, the GOMEMLIMIT that goes with it.
func (a *controller) gogc(c conditions, limit int64) int {
	room := limit
	if limit == noLimit {
		room = percentOf(c.budget.total(), hostShare)
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

// guard chooses GOMEMLIMIT from the cgroup's limit.
func (a *controller) guard(c conditions) int64 {
	need := c.sample.overhead + c.sample.live + percentOf(c.sample.live, headroom)
	for a.share < lastResort && percentOf(c.budget.cgroup, a.share) < need {
		a.share += guardStep
	}
	lower := a.share - guardStep
	if lower >= profiles[ProfileAuto].share && float64(percentOf(c.budget.cgroup, lower)) > margin*float64(need) {
		a.share = lower
	}
	return percentOf(c.budget.cgroup, a.share)
}
