// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/godwit-otel/godwit/internal/promwrite"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

// fate is the result of a request.
type fate uint8

const (
	open   fate = iota // not decided: another attempt follows
	sealed             // delivered or dropped
	apart              // must be sent in pieces
	late               // the merged blocks take too long together
)

// ending is the fate of a request and, when it is sealed, the error if its data is lost.
type ending struct {
	fate fate
	lost error
}

// delivery is the work on one request.
type delivery struct {
	*Destination
	ends

	block  block.Block
	its    term
	merged bool // from several blocks

	sent    block.Block // the block in the format of the last attempt
	attempt int
	spread  float64
	last    answer
	tried   formatSet // formats in which the block was refused
	doubted *doubt
	paged   time.Time // when a web page first refused the block
}

// deliver sends one request until its fate is sealed, or until it must be sent in pieces. A merged request must be
// whenever all of it would be dropped, since some of its blocks may be fine.
func (d *Destination) deliver(end ends, b block.Block, its term, merged bool) (e ending, err error) {
	s := delivery{Destination: d, ends: end, block: b, its: its, merged: merged, sent: b, spread: d.cfg.Retry.spread()}
	if d.tenanted(b) {
		s.recallAttempts()
	}
	for e.fate == open && err == nil {
		e, err = s.try()
	}
	return e, err
}

// recallAttempts continues with the attempts of earlier times: a tenant that is refused does not wait here.
func (s *delivery) recallAttempts() {
	s.attempt, s.its.started = s.served.attempts(s.block.Tenant, s.its.started)
	if s.its.queued.After(s.its.started) { // what was refused before was other data
		s.its.started = s.its.queued
	}
	if s.attempt > 0 {
		s.paged = s.its.started
	}
}

// try makes one attempt. If the fate remains open it has waited for the next one.
func (s *delivery) try() (ending, error) {
	if err := s.enter(); err != nil {
		return ending{}, err
	}
	format, ok := s.formats.choose(s.block.Version, s.tried)
	if !ok && s.doubted != nil {
		s.last = s.doubted.refused
	}
	reason := s.expired(s.its, s.attempt)
	switch {
	case reason != "":
	case ok:
		reason = s.encode(format)
	case s.mayEnd(s.block, s.last, &s.paged):
		return ending{}, s.startOver()
	case s.last.code/100 == 2:
		reason = ReasonUnwritten
	default:
		reason = ReasonRejected
	}
	if reason != "" {
		s.gate.leave()
		return s.giveUp(reason), nil
	}

	began := time.Now()
	a := s.exchange(s.requests, s.sent, s.attempt)
	switch {
	case a.unnamed:
		s.gate.leave()
		return ending{sealed, s.drop(s.block.Header, ReasonTenant, a)}, nil
	case s.requests.Err() != nil && a.code == 0:
		s.gate.leave()
		return ending{}, fmt.Errorf("cannot finish the request: %w", context.Cause(s.requests))
	}
	s.last = a
	v := s.verdictOn(a, format)
	if s.tenanted(s.block) && s.goesBack(v, a) {
		return ending{}, s.later(s.block.Tenant, v, a, began)
	}
	s.report(v, a)
	return s.conclude(v, a, format)
}

// enter waits until a request may be sent.
func (s *delivery) enter() error {
	if wait := s.pace.reserve(len(s.sent.Body()), s.sent.Samples+s.sent.Histograms); wait > 0 {
		s.telemetry.Paced()
		if err := sleep(s.pauses, wait); err != nil {
			return err
		}
	}
	return s.gate.enter(s.pauses)
}

// encode makes what is sent, and returns the reason to drop the block instead.
func (s *delivery) encode(format int) (reason string) {
	var err error
	s.sent, err = rewrite(s.block, s.sent, s.cfg.Formats[format])
	switch isEmpty := err != nil || s.sent.Samples+s.sent.Histograms+s.sent.Metadata == 0; {
	case isEmpty && s.doubted != nil:
		s.last = s.doubted.refused
		return ReasonRejected
	case isEmpty:
		s.last = answer{err: err}
		return ReasonFormat
	}
	return ""
}

// startOver waits, and has all formats tried once more.
func (s *delivery) startOver() error {
	if s.tenanted(s.block) {
		return s.later(s.block.Tenant, retrySlowly, s.last, time.Now())
	}
	s.report(retrySlowly, s.last)
	if err := s.again(retrySlowly, s.last); err != nil {
		return err
	}
	s.tried, s.doubted = 0, nil
	return nil
}

// giveUp drops the block, unless it is merged.
func (s *delivery) giveUp(reason string) ending {
	if s.merged {
		return ending{fate: apart}
	}
	s.served.well(s.block.Tenant)
	return ending{sealed, s.drop(s.block.Header, reason, s.last)}
}

// verdictOn returns what an answer means after those before it.
func (s *delivery) verdictOn(a answer, format int) verdict {
	v := s.judge(a, format)
	if a.mayBeFormat() {
		s.formats.failed(format)
	}
	switch {
	case s.doubted.settles(v, a):
		return unsupported
	case v == rejected && s.mayEnd(s.block, a, &s.paged):
		return retrySlowly
	}
	return v
}

