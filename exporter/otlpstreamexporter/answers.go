// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"cmp"
	"errors"
	"io"
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/config/configcompression"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/account"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/server"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/tally"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// read reads the answers of a stream until it ends.
func (s *slot) read(l *link) {
	defer l.cancel()
	limits, caps := l.conn.Greeting()
	l.keep = s.keep(limits.Keep, caps)
	l.packs.Store(caps&otlpstream.CapWindow != 0 && s.client.Compression == configcompression.TypeZstd)
	l.orders.Store(caps&otlpstream.CapOrdered != 0)
	if s.line != nil {
		s.line.Tell(l.orders.Load())
	}
	if limits.MaxMessage > 0 {
		s.server.Takes(int64(limits.MaxMessage))
	}
	s.mu.Lock()
	l.credit.Limits = limits
	s.mu.Unlock()
	s.wakeUp()
	var response otlpstream.Response
	for {
		if err := l.conn.Recv(&response); err != nil {
			s.ended(l, err)
			return
		}
		s.answered(l, &response)
	}
}

// keep is how much state a stream's packer keeps: as much as the server does, or less.
func (s *slot) keep(granted otlpstream.Keep, caps otlpstream.Caps) otlpstream.Keep {
	if caps&otlpstream.CapDelta == 0 || s.signal != otlpstream.Metrics {
		granted.History = 0
	}
	granted.History = min(granted.History, s.cfg.HistoryBytes)
	return granted
}

// answered ends the deliveries that a response is about.
func (s *slot) answered(l *link, r *otlpstream.Response) {
	now := time.Now()
	drained := r.Drain && r.ID == 0 && len(r.IDs) == 0 // a drained stream without an answer did nothing
	s.server.Streamed()
	if !drained {
		s.server.Answered(now)
	}
	s.mu.Lock()
	s.silences = 0
	if r.Working {
		s.atWork(l, r, now)
		s.mu.Unlock()
		return
	}
	if !drained {
		s.answers()
		l.acks++
	}
	l.retiring = l.retiring || r.Drain
	unexpected := 0
	resolve := func(id uint64) {
		e := s.pending.Take(id)
		if e == nil {
			unexpected++
			return
		}
		if e.Value.link == l {
			l.progress.answered(e.Sent, now)
			s.progress.answered(e.Sent, now)
		}
		s.release(e)
		s.tally.Acked(s.ctx, now.Sub(e.Sent))
		if id == r.ID && r.Code == otlpstream.Success {
			s.partial(e.Value, int(min(r.Rejected, math.MaxInt32)), r.Message, now)
		}
		e.Value.done <- outcomeOf(r)
	}
	if r.ID != 0 || len(r.IDs) == 0 && !r.Drain {
		resolve(r.ID)
	}
	for _, id := range r.IDs {
		resolve(id)
	}
	s.mu.Unlock()
	s.wakeUp()
	if r.Delay > 0 {
		s.server.Throttle(r.Delay)
	}
	if unexpected > 0 {
		s.tally.Unexpected.Add(int64(unexpected))
	}
}

// atWork records that the server still works on requests it has read. Their timeout starts again, and so does that of
// later ones on the stream.
func (s *slot) atWork(l *link, r *otlpstream.Response, now time.Time) {
	l.progress.working(now)
	note := func(id uint64) {
		if e := s.pending.Find(id); e != nil {
			e.Value.working = now
		}
	}
	note(r.ID)
	for _, id := range r.IDs {
		note(id)
	}
}

func outcomeOf(r *otlpstream.Response) outcome {
	switch r.Code {
	case otlpstream.Success:
		return outcome{}
	case otlpstream.FailedNoneRetryable:
		return outcome{verdict: failure, reason: account.Rejected, err: errors.New(r.Message)}
	default:
		return outcome{verdict: retry, delay: r.Delay, err: errors.New(r.Message)}
	}
}

// take removes a request from the table, and from the account of its stream.
func (s *slot) take(id uint64) *entry {
	e := s.pending.Take(id)
	if e != nil {
		s.release(e)
	}
	return e
}

// release removes a request that is no longer in the table from the account of its stream.
func (s *slot) release(e *entry) {
	if l := e.Value.link; l != nil {
		s.giveBack(l, len(e.Value.data))
		e.Value.link = nil
	}
	s.suspects = max(0, s.suspects-1)
}

