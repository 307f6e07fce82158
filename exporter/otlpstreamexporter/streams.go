// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/account"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/pace"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/server"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// drainsOut is how many consecutive streams the server may end before it has answered anything, until that is logged.
const drainsOut = 5

var errDrained = errors.New("the server ends each stream before it answers anything on it")

// strikesOut is how often a request may break a stream that carries nothing else.
const strikesOut = 3

// open returns the slot's stream, and opens one if there is none. It returns nil if there is nothing to send any more:
// another slot has it, or it was given up.
func (s *slot) open(e *entry, p *delivery) (l *link, ok bool) {
	for {
		s.mu.Lock()
		l, failures := s.current, s.failures
		s.mu.Unlock()
		if l != nil {
			return l, true
		}
		if s.pointless(e, p) {
			return nil, true
		}
		if delay := pace.Reconnect(s.cfg.Retry, failures); delay > 0 {
			// A request with an ID belongs to this slot.
			elsewhere := s.ready
			if e != nil {
				elsewhere = nil
			}
			t := time.NewTimer(delay)
			select {
			case <-t.C:
			case elsewhere <- p:
				t.Stop()
				return nil, true
			case <-s.quit:
				t.Stop()
				return nil, false
			}
		}
		if !s.passGate() {
			return nil, false
		}
		ctx, cancel := context.WithCancel(s.cut)
		asked := s.opening(ctx)
		c, err := s.transport.Open(asked, s.number, s.server.Compression())
		if s.lacksClientData(asked) {
			cancel()
			if err == nil {
				s.running.Go(func() { s.hangUp(c) })
			}
			s.reroute(e, p)
			return nil, true
		}
		if err != nil {
			cancel()
			if s.failed(err, e, p) {
				return nil, s.ctx.Err() == nil
			}
			continue
		}
		now := time.Now()
		l = &link{conn: c, cancel: cancel, opened: now, maxAge: pace.Spread(s.cfg.Rebalance.Timeout, 0.1), deltaAge: pace.Spread(s.cfg.Rebalance.DeltaTimeout, 0.1)}
		s.mu.Lock()
		s.current = l
		s.links = append(s.links, l)
		s.mu.Unlock()
		s.tally.Opened.Add(1)
		s.running.Go(func() { s.read(l) })
		return l, true
	}
}

// pointless reports whether a request has been given up while there was no stream for it, and gives it up if it is too
// old. Requests with an ID are watched elsewhere.
func (s *slot) pointless(e *entry, p *delivery) bool {
	if e != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !s.isWanted(e)
	}
	if s.tooOld(p, time.Now()) {
		p.done <- outcome{verdict: failure, reason: account.RetriesExhausted, err: errors.New("no stream could be opened")}
		return true
	}
	return s.account.Settled(&p.Parcel)
}

// failed handles a stream that could not be opened. It returns true if nothing is left to send on it.
func (s *slot) failed(err error, e *entry, p *delivery) bool {
	s.mu.Lock()
	s.fail()
	s.mu.Unlock()
	if delay, asked := otlpstream.RetryDelay(status.Convert(err)); asked {
		s.server.Throttle(delay)
	}
	if s.refusedOrigin(err) {
		s.mu.Lock()
		defer s.mu.Unlock()
		p.strikes++
		if p.strikes < strikesOut {
			return false
		}
		if e == nil || s.pending.Take(e.ID) != nil {
			p.done <- outcome{verdict: failure, reason: account.Rejected, err: err}
		}
		return true
	}
	if status.Code(err) != codes.Unimplemented || s.cfg.Mode != server.Auto {
		s.server.Fault(time.Now(), err)
		return false
	}
	s.server.KnowsNoStreams(time.Now())
	s.reroute(e, p)
	return true
}

// refusedOrigin reports whether the server refuses the origin of requests, as it would refuse a unary request. That is
// not the destination's fault, and does not keep others waiting.
func (l *lane) refusedOrigin(err error) bool {
	code := status.Code(err)
	return l.origin != "" && (code == codes.Unauthenticated || code == codes.PermissionDenied)
}

// reroute sends a request without a stream.
func (s *slot) reroute(e *entry, p *delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e == nil || s.pending.Take(e.ID) != nil {
		p.done <- outcome{verdict: reroute}
	}
}

// hangUp reads a stream to its end on which nothing is sent.
func (*slot) hangUp(c transport.Conn) {
	var response otlpstream.Response
	for err := error(nil); err == nil; {
		err = c.Recv(&response)
	}
}

// fail records that nothing was acknowledged on a stream. The slot's lock is held.
func (s *slot) fail() {
	s.failures++
	s.failing.Store(true)
}

func (s *slot) answers() {
	if s.failures > 0 {
		s.failures = 0
		s.failing.Store(false)
	}
}

// retire closes our half of the stream if its time is over. Answers to its requests are still to come.
func (s *slot) retire() {
	s.mu.Lock()
	l := s.current
	if l == nil || !l.ended && !l.over(s.cfg.Rebalance, time.Now()) || l.sent == 0 && !l.retiring && !l.ended {
		s.mu.Unlock()
		return
	}
	s.current = nil
	l.closed = time.Now()
	ended := l.ended
	if l.retiring && l.acks == 0 && !l.failed {
		l.failed = true
		s.fail() // the next one may be drained at once, too
	}
	drained := l.failed && s.failures >= drainsOut
	s.mu.Unlock()
	if !ended {
		_ = l.conn.CloseSend()
	}
	if drained {
		s.server.Fault(l.opened, errDrained)
	}
}

// finish closes our half of the last stream.
func (s *slot) finish() {
	s.mu.Lock()
	l := s.current
	if s.current = nil; l != nil {
		l.closed = time.Now()
	}
	s.mu.Unlock()
	if l != nil {
		_ = l.conn.CloseSend()
	}
}

// count returns how many streams accept requests, and how many are only read.
func (s *slot) count() (open, draining int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.links {
		if l == s.current {
			open++
		} else {
			draining++
		}
	}
	return open, draining
}
