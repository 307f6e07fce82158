// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"sync/atomic"
	"time"
)

// pace is a rate with a burst of one minute's worth. All that it needs to remember of a group is one instant: when the
// group would have used up all that it took at an even pace. The zero pace is no limit.
type pace struct {
	each time.Duration // between two
}

func perMinute(n int) pace {
	if n == 0 {
		return pace{}
	}
	return pace{each: max(time.Minute/time.Duration(n), 1)}
}

// take returns the instant after one more was taken, and whether it may be.
func (p pace) take(used, now int64) (int64, bool) {
	if used > now+2*int64(time.Minute) { // the clock went back
		used = now
	}
	used = max(used, now) + int64(p.each)
	return used, used <= now+int64(time.Minute)
}

// takeShared takes one from an instant that others take from, too.
func (p pace) takeShared(used *atomic.Int64, now int64) bool {
	for {
		before := used.Load()
		after, ok := p.take(before, now)
		if !ok {
			return false
		}
		if used.CompareAndSwap(before, after) {
			return true
		}
	}
}

// giveBack undoes takeShared.
func (p pace) giveBack(used *atomic.Int64) { used.Add(-int64(p.each)) }

// toll is what the points of a series in a group have to pay.
type toll struct {
	limit *limit
	pace  pace
	group *group
}

// pay takes a point's share from all rates that apply to its series, or from none.
func (s *set) pay(now int64) verdict {
	for i, t := range s.tolls {
		if !t.pace.takeShared(&t.group.points, now) {
			for _, paid := range s.tolls[:i] {
				paid.pace.giveBack(&paid.group.points)
			}
			return verdict{limit: t.limit, reason: reasonPointsRate}
		}
	}
	return verdict{}
}

// paid is what points of a batch have paid, who get it back if the batch is not accepted.
type paid struct {
	set    *set
	points int64
}

// pays notes that a point of a series has paid.
func (b *batch) pays(s *set) {
	if n := len(b.paid); n > 0 && b.paid[n-1].set == s {
		b.paid[n-1].points++
		return
	}
	b.paid = append(b.paid, paid{set: s, points: 1})
}

// refund gives back what points have paid that did not pass after all.
func (p paid) refund() {
	for _, t := range p.set.tolls {
		t.group.points.Add(-p.points * int64(t.pace.each))
	}
}
