// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"sync"
	"time"
)

// Past keeps two earlier readings, so that one of them is always suitable for rates: not so recent that rates jump, and
// not so old that they are out of date.
type Past[T any] struct {
	mu           sync.Mutex
	older, newer kept[T]
}

type kept[T any] struct {
	at    time.Time
	value T
	set   bool
}

// Interval is the time between two readings that are kept, and between two points of the history.
const Interval = 10 * time.Second

const (
	leastAge = time.Second
	// MostAge is the maximum age of a reading that rates are computed from.
	MostAge = 40 * time.Second
)

// Since returns an earlier reading and its age, if there is one, and may keep the present one for later.
func (p *Past[T]) Since(now time.Time, value T) (before T, age time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, earlier := range []*kept[T]{&p.older, &p.newer} {
		if age = now.Sub(earlier.at); earlier.set && age >= leastAge && age <= MostAge {
			before = earlier.value
			break
		}
		age = 0
	}
	// Slightly less than the interval, because a tick may be late and the next one not.
	if !p.newer.set || now.Sub(p.newer.at) >= Interval*9/10 {
		p.older = p.newer
		p.newer = kept[T]{now, value, true}
	}
	return before, age
}
