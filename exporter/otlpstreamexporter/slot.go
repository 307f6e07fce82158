// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"runtime"
	"sync"
	"time"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

type entry = otlpstream.Entry[*delivery]

// slot is a place for one stream at a time. Only run opens streams and sends on them; each stream has a goroutine that
// reads its answers, even after the slot uses another stream.
type slot struct {
	*lane
	slotState

	number int
	// own hands deliveries to this slot, as the lane's ready does to any.
	own chan *delivery
	// wake signals to run that there is room, or that something must be sent again.
	wake chan struct{}
	// held may delay requests, to send several at once; only run sends.
	held transport.Holding

	mu      sync.Mutex
	pending *otlpstream.Pending[*delivery]
	current *link
	links   []*link // those that have not ended
	// resend has pending requests that are on no stream any more, by ID.
	resend []*entry
	// suspects is how many of the next requests may have broken the last stream. They are sent one by one, to find out
	// which.
	suspects int
	// failures counts consecutive streams on which nothing was acknowledged, and silences those that were ended because
	// nothing at all was received.
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

// another takes a delivery that is already there. If there is none, delayed requests are sent.
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
			runtime.Gosched() // let goroutines hand over a delivery that is nearly there
		}
	}
	s.flush()
	return nil
}

// flush sends delayed requests. It comes before any wait.
func (s *slot) flush() {
	if s.held != nil {
		_ = s.held.Flush() // the reader gets the error
		s.held = nil
	}
}

// waitForRoom waits until another request may be sent, as far as that is known without its size.
func (s *slot) waitForRoom() bool {
	for {
		s.retire()
		s.mu.Lock()
		room := s.current == nil || s.fits(s.current, 0)
		s.mu.Unlock()
		closed := s.gate.Left(time.Now())
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
		if s.isWanted(e) {
			return e
		}
	}
	return nil
}

// isWanted reports whether a request must still be sent: not if it was answered, and not if its caller has given up.
// The caller knows that from an error and may send the data elsewhere, so another attempt would only make duplicates.
// The slot's lock is held.
func (s *slot) isWanted(e *entry) bool {
	if !s.pending.Holds(e) {
		return false
	}
	if s.account.Settled(&e.Value.Parcel) {
		s.take(e.ID)
		return false
	}
	return true
}

// send sends a new delivery, or an entry once more. It returns false if the slot must end.
func (s *slot) send(e *entry, p *delivery) bool {
	if e != nil {
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
		message, is := s.assign(l, e, p)
		switch is {
		case assigned:
			s.write(l, p, &message)
			return true
		case unwanted:
			return true
		case closed:
			return false
		case streamEnds:
			s.retire()
		case streamIsFull:
			s.flush()
			select {
			case <-s.wake:
			case <-s.quit:
				return false
			}
		}
	}
}

// assignment is whether a request may be sent on a stream.
type assignment int

const (
	assigned     assignment = iota
	unwanted                // it need not be sent any more
	closed                  // nothing is sent any more
	streamEnds              // another stream is needed
	streamIsFull            // requests sent before must be answered first
)

// assign gives a request a number on a stream, and takes room there.
func (s *slot) assign(l *link, e *entry, p *delivery) (message otlpstream.Request, is assignment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case l.ended || l.retiring:
		return message, streamEnds
	case e != nil && !s.isWanted(e):
		return message, unwanted
	case !s.fits(l, len(p.data)):
		return message, streamIsFull
	case !s.account.Send(&p.Parcel):
		return message, closed
	}
	if now := time.Now(); e != nil {
		s.pending.Resent(e, now)
	} else {
		e = s.pending.Add(p, now)
	}
	message = otlpstream.Request{ID: e.ID, Data: p.data, Memory: p.memory, Items: uint64(p.Items), Attempt: p.sent}
	if s.propagates {
		message.Trace = p.traceContext()
	}
	p.memory.Retain() // a server may answer before it has read the request
	p.sent++
	p.link, p.overtaken = l, overtakings{}
	l.sent++
	l.bytes += int64(len(p.data))
	s.spend(l, len(p.data))
	return message, assigned
}

// write writes a request that was assigned to a stream.
func (s *slot) write(l *link, p *delivery, message *otlpstream.Request) {
	if message.Attempt > 0 {
		s.tally.Resent.Add(1)
	}
	p.noteStreamed(s.number, message.ID, message.Attempt)
	if l.packs.Load() && worthPacking(s.signal, len(p.data)) {
		if l.packer == nil {
			l.packer = l.keep.NewPacker()
			l.learned.Store(l.keep.History > 0)
		}
		l.packer.Pack(message)
	}
	// An error means that the stream is over; its reader gets the reason.
	_ = l.conn.Send(message)
	p.memory.Release()
	s.held, _ = l.conn.(transport.Holding)
}

// worthPacking reports whether packing a payload is worthwhile. A large batch of spans or log records has nearly all
// repetitions within itself, so packing would only cost more.
func worthPacking(signal otlpstream.Signal, size int) bool {
	const largeBatch = 16 << 10
	return signal == otlpstream.Metrics || size <= largeBatch
}

// spend records that bytes are sent on a stream, giveBack that they are answered, or lost. The slot's lock is held.
func (s *slot) spend(l *link, bytes int) {
	l.credit.Spend(bytes)
	s.unanswered.Add(int64(bytes))
}

func (s *slot) giveBack(l *link, bytes int) {
	l.credit.Return(bytes)
	s.unanswered.Add(-int64(bytes))
}

func (s *slot) passGate() bool {
	if s.gate.Left(time.Now()) > 0 {
		s.flush()
	}
	return s.gate.Wait(s.ctx) == nil
}

// fits reports whether the stream may carry another request now.
func (s *slot) fits(l *link, bytes int) bool {
	unanswered := l.credit
	if s.cfg.Ordered {
		for _, other := range s.links {
			if other != l && other.credit.Spent() {
				return false // servers keep the order within a stream, but not between streams
			}
		}
	}
	if s.suspects > 0 || s.cfg.Ordered && !l.orders.Load() {
		unanswered.Requests = 1
	}
	return unanswered.Fits(bytes)
}

func (s *slot) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