// ended handles what is pending on a stream that is over.
func (s *slot) ended(l *link, err error) {
	reason := s.reasonOf(l, err)
	s.mu.Lock()
	if reason == tally.Broken && l.acks > 0 && !l.credit.Spent() {
		reason = tally.Idle // ended by a proxy, for example: nothing was pending
	}
	s.mu.Unlock()
	s.tally.Closed[reason].Add(1)
	if delay, asked := otlpstream.RetryDelay(status.Convert(err)); asked && !errors.Is(err, io.EOF) {
		s.server.Throttle(delay)
	}
	reroutes := reason == tally.Unimplemented && s.cfg.Mode == server.Auto
	refused := s.refusedOrigin(err)
	switch {
	case reroutes:
		s.server.KnowsNoStreams(time.Now())
	case refused:
	case reason == tally.Broken || reason == tally.Silent || reason == tally.Unimplemented:
		s.server.Fault(time.Now(), err)
	}
	limit, tooLarge := otlpstream.TooLarge(status.Convert(err))

	s.mu.Lock()
	defer s.wakeUp()
	defer s.mu.Unlock()
	l.ended = true
	s.links = slices.DeleteFunc(s.links, func(other *link) bool { return other == l })
	var left []*entry
	for e := range s.pending.All {
		if e.Value.link == l {
			left = append(left, e)
		}
	}
	if l.acks == 0 && !l.failed && (len(left) > 0 || l.closed.IsZero()) {
		s.fail()
	}
	suspect := len(left) > 0 && !errors.Is(err, io.EOF) && suspicious(err)
	for _, e := range left {
		if suspect && len(left) == 1 || refused {
			e.Value.strikes++
		}
		switch {
		case reroutes:
			s.take(e.ID).Value.done <- outcome{verdict: reroute}
		case tooLarge && (exceeds(e.Value, int64(limit)) || limit == 0 && len(left) == 1):
			s.take(e.ID).Value.done <- s.divide(e.Value, int64(limit))
		case e.Value.strikes >= strikesOut:
			s.take(e.ID).Value.done <- outcome{verdict: failure, reason: account.Rejected, err: err}
		case !s.cfg.ResendUnacked:
			s.take(e.ID).Value.done <- outcome{verdict: failure, reason: account.StreamLost, err: err}
		default:
			e.Value.noteStreamLost(err)
			s.sendAgain(e)
		}
	}
	if suspect {
		s.suspects = len(s.resend)
	}
}

// sendAgain queues a request to be sent once more, under the same ID: whichever answer comes first counts.
func (s *slot) sendAgain(e *entry) {
	s.giveBack(e.Value.link, len(e.Value.data))
	e.Value.link = nil
	s.account.Requeue(&e.Value.Parcel)
	at, _ := slices.BinarySearchFunc(s.resend, e.ID, func(e *entry, id uint64) int { return cmp.Compare(e.ID, id) })
	s.resend = slices.Insert(s.resend, at, e)
}

// maxPatience is how many times ack_timeout doubles for a request that stays unanswered.
const maxPatience = 3

// patience returns how long an answer may take after the given number of resends. A server that is only slow must not
// be flooded with the same data.
func (s *slot) patience(times int) time.Duration { return s.cfg.AckTimeout << min(times, maxPatience) }

// expire resends what is not answered in time, and drops what is too old for that. It ends streams that are silent, and
// those that the server keeps open without need.
func (s *slot) expire(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	expired := false
	for e := range s.pending.All {
		p, l := e.Value, e.Value.link
		if l == nil {
			if s.tooOld(p, now) {
				s.take(e.ID).Value.done <- outcome{
					verdict: failure, reason: account.RetriesExhausted, err: errors.New("it could not be sent again in time"),
				}
			}
			continue
		}
		waited := now.Sub(later(p.overtaken.dueSince(e.Sent, now, &l.progress, &s.progress), p.working))
		silent := p.overtaken.own.IsZero() // nothing is answered on the stream, or the request would have been overtaken
		times := p.unanswered
		if silent {
			times = s.silences
		}
		if l.stuck || waited <= s.patience(times) {
			continue
		}
		expired = true
		if silent {
			if c, ok := l.conn.(transport.Sharing); ok {
				c.Silent(now.Add(-waited))
			}
			l.cancel() // it would be silent for ever
		}
		switch {
		case !s.cfg.ResendUnacked || s.tooOld(p, now):
			s.take(e.ID).Value.done <- outcome{
				verdict: failure, reason: account.AckTimeout, err: errors.New("the server did not answer"),
			}
		case silent: // once it has ended, all that it carries is sent again
			l.stuck = true
			s.silences++
		default:
			p.unanswered++
			p.noteLate(waited)
			s.sendAgain(e)
		}
	}
	for _, l := range s.links {
		if l == s.current && l.sent > 0 && !l.credit.Spent() && l.over(s.cfg.Rebalance, now) {
			expired = true // it is idle: give up its place until there is something to send
		}
		heard, _ := l.progress.snapshot()
		if !l.closed.IsZero() && !l.credit.Spent() && now.Sub(later(l.closed, heard)) > 2*s.cfg.AckTimeout {
			l.cancel()
		}
	}
	if expired {
		s.wakeUp()
	}
}
