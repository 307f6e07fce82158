// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/server"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
	"github.com/godwit-otel/godwit/internal/inquiry"
	"github.com/godwit-otel/godwit/internal/origin"
)

// lane is the streams for requests of one origin. A stream names its origin when it is opened, in its headers, and that
// applies to all it carries.
type lane struct {
	*destination

	origin origin.Origin
	// ready hands deliveries to whichever slot has room first.
	ready chan *delivery
	slots []*slot
	turns atomic.Uint64 // of slots with equally much to do
	quit  chan struct{} // closed to end the slots

	// Guarded by the lock of the lanes: how many deliveries use it, and when the last was done.
	users int
	used  time.Time
}

// lanes are all lanes of a destination: the common one, for requests without an origin, and one for each origin with
// something to send, up to a limit.
type lanes struct {
	of     *destination
	common *lane

	mu       sync.Mutex
	byOrigin map[origin.Origin]*lane
	leaving  []*lane // lanes that accept no requests any more and are read to their end
	slots    int     // made so far
	// left is signalled when a delivery is done with a lane, for those who wait for a place.
	left chan struct{}
}

func newLanes(of *destination) *lanes {
	s := &lanes{of: of, byOrigin: map[origin.Origin]*lane{}, left: make(chan struct{}, 1)}
	s.common = s.add("")
	return s
}

const (
	// laneStay is how long an unused lane keeps its place when another needs one: otherwise two that alternate would
	// only open streams. laneIdle is how long it keeps it in any case.
	laneStay, laneIdle = 10 * time.Second, 5 * time.Minute
)

// add makes a lane. The lock is held, or nobody else has the lanes yet.
func (s *lanes) add(o origin.Origin) *lane {
	l := &lane{destination: s.of, origin: o, ready: make(chan *delivery), quit: make(chan struct{}), used: time.Now()}
	if cfg := s.of.cfg; cfg.Mode != server.Unary {
		streams := cfg.Streams
		if cfg.Ordered {
			streams = 1
		}
		for range streams {
			l.slots = append(l.slots, newSlot(l, s.slots))
			s.slots++
		}
	}
	return l
}

func (l *lane) start() {
	for _, s := range l.slots {
		l.running.Go(s.run)
	}
}

// enter returns the lane of an origin, or nil if there is no place for it. The caller must leave it.
func (s *lanes) enter(o origin.Origin, now time.Time) *lane {
	if o == "" {
		return s.common
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.byOrigin[o]
	if l == nil {
		if len(s.byOrigin) >= s.of.cfg.MetadataCardinalityLimit && !s.evict(now) {
			return nil
		}
		l = s.add(o)
		l.start()
		s.byOrigin[o] = l
	}
	l.users++
	return l
}

// enterSoon is enter for requests that can only be streamed: they wait for a place.
func (s *lanes) enterSoon(ctx context.Context, p *delivery) *lane {
	for {
		if l := s.enter(p.origin, time.Now()); l != nil {
			return l
		}
		if s.of.tooOld(p, time.Now()) {
			return nil
		}
		again := time.NewTimer(time.Second)
		select {
		case <-s.left:
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return nil
		}
		again.Stop()
	}
}

// leave records that a delivery is done with its lane.
func (s *lanes) leave(l *lane) {
	if l.origin == "" {
		return
	}
	s.mu.Lock()
	l.users--
	l.used = time.Now()
	s.mu.Unlock()
	select {
	case s.left <- struct{}{}:
	default:
	}
}

// evict frees the place of the lane that was idle for longest, and reports whether there was one.
func (s *lanes) evict(now time.Time) bool {
	var idle *lane
	for _, l := range s.byOrigin {
		if l.users == 0 && (idle == nil || l.used.Before(idle.used)) {
			idle = l
		}
	}
	// If there are only streams, opening one again and again is better than none.
	if idle == nil || s.of.cfg.Mode != server.Stream && now.Sub(idle.used) < laneStay {
		return false
	}
	s.retire(idle)
	return true
}

// retire ends the streams of a lane regularly. The lock is held.
func (s *lanes) retire(l *lane) {
	delete(s.byOrigin, l.origin)
	s.leaving = append(s.leaving, l)
	close(l.quit)
}

// sweep retires lanes that were not used for long, and forgets those whose streams have ended.
func (s *lanes) sweep(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.byOrigin {
		if l.users == 0 && now.Sub(l.used) >= laneIdle {
			s.retire(l)
		}
	}
	s.leaving = slices.DeleteFunc(s.leaving, func(l *lane) bool {
		for _, one := range l.slots {
			if open, draining := one.count(); open+draining > 0 {
				return false
			}
		}
		return true
	})
}

// all are the slots of all lanes.
func (s *lanes) all() []*slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Clone(s.common.slots)
	for _, l := range s.byOrigin {
		all = append(all, l.slots...)
	}
	for _, l := range s.leaving {
		all = append(all, l.slots...)
	}
	return all
}

// origins is the number of origins with a lane.
func (s *lanes) origins() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byOrigin)
}

// quit ends all of them.
func (s *lanes) quit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.common.quit)
	for _, l := range s.byOrigin {
		close(l.quit)
	}
	clear(s.byOrigin)
}

// opening is the context in which a stream of the lane is opened.
func (l *lane) opening(ctx context.Context) *inquiry.Context {
	known, _ := l.origin.Metadata()
	return inquiry.New(transport.WithOrigin(ctx, l.origin), known)
}
