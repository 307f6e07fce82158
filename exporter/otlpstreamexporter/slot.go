// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// drainsOut is how many streams in a row are ended by the server before it has answered anything on them, until the log says so.
const drainsOut = 5

var errDrained = errors.New("the server ends each stream before it answers anything on it")

// strikesOut is how often a request may break a stream that carries nothing else.
const strikesOut = 3

type entry = otlpstream.Entry[*delivery]

// slot is a place for one stream at a time. run alone opens streams and sends on them; each stream has a goroutine
// that reads its answers, also when the slot uses another stream already.
type slot struct {
	*lane
	standing

	number int
	// own hands deliveries to this slot, as ready of the lane does to any.
	own chan *delivery
	// wake tells run that there is room, or that something is to be sent again.
	wake chan struct{}
	// held is what may keep requests back, to send several at once; only run sends.
	held holding

	mu      sync.Mutex
	pending *otlpstream.Pending[*delivery]
	current *link
	links   []*link // all that have not ended
	// resend has what is pending on no stream any more, by ID.
	resend []*entry
	// suspects is how many of the requests that are sent next may have broken the last stream. They are sent one by
	// one, so that it shows.
	suspects int
	// failures counts the streams in a row on which nothing was acknowledged, and silences those that were ended because
	// nothing at all was heard on them.
	failures, silences int
}

func newSlot(l *lane, number int) *slot {
	return &slot{
		lane: l, number: number, own: make(chan *delivery),
		wake:    make(chan struct{}, 1),
		pending: otlpstream.NewPending[*delivery](),
	}
}

func (s *slot) run() {
	defer s.finish()
	for {
		if !s.waitForRoom() {
			return
		}
		e, p := s.next(), (*delivery)(nil)
		if e == nil {
			p = s.another()
		}
		if e == nil && p == nil {
			select {
			case p = <-s.own:
			case p = <-s.ready:
			case <-s.wake:
				continue
			case <-s.quit:
				return
			}
		}
		if !s.send(e, p) {
			return
		}
	}
}

// another takes a delivery that is there already. Where there is none, what is kept back is sent.
func (s *slot) another() *delivery {
	for range 2 {
		select {
		case p := <-s.own:
			return p
		case p := <-s.ready:
			return p
		default:
			if s.held == nil {
				return nil
			}
			runtime.Gosched() // who is about to have one may hand it over
		}
	}
	s.flush()
	return nil
}

// flush sends what is kept back. It comes before any wait.
func (s *slot) flush() {
	if s.held != nil {
		_ = s.held.flush() // an error is told to who reads
		s.held = nil
	}
}

// waitForRoom waits until another request may be sent, as far as is known without seeing it.
func (s *slot) waitForRoom() bool {
	for {
		s.retire()
		s.mu.Lock()
		room := s.current == nil || s.fits(s.current, 0)
		s.mu.Unlock()
		closed := s.gate.left(time.Now())
		if room && closed <= 0 {
			s.full.Store(false)
			return true
		}
		s.full.Store(true)
		s.flush()
		var opens <-chan time.Time
		if closed > 0 {
			opens = time.After(closed)
		}
		select {
		case <-s.wake:
		case <-opens:
		case <-s.ctx.Done():
			return false
		}
	}
}

// next takes a request that is to be sent again.
func (s *slot) next() *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.resend) > 0 {
		e := s.resend[0]
		s.resend = s.resend[1:]
		if s.pending.Holds(e) {
			return e
		}
	}
	return nil
}

// send sends a new delivery, or an entry once more. It returns false when the slot is to end.
func (s *slot) send(e *entry, p *delivery) bool {
	again := e != nil
	if again {
		p = e.Value
	}
	for {
		if !s.passGate() {
			return false
		}
		l, ok := s.open(e, p)
		if !ok {
			return false
		}
		if l == nil {
			return true
		}
		s.mu.Lock()
		if l.ended || l.retiring {
			s.mu.Unlock()
			s.retire()
			continue
		}
		if again && !s.pending.Holds(e) {
			s.mu.Unlock()
			return true // answered or given up meanwhile
		}
		if !s.fits(l, len(p.data)) {
			s.mu.Unlock()
			s.flush()
			select {
			case <-s.wake:
				continue
			case <-s.quit:
				return false
			}
		}
		if !s.account.send(p) {
			s.mu.Unlock()
			return false
		}
		now := time.Now()
		if again {
			s.pending.Resent(e, now)
		} else {
			e = s.pending.Add(p, now)
		}
		message := otlpstream.Request{ID: e.ID, Data: p.data, Memory: p.memory, Items: uint64(p.items), Attempt: p.sent}
		if s.propagates {
			message.Trace = p.traceContext()
		}
		p.memory.Retain() // a server may answer what it has not seen yet
		p.sent++
		p.link, p.overtaken = l, overtakings{}
		l.sent++
		l.bytes += int64(len(p.data))
		s.spend(l, len(p.data))
		s.mu.Unlock()

		if message.Attempt > 0 {
			s.tally.resent.Add(1)
		}
		p.noteStreamed(s.number, message.ID, message.Attempt)
		if l.packs.Load() && worthPacking(s.signal, len(p.data)) {
			if l.packer == nil {
				l.packer = l.keep.NewPacker()
				l.learned.Store(l.keep.History > 0)
			}
			l.packer.Pack(&message)
		}
		// An error says that the stream is over; why, the goroutine that reads it is told.
		_ = l.conn.send(&message)
		p.memory.Release()
		s.held, _ = l.conn.(holding)
		return true
	}
}

