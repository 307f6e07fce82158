// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
	"github.com/godwit-otel/godwit/internal/inquiry"
	"github.com/godwit-otel/godwit/internal/origin"
)

// lane is the streams of requests of one origin. What opens a stream says whose it is, in its headers, and that holds for
// all it carries.
type lane struct {
	*destination

	origin origin.Origin
	// ready hands deliveries to whichever slot has room first.
	ready chan *delivery
	slots []*slot
	turns atomic.Uint64 // of slots that have the same to do
	quit  chan struct{} // closed to end the slots

	// The lock of the lanes guards how many deliveries use it, and when the last was done.
	users int
	used  time.Time
}

// lanes are all of a destination: the common one, of requests that take nothing along, and one for each origin that has
// something to send, up to a limit.
type lanes struct {
	mu       sync.Mutex
	byOrigin map[origin.Origin]*lane
	leaving  []*lane // those that take no requests any more and are read to their end
	slots    int     // ever made
	// left is told when a delivery is done with a lane, to whoever waits for a place.
	left chan struct{}
}

const (
	// laneStay is how long a lane that nobody uses keeps its place where another needs one: two that take turns would do
	// nothing but open streams. laneIdle is how long it does in any case.
	laneStay, laneIdle = 10 * time.Second, 5 * time.Minute
)

// newLane makes a lane. The lock is held, or nobody else has the destination yet.
func (d *destination) newLane(o origin.Origin) *lane {
	l := &lane{destination: d, origin: o, ready: make(chan *delivery), quit: make(chan struct{}), used: time.Now()}
	if d.cfg.Mode != modeUnary {
		streams := d.cfg.Streams
		if d.cfg.Ordered {
			streams = 1
		}
		for range streams {
			l.slots = append(l.slots, newSlot(l, d.lanes.slots))
			d.lanes.slots++
		}
	}
	return l
}

func (l *lane) start() {
	for _, s := range l.slots {
		l.running.Go(s.run)
	}
}

// enter returns the lane of an origin, or nil where there is no place for it. Who is done with it leaves it.
func (d *destination) enter(o origin.Origin, now time.Time) *lane {
	if o == "" {
		return d.common
	}
	d.lanes.mu.Lock()
	defer d.lanes.mu.Unlock()
	l := d.lanes.byOrigin[o]
	if l == nil {
		if len(d.lanes.byOrigin) >= d.cfg.MetadataCardinalityLimit && !d.evict(now) {
			return nil
		}
		l = d.newLane(o)
		l.start()
		d.lanes.byOrigin[o] = l
	}
	l.users++
	return l
}

// enterSoon is enter for those that have no other way than a stream: they wait for a place.
func (d *destination) enterSoon(ctx context.Context, p *delivery) *lane {
	for {
		if l := d.enter(p.origin, time.Now()); l != nil {
			return l
		}
		if d.tooOld(p, time.Now()) {
			return nil
		}
		again := time.NewTimer(time.Second)
		select {
		case <-d.lanes.left:
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return nil
		}
		again.Stop()
	}
}

// leave notes that a delivery is done with its lane.
func (d *destination) leave(l *lane) {
	if l.origin == "" {
		return
	}
	d.lanes.mu.Lock()
	l.users--
	l.used = time.Now()
	d.lanes.mu.Unlock()
	select {
	case d.lanes.left <- struct{}{}:
	default:
	}
}

// evict gives the place of the lane that has been idle for longest to another, and tells whether there was one.
func (d *destination) evict(now time.Time) bool {
	var idle *lane
	for _, l := range d.lanes.byOrigin {
		if l.users == 0 && (idle == nil || l.used.Before(idle.used)) {
			idle = l
		}
	}
	// Where there are only streams, a stream that is opened again and again is better than none.
	if idle == nil || d.cfg.Mode != modeStream && now.Sub(idle.used) < laneStay {
		return false
	}
	d.retireLane(idle)
	return true
}

// retireLane has the streams of a lane end, as the protocol has it. The lock is held.
func (d *destination) retireLane(l *lane) {
	delete(d.lanes.byOrigin, l.origin)
	d.lanes.leaving = append(d.lanes.leaving, l)
	close(l.quit)
}

// sweep retires lanes that nobody has used for long, and forgets those whose streams have ended.
func (d *destination) sweep(now time.Time) {
	d.lanes.mu.Lock()
	defer d.lanes.mu.Unlock()
	for _, l := range d.lanes.byOrigin {
		if l.users == 0 && now.Sub(l.used) >= laneIdle {
			d.retireLane(l)
		}
	}
	d.lanes.leaving = slices.DeleteFunc(d.lanes.leaving, func(l *lane) bool {
		for _, s := range l.slots {
			if open, draining := s.count(); open+draining > 0 {
				return false
			}
		}
		return true
	})
}

// slots are those of all lanes.
func (d *destination) slots() []*slot {
	d.lanes.mu.Lock()
	defer d.lanes.mu.Unlock()
	all := slices.Clone(d.common.slots)
	for _, l := range d.lanes.byOrigin {
		all = append(all, l.slots...)
	}
	for _, l := range d.lanes.leaving {
		all = append(all, l.slots...)
	}
	return all
}

// origins is how many origins have a lane.
func (d *destination) origins() int {
	d.lanes.mu.Lock()
	defer d.lanes.mu.Unlock()
	return len(d.lanes.byOrigin)
}

// quitLanes ends all of them.
func (d *destination) quitLanes() {
	d.lanes.mu.Lock()
	defer d.lanes.mu.Unlock()
	close(d.common.quit)
	for _, l := range d.lanes.byOrigin {
		close(l.quit)
	}
	clear(d.lanes.byOrigin)
}

// opening is the context in which a stream of the lane is opened.
func (l *lane) opening(ctx context.Context) *inquiry.Context {
	known, _ := l.origin.Metadata()
	return inquiry.New(transport.WithOrigin(ctx, l.origin), known)
}
