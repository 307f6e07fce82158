// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"slices"
	"sync"
	"time"
)

// mostBetweenLooks is how long a change of the members may go unnoticed, even if they rarely ask for targets.
const mostBetweenLooks = 2 * time.Second

// A round says when a member asks for its targets, and when all members apply the answers.
type round struct {
	asked, at time.Time
}

// A change of the members, from one look at them to the next.
type change int

const (
	unchanged change = iota
	others           // some have come, others may have gone
	fewer            // some have gone: hardly any targets move but theirs, which nobody scrapes
)

// A call asks for an extra round.
type call struct {
	change

	begun time.Time // the look at which the members had changed
}

// members are the collectors among which a server divides targets, as far as it names them. Each member polls the list
// of members, all at nearly the same time. That costs little compared with asking for the targets of all jobs.
type members struct {
	mu    sync.Mutex
	names []string  // sorted; nil if not known
	lost  time.Time // when one of them was last found missing
	calls map[chan call]struct{}
}

// looks is how often members poll the list, given the interval at which they ask for targets.
func looks(interval time.Duration) time.Duration { return min(interval, mostBetweenLooks) }

// subscribe returns a channel with the calls for extra rounds.
func (m *members) subscribe() (calls chan call, unsubscribe func()) {
	calls = make(chan call, 1)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls == nil {
		m.calls = map[chan call]struct{}{}
	}
	m.calls[calls] = struct{}{}
	return calls, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.calls, calls)
	}
}

// are records the members, and returns how they have changed. A server that names nobody has only just started.
func (m *members) are(names []string) change {
	if len(names) == 0 {
		return unchanged
	}
	slices.Sort(names)
	m.mu.Lock()
	defer m.mu.Unlock()
	stayed := 0
	for _, name := range m.names {
		if _, there := slices.BinarySearch(names, name); there {
			stayed++
		} else {
			m.lost = time.Now()
		}
	}
	known, before := m.names != nil, len(m.names)
	m.names = names
	switch {
	case !known || stayed == before && stayed == len(names):
		return unchanged
	case stayed == len(names):
		return fewer
	}
	return others
}

// lostSince reports whether a member has gone since then, together with its targets.
func (m *members) lostSince(since time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.lost.IsZero() && !m.lost.Before(since)
}

// call starts an extra round, in place of one that has not begun.
func (m *members) call(c call) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for calls := range m.calls {
		latest := c
		select {
		case waiting := <-calls:
			if waiting.change == others { // what moves between members that are there must not move at once
				latest.change = others
			}
		default:
		}
		calls <- latest // nobody else sends
	}
}

// Watch polls the list of members among which a server divides targets. If they ask for targets rarely, and the list
// has changed, they hold an extra round, so that others take over the targets of a missing member at once.
func (s *Source) Watch(interval time.Duration, place uint64, ask func(ctx context.Context) ([]string, error)) {
	every := looks(interval)
	own := time.Duration(place % uint64(max(every/spreadPart, 1)))
	s.done.Go(func() {
		for {
			// Polls come after members have asked for targets, and before they apply the answers: whoever is given the
			// targets of a missing member then knows that it is missing.
			after := every/4 + own
			begun := time.Now().Add(-after).Truncate(every).Add(every)
			if !sleep(s.ctx, time.Until(begun.Add(after))) {
				return
			}
			asking, cancel := context.WithTimeout(s.ctx, mostAnswering)
			names, err := ask(asking)
			cancel()
			if err != nil {
				continue
			}
			if c := s.members.are(names); c != unchanged && every < interval {
				s.members.call(call{c, begun})
			}
		}
	})
}
