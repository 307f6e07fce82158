// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"context"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// Where all places for streams are taken, one is freed for who comes: of a stream that has been idle, or else of a client
// that has more streams than others. A client that knows how loses nothing by that: it opens another when it needs one.
const (
	// placeWait is how long a new stream waits for a place, and how long its client is to wait then.
	placeWait, placeDelay = 2 * time.Second, time.Second
	// minIdle is how long a stream has to be idle to be ended, and minStay how long one that is not may stay in any case.
	minIdle, minStay = 2 * time.Second, 10 * time.Second
)

// places are those for streams, and the streams that have them.
type places struct {
	slots   chan struct{} // a token for each stream
	waiting chan struct{} // for those who wait for a place

	// Tests have less patience.
	wait, minIdle, minStay time.Duration

	// stopping is closed to make streams drain.
	stopping chan struct{}

	mu       sync.Mutex
	stopped  bool
	sessions map[*session]struct{}
	streams  sync.WaitGroup // added to from outside only while not stopped
}

func newPlaces(n int) places {
	return places{
		slots: make(chan struct{}, n), waiting: make(chan struct{}, n),
		wait: placeWait, minIdle: minIdle, minStay: minStay,
		stopping: make(chan struct{}), sessions: map[*session]struct{}{},
	}
}

// stop has no stream begin any more, and those there are drain. It reports whether that is news.
func (p *places) stop() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return false
	}
	p.stopped = true
	close(p.stopping)
	return true
}

// enter takes one of the places for streams, and leave gives it back.
func (p *places) enter(ctx context.Context, client net.Addr) *status.Status {
	select {
	case p.slots <- struct{}{}:
		return p.entered()
	default:
	}
	select {
	case p.waiting <- struct{}{}:
		defer func() { <-p.waiting }()
	default:
		return otlpstream.Busy("too many streams are open, and as many wait", placeDelay)
	}
	wait := time.NewTimer(p.wait)
	defer wait.Stop()
	again := time.NewTicker(min(p.wait/8, placeWait/8)) // a stream may have become idle since
	defer again.Stop()
	for sought := false; ; {
		if !sought {
			sought = p.makeRoom(hostOfClient(client), time.Now())
		}
		select {
		case p.slots <- struct{}{}: // in the order in which they came
			return p.entered()
		case <-again.C:
		case <-wait.C:
			return otlpstream.Busy("too many streams are open", placeDelay)
		case <-p.stopping:
			return status.New(codes.Unavailable, "the server is shutting down")
		case <-ctx.Done():
			return status.FromContextError(ctx.Err())
		}
	}
}

// entered records that a stream has its place. Once the receiver stops, no stream begins.
func (p *places) entered() *status.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		<-p.slots
		return status.New(codes.Unavailable, "the server is shutting down")
	}
	p.streams.Add(1)
	return nil
}

func (p *places) leave() {
	<-p.slots
	p.streams.Done()
}

// list shows a stream in snapshots, and unlist ends that.
func (p *places) list(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sessions[s] = struct{}{}
}

func (p *places) unlist(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.sessions, s)
}

// makeRoom has a stream end for a client of that host, and reports whether there was one to end.
func (p *places) makeRoom(host string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var idle *session
	streams := map[string]int{}
	for s := range p.sessions {
		if s.retired {
			continue
		}
		streams[s.host]++
		if s.idleFor(now) >= p.minIdle && (idle == nil || s.idleFor(now) > idle.idleFor(now)) {
			idle = s
		}
	}
	victim := idle
	if victim == nil {
		most := host // who has as many as anybody takes turns with themselves
		for other, n := range streams {
			if n > streams[most] {
				most = other
			}
		}
		for s := range p.sessions {
			if !s.retired && s.host == most && now.Sub(s.since) >= p.minStay && (victim == nil || s.since.Before(victim.since)) {
				victim = s
			}
		}
	}
	if victim == nil {
		return false
	}
	victim.retired = true
	close(victim.retire)
	return true
}

// idleFor is how long a stream has had nothing to do.
func (s *session) idleFor(now time.Time) time.Duration {
	if len(s.slots) > 0 {
		return 0
	}
	return time.Duration(moment(now) - s.active.Load())
}

var begun = time.Now()

// moment is how long the process had lasted at a time, about. What lies between two moments is right whatever the wall clock is set to meanwhile.
func moment(at time.Time) int64 { return int64(at.Sub(begun)) }

// hostOfClient is what tells clients apart.
func hostOfClient(addr net.Addr) string {
	if addr == nil {
		return ""
	}
	return hostOf(addr.String())
}
