// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"sync"
	"time"
)

// Rate bounds what a destination is sent in a second, whatever becomes of it; 0 does not.
type Rate struct {
	Bytes   int // of bodies, after compression
	Samples int // histograms count as one
}

// maxBurst is how much of what was not used may be made up for at once, in time.
const maxBurst = time.Second

// pace keeps requests apart as a Rate says. All shards of a destination keep one, in the order in which they ask.
type pace struct {
	rate Rate

	mu             sync.Mutex
	bytes, samples time.Time // when what has been allowed so far is paid for
}

// reserve allows a request, and says how long it has to wait. One that is larger than a second's worth is allowed all the
// same: those after it wait longer.
func (p *pace) reserve(bytes, samples int) time.Duration {
	if p.rate == (Rate{}) {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	return max(0, pay(&p.bytes, now, bytes, p.rate.Bytes), pay(&p.samples, now, samples, p.rate.Samples))
}

// pay moves on when all is paid for, and says how long it takes to pay for what was allowed before.
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
