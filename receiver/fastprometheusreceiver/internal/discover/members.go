// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"slices"
	"sync"
	"time"
)

// mostBetweenLooks is how long a change among the members may go unnoticed, however seldom they ask for targets.
const mostBetweenLooks = 5 * time.Second

// A round is when a member asks, and when all members take up what they are told.
type round struct {
	asked, at time.Time
}

// members are those among whom a server divides targets, as far as it says who they are. Each member looks at them once in a while, all at nearly the same time. That costs
// little, where to ask for the targets of all jobs costs much.
type members struct {
	mu    sync.Mutex
	names []string  // in order; nil if they are not known
	lost  time.Time // when it was noticed that one of them is there no more
	calls map[chan time.Time]struct{}
}

// looks is how often members look at who they are, if they ask for targets at an interval.
func looks(interval time.Duration) time.Duration { return min(interval, mostBetweenLooks) }

// subscribe returns what says that members hold a round out of turn, and when that began.
func (m *members) subscribe() (calls chan time.Time, unsubscribe func()) {
	calls = make(chan time.Time, 1)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls == nil {
		m.calls = map[chan time.Time]struct{}{}
	}
	m.calls[calls] = struct{}{}
	return calls, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.calls, calls)
	}
}

// are takes up who they are, and tells whether they are others than before. A server that names nobody has only just begun.
func (m *members) are(names []string) (others bool) {
	if len(names) == 0 {
		return false
	}
	slices.Sort(names)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range m.names {
		if _, there := slices.BinarySearch(names, name); !there {
			m.lost = time.Now()
		}
	}
	others = m.names != nil && !slices.Equal(m.names, names)
	m.names = names
	return others
}

// lostSince tells whether one of them has gone since a time, and with it what it had.
func (m *members) lostSince(since time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.lost.IsZero() && !m.lost.Before(since)
}

// call has them all asked for their targets in a round that began at a time.
func (m *members) call(begun time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for calls := range m.calls {
		select {
		case calls <- begun:
		default: // it has yet to follow the last one
		}
	}
}

// Watch looks at who the members are that a server divides targets among. These ask for targets each interval; where that is seldom, and the members are others than before, they ask out of turn.
// In the place of a member that has gone, others begin at once with what was its.
func (s *Source) Watch(interval time.Duration, place uint64, ask func(ctx context.Context) ([]string, error)) {
	every := looks(interval)
	own := time.Duration(place % uint64(max(every/spreadPart, 1)))
	s.done.Go(func() {
		for {
			// After members have asked for targets, and before they take them up: who is told of those of a member that has gone sees that it has.
			after := every/4 + own
			begun := time.Now().Add(-after).Truncate(every).Add(every)
			if !sleep(s.ctx, time.Until(begun.Add(after))) {
				return
			}
			asking, cancel := context.WithTimeout(s.ctx, every)
			names, err := ask(asking)
			cancel()
			if err == nil && s.members.are(names) && every < interval {
				s.members.call(begun)
			}
		}
	})
}
