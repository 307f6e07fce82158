// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"sync/atomic"
	"time"
)

// Pace is a rate with a burst of one minute. Its state for a group is a single instant: when the group would have used
// up all that it took at an even pace. The zero pace is no limit.
type Pace struct {
	Each time.Duration // time between two
}

func perMinute(n int) Pace {
	if n == 0 {
		return Pace{}
	}
	return Pace{Each: max(time.Minute/time.Duration(n), 1)}
}

// Take returns the instant after taking one more, and whether that is allowed.
func (p Pace) Take(used, now int64) (int64, bool) {
	if used > now+2*int64(time.Minute) { // the clock was set back
		used = now
	}
	used = max(used, now) + int64(p.Each)
	return used, used <= now+int64(time.Minute)
}

// Spent is how much of the minute is used, given the instant.
func (p Pace) Spent(used, now int64) int64 {
	if used > now+2*int64(time.Minute) { // as in Take
		return 0
	}
	return max(0, used-now)
}

// TakeShared takes one from an instant that is shared.
func (p Pace) TakeShared(used *atomic.Int64, now int64) bool {
	for {
		before := used.Load()
		after, ok := p.Take(before, now)
		if !ok {
			return false
		}
		if used.CompareAndSwap(before, after) {
			return true
		}
	}
}

// GiveBack undoes TakeShared.
func (p Pace) GiveBack(used *atomic.Int64) { used.Add(-int64(p.Each)) }
