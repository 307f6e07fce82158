// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"context"
	"net"
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

// enter takes one of the places for streams, and leave gives it back.
func (r *otlpReceiver) enter(ctx context.Context, client net.Addr) *status.Status {
	select {
	case r.slots <- struct{}{}:
		return r.entered()
	default:
	}
	select {
	case r.waiting <- struct{}{}:
		defer func() { <-r.waiting }()
	default:
		return otlpstream.Busy("too many streams are open, and as many wait", placeDelay)
	}
	wait := time.NewTimer(r.placeWait)
	defer wait.Stop()
	again := time.NewTicker(min(r.placeWait/8, placeWait/8)) // a stream may have become idle since
	defer again.Stop()
	for sought := false; ; {
		if !sought {
			sought = r.makeRoom(hostOfClient(client), time.Now())
		}
		select {
		case r.slots <- struct{}{}: // in the order in which they came
			return r.entered()
		case <-again.C:
		case <-wait.C:
			return otlpstream.Busy("too many streams are open", placeDelay)
		case <-r.stopping:
			return status.New(codes.Unavailable, "the server is shutting down")
		case <-ctx.Done():
			return status.FromContextError(ctx.Err())
		}
	}
}

// entered notes that a stream has its place. Once the receiver stops, no stream begins.
func (r *otlpReceiver) entered() *status.Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		<-r.slots
		return status.New(codes.Unavailable, "the server is shutting down")
	}
	r.streams.Add(1)
	return nil
}

func (r *otlpReceiver) leave() {
	<-r.slots
	r.streams.Done()
}

// makeRoom has a stream end for a client of that host, and tells whether there was one to end.
func (r *otlpReceiver) makeRoom(host string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	var idle *session
	streams := map[string]int{}
	for s := range r.sessions {
		if s.retired {
			continue
		}
		streams[s.host]++
		if s.idleFor(now) >= r.minIdle && (idle == nil || s.idleFor(now) > idle.idleFor(now)) {
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
		for s := range r.sessions {
			if !s.retired && s.host == most && now.Sub(s.since) >= r.minStay && (victim == nil || s.since.Before(victim.since)) {
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
