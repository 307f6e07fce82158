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

// When all places for streams are taken, one is freed for a new stream: that of an idle stream, or of a client with
// more streams than others. A client that supports this loses nothing: it opens another stream when it needs one.
const (
	// placeWait is how long a new stream waits for a place, and placeDelay how long its client must wait then.
	placeWait, placeDelay = 2 * time.Second, time.Second
	// minIdle is how long a stream must be idle to be ended, and minStay how long a busy one may stay in any case.
	minIdle, minStay = 2 * time.Second, 10 * time.Second
)

// places are the places for streams, and the streams that have them.
type places struct {
	slots   chan struct{} // a token for each stream
	waiting chan struct{} // for those who wait for a place

	// Shorter in tests.
	wait, minIdle, minStay time.Duration

	// stopping is closed to drain all streams.
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

// stop lets no stream begin any more, and drains the others. It reports whether that is new.
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

// enter takes a place, and leave gives it back.
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
		case p.slots <- struct{}{}: // in order of arrival
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

// makeRoom ends a stream for a client of that host, and reports whether there was one to end.
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
		most := host // among those with the most, clients take turns
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

// idleFor is how long a stream has been idle.
func (s *session) idleFor(now time.Time) time.Duration {
	if len(s.slots) > 0 {
		return 0
	}
	return time.Duration(moment(now) - s.active.Load())
}

var begun = time.Now()

// moment is about the time since the process began, which does not jump when the clock is set.
func moment(at time.Time) int64 { return int64(at.Sub(begun)) }

// hostOfClient identifies a client.
func hostOfClient(addr net.Addr) string {
	if addr == nil {
		return ""
	}
	return hostOf(addr.String())
}
