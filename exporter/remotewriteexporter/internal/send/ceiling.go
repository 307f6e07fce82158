// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"sync"
	"time"
)

// minSplit is the raw size below which a request is not split: to whoever finds that too large, it is not the size.
const minSplit = 4 << 10

// firstPause is how long a ceiling holds before larger requests are tried again. It doubles each time they fail.
const firstPause = 10 * time.Second

// ceiling is the size that requests stay within because larger ones were refused. What was too large once may have been so
// by a proxy that has gone, so from time to time twice as much is tried: a request that is refused for its size is sent in
// halves, so that costs a trip, and no data.
type ceiling struct {
	size // 0 while nothing was too large; mu guards it, too

	longest time.Duration // a pause can last

	mu sync.Mutex
	// reached is whether a request near the ceiling was delivered since the ceiling changed.
	reached bool
	pause   time.Duration
	next    time.Time // when twice as much is tried
	tried   bool      // the ceiling is a trial
	before  size      // the trial
	most    int       // raw bytes of the largest request that was refused since there is a ceiling
}

// size is bytes before compression, and after.
type size struct{ raw, wire int }

// limits returns the ceiling in raw bytes and on the wire; 0 where there is none.
func (c *ceiling) limits() (raw, wire int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.raw, c.wire
}

// refused lowers the ceiling to half of what was too large, or to where it was before a trial.
func (c *ceiling) refused(raw, wire int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.most = max(c.most, raw)
	switch {
	case c.raw != 0 && raw > c.raw:
		return // it was on its way before the ceiling was lowered
	case c.tried && raw > c.before.raw:
		c.size = c.before
		c.pause = min(2*c.pause, c.longest)
	default:
		c.size = size{max(raw/2, minSplit), max(wire/2, minSplit)}
		c.pause = min(firstPause, c.longest)
	}
	c.reached, c.tried = false, false
	c.next = time.Now().Add(jitter(c.pause, 0.2))
}

// forget ends the ceiling: what was refused was not so for its size.
func (c *ceiling) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size, c.most, c.reached, c.tried = size{}, 0, false, false
}

// delivered notes a size that was not too large, and raises the ceiling when that is due. Requests that stay far below it
// would gain nothing by that.
func (c *ceiling) delivered(raw, wire int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.raw == 0 {
		return
	}
	c.reached = c.reached || raw > c.raw/2 || wire > c.wire/2
	if !c.reached {
		return
	}
	now := time.Now()
	if c.tried {
		c.tried, c.pause = false, min(firstPause, c.longest) // larger ones pass: soon even larger ones are tried
		c.next = now.Add(c.pause / 16)
	}
	if now.Before(c.next) {
		return
	}
	if c.raw >= c.most { // nothing larger was ever refused
		c.size, c.most = size{}, 0
		return
	}
	c.before = c.size
	c.size = size{2 * c.raw, 2 * c.wire}
	c.tried, c.reached = true, false
}