// worthPacking tells whether a payload is packed where the server unpacks. A large batch of spans or log records has
// nearly all there is to find within itself, so it would only cost more.
func worthPacking(signal otlpstream.Signal, size int) bool {
	const largeBatch = 16 << 10
	return signal == otlpstream.Metrics || size <= largeBatch
}

// spend notes that so many bytes are sent on a stream, giveBack that they are answered, or lost. The slot's lock is held.
func (s *slot) spend(l *link, bytes int) {
	l.credit.Spend(bytes)
	s.unanswered.Add(int64(bytes))
}

func (s *slot) giveBack(l *link, bytes int) {
	l.credit.Return(bytes)
	s.unanswered.Add(-int64(bytes))
}

// fail notes that a stream has come to nothing, and answers that it has not. The slot's lock is held.
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

func (s *slot) passGate() bool {
	if s.gate.left(time.Now()) > 0 {
		s.flush()
	}
	return s.gate.wait(s.ctx) == nil
}

// fits tells whether the stream may carry another request now.
func (s *slot) fits(l *link, bytes int) bool {
	unanswered := l.credit
	if s.cfg.Ordered {
		for _, other := range s.links {
			if other != l && other.credit.Spent() {
				return false // a server knows the order of a stream, and none among streams
			}
		}
	}
	if s.suspects > 0 || s.cfg.Ordered && !l.orders.Load() {
		unanswered.Requests = 1
	}
	return unanswered.Fits(bytes)
}

// pointless tells whether a request has been given up while there was no stream for it, and gives it up if it is too
// old. Those that have an ID are watched in any case.
func (s *slot) pointless(e *entry, p *delivery) bool {
	if e != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !s.pending.Holds(e)
	}
	if s.tooOld(p, time.Now()) {
		p.done <- outcome{verdict: failure, reason: dropRetriesExhausted, err: errors.New("no stream could be opened")}
		return true
	}
	return s.account.isSettled(p)
}

// open returns the slot's stream, and opens one where there is none. It returns nil when there is nothing to send on
// it any more: another slot has it, or it was given up.
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
		if delay := reconnect(s.cfg.Retry, failures); delay > 0 {
			// What has an ID belongs to this slot.
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
		c, err := s.transport.open(asked, s.number, s.fallback.inUse())
		if s.inVain(asked) {
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
		l = &link{conn: c, cancel: cancel, opened: now, maxAge: spread(s.cfg.Rebalance.Timeout, 0.1), deltaAge: spread(s.cfg.Rebalance.DeltaTimeout, 0.1)}
		s.mu.Lock()
		s.current = l
		s.links = append(s.links, l)
		s.mu.Unlock()
		s.tally.opened.Add(1)
		s.running.Go(func() { s.read(l) })
		return l, true
	}
}

// failed notes that a stream could not be opened. It returns true when nothing is left to be sent on it.
func (s *slot) failed(err error, e *entry, p *delivery) bool {
	s.mu.Lock()
	s.fail()
	s.mu.Unlock()
	if delay, asked := otlpstream.RetryDelay(status.Convert(err)); asked {
		s.throttle(delay)
	}
	if s.refusedOrigin(err) {
		s.mu.Lock()
		defer s.mu.Unlock()
		p.strikes++
		if p.strikes < strikesOut {
			return false
		}
		if e == nil || s.pending.Take(e.ID) != nil {
			p.done <- outcome{verdict: failure, reason: dropRejected, err: err}
		}
		return true
	}
	if status.Code(err) != codes.Unimplemented || s.cfg.Mode != modeAuto {
		s.health.fault(s.destination, time.Now(), err)
		return false
	}
	s.refused()
	s.reroute(e, p)
	return true
}

// refusedOrigin tells whether the server has something against the origin of requests, as it would have of a unary request.
// That is no fault of the destination's, and does not keep others waiting.
func (l *lane) refusedOrigin(err error) bool {
	code := status.Code(err)
	return l.origin != "" && (code == codes.Unauthenticated || code == codes.PermissionDenied)
}

// reroute has a request sent without a stream.
func (s *slot) reroute(e *entry, p *delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e == nil || s.pending.Take(e.ID) != nil {
		p.done <- outcome{verdict: reroute}
	}
}

// hangUp reads a stream to its end that nothing is sent on.
func (*slot) hangUp(c conn) {
	var response otlpstream.Response
	for err := error(nil); err == nil; {
		err = c.recv(&response)
	}
}

func (s *slot) refused() {
	if s.modes.refused(time.Now()) {
		s.set.Logger.Info("The server knows no streams: requests are sent one by one",
			zap.String("endpoint", s.client.Endpoint), zap.Duration("reprobe_interval", s.cfg.ReprobeInterval))
	}
}

// retire closes our half of the stream if its time is over. Answers to what it carried are still to come.
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
		s.fail() // the next may be drained at once, too
	}
	drained := l.failed && s.failures >= drainsOut
	s.mu.Unlock()
	if !ended {
		_ = l.conn.closeSend()
	}
	if drained {
		s.health.fault(s.destination, l.opened, errDrained)
	}
}

// finish closes our half of the last stream.
func (s *slot) finish() {
	s.mu.Lock()
	l := s.current
	s.current = nil
	s.mu.Unlock()
	if l != nil {
		_ = l.conn.closeSend()
	}
}

func (s *slot) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// count returns how many streams take requests, and how many are only read.
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
