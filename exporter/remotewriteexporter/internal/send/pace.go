// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"sync"
	"time"
)

// Rate limits what is sent to a destination per second, delivered or not; 0 is no limit.
type Rate struct {
	Bytes   int // of bodies, after compression
	Samples int // histograms count as one
}

// maxBurst is for how much time an unused rate may be made up for at once.
const maxBurst = time.Second

// pace spaces requests by a Rate. All shards of a destination share one, in the order in which they ask.
type pace struct {
	rate Rate

	mu             sync.Mutex
	bytes, samples time.Time // when all that was allowed so far is within the rate
}

// reserve allows a request, and returns how long it must wait. One that exceeds the rate of a second is allowed, too:
// those after it wait longer.
func (p *pace) reserve(bytes, samples int) time.Duration {
	if p.rate == (Rate{}) {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	return max(0, pay(&p.bytes, now, bytes, p.rate.Bytes), pay(&p.samples, now, samples, p.rate.Samples))
}

// pay moves until by n, and returns how long it takes to reach what was allowed before.
func pay(until *time.Time, now time.Time, n, perSecond int) time.Duration {
	if perSecond == 0 {
		return 0
	}
	if earliest := now.Add(-maxBurst); until.Before(earliest) {
		*until = earliest
	}
	wait := until.Sub(now)
	*until = until.Add(time.Duration(float64(n) / float64(perSecond) * float64(time.Second)))
	return wait
}