// goesBack reports whether the block's tenant is refused, so that the block waits in the queue.
func (s *delivery) goesBack(v verdict, a answer) bool {
	switch {
	case a.isUndecided(v): // nor about the tenant
	case v != retry && v != retrySlowly:
		s.served.well(s.block.Tenant)
	case s.doubted != nil && a.mayBeFormat(): // a few more attempts
	case s.merged && a.late() && a.code != 0: // the request may be too large
	default:
		if s.merged && a.late() {
			s.learnTime(true)
		}
		return true
	}
	return false
}

// conclude does what a verdict asks for.
func (s *delivery) conclude(v verdict, a answer, format int) (ending, error) {
	switch v {
	case delivered:
		s.accept(a, format)
		return ending{fate: sealed}, nil
	case oversized:
		s.tooLarge(s.block, s.sent)
		return ending{fate: apart}, nil
	case rejected:
		if s.merged && !a.wroteSome() { // what was written would be refused as a duplicate
			return ending{fate: apart}, nil
		}
		return ending{sealed, s.reject(s.block, s.sent, a)}, nil
	case unsupported: // another format is tried: no failure, so no pause and no attempt counted
		s.tried.add(format)
		s.formats.turnedDown(format, a.code/100 == 2 || a.code == http.StatusUnsupportedMediaType)
	case doubtful:
		s.tried, s.doubted = s.formats.allButLast(), &doubt{format: format, refused: a}
	case retry, retrySlowly:
		if err := s.again(v, a); err != nil {
			return ending{}, err
		}
		if s.merged && a.late() { // it would never be in time
			s.learnTime(true)
			return ending{fate: late}, nil
		}
	}
	return ending{}, nil
}

// accept records that the block was delivered.
func (s *delivery) accept(a answer, format int) {
	s.formats.accepted(format)
	s.fits(s.block, s.sent)
	if s.doubted == nil {
		s.announceFormat(format)
	} else {
		s.formats.overrule(s.doubted.format, format)
	}
	s.delivered(s.block, s.sent, a, ReasonPartial)
	if s.merged {
		s.learnTime(false)
	}
}

// learnTime records whether a merged request was too late.
func (s *delivery) learnTime(late bool) {
	s.limitOn(s.block).learnTime(s.block.Samples+s.block.Histograms, late)
}

// again waits for the next attempt.
func (s *delivery) again(v verdict, a answer) error {
	s.telemetry.Retried(a.reason())
	attempt := s.attempt
	s.attempt++
	return s.cfg.Retry.wait(s.pauses, attempt, v == retrySlowly, s.spread, a.retryAfter)
}

// reject drops a block that the destination refused, except what it says it wrote of it.
func (d *Destination) reject(b, sent block.Block, a answer) error {
	if !a.wroteSome() {
		return d.drop(b.Header, ReasonRejected, a)
	}
	d.delivered(b, sent, a, ReasonRejected)
	d.complain(b.Header, ReasonRejected, a)
	return &LostError{Reason: ReasonRejected, answer: a}
}

// rewrite returns b in format f; have is an earlier result for b, which may already be it.
func rewrite(b, have block.Block, f block.Format) (block.Block, error) {
	if have.Version == f.Version && have.Compression == f.Compression {
		return have, nil
	}
	return block.Transcode(b, f)
}

// expired returns the reason to give up a block before another attempt.
func (d *Destination) expired(its term, attempt int) string {
	now := time.Now()
	if !its.deadline.IsZero() && !now.Before(its.deadline) {
		return ReasonAge
	}
	if limit := d.cfg.Retry.MaxElapsedTime; limit > 0 && attempt > 0 && now.Sub(its.started) >= limit {
		return ReasonElapsed
	}
	return ""
}

// delivered counts a delivered block, and its losses: what its format cannot carry, and what the destination says it
// did not write, for the given reason.
func (d *Destination) delivered(b, sent block.Block, a answer, reason string) {
	offered := promwrite.Written{Samples: sent.Samples, Histograms: sent.Histograms, Exemplars: sent.Exemplars}
	all := promwrite.Written{Samples: b.Samples, Histograms: b.Histograms, Exemplars: b.Exemplars}
	losses := [...]Loss{lossOf(all, offered, ReasonFormat), {}}
	if a.hasWritten {
		losses[1] = lossOf(offered, a.written, reason)
	}
	h := b.Header
	h.RawSize = sent.RawSize
	d.telemetry.Delivered(h, losses[:])
}

// lossOf returns the difference.
func lossOf(all, there promwrite.Written, reason string) Loss {
	return Loss{
		Reason:     reason,
		Samples:    max(0, all.Samples-there.Samples),
		Histograms: max(0, all.Histograms-there.Histograms),
		Exemplars:  max(0, all.Exemplars-there.Exemplars),
	}
}
