// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"sync"
	"time"
)

// minSplit is the raw size below which a request is not split: if a destination finds that too large, it is not about
// the size.
const minSplit = 4 << 10

// firstPause is how long a ceiling holds before larger requests are tried again. It doubles each time they fail.
const firstPause = 10 * time.Second

// ceiling is the size limit of requests, learned from refused ones. The refusal may have come from a proxy that is
// gone, so now and then twice as much is tried: a request that is refused for its size is sent again in halves, so that
// costs a round trip, and no data.
type ceiling struct {
	size // 0 until a request was too large; mu guards it, too

	longest time.Duration // limit of a pause

	mu sync.Mutex
	// reached says that a request near the ceiling was delivered since the ceiling changed.
	reached bool
	pause   time.Duration
	next    time.Time // when twice as much is tried
	tried   bool      // the ceiling is being tried
	before  size      // the ceiling before that
	most    int       // raw bytes of the largest request that was refused since there is a ceiling
}

// size is the size before compression, and after.
type size struct{ raw, wire int }

// limits returns the ceiling in raw bytes and on the wire; 0 if there is none.
func (c *ceiling) limits() (raw, wire int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.raw, c.wire
}

// refused lowers the ceiling to half of what was too large, or to what it was before a trial.
func (c *ceiling) refused(raw, wire int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.most = max(c.most, raw)
	switch {
	case c.raw != 0 && raw > c.raw:
		return // it was sent before the ceiling was lowered
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

// forget removes the ceiling: requests were not refused for their size.
func (c *ceiling) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size, c.most, c.reached, c.tried = size{}, 0, false, false
}

// delivered records a size that was not too large, and raises the ceiling when that is due. It does not if requests
// stay far below it, since they would gain nothing.
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
		c.tried, c.pause = false, min(firstPause, c.longest) // larger ones pass: even larger ones are tried soon
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
