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
	sealed fate = iota // delivered or dropped
	apart              // must be sent in pieces
	late               // the merged blocks take too long together
)

// ending is the fate of a request and, when it is sealed, the error if its data is lost.
type ending struct {
	fate fate
	lost error
}

// doubt is about a format that has delivered before, after a block was refused in it as if its content were bad.
type doubt struct {
	format   int
	refused  answer
	failures int // of requests in the last format
}

// mostFailures is the number of server errors after which they count as such, when they might mean that the last format
// is not known.
const mostFailures = 3

// settles reports whether an answer to the last format shows that it was about the content: it is refused again, or the
// server does not know that format.
func (t *doubt) settles(v verdict, a answer) bool {
	switch {
	case t == nil:
		return false
	case v == retry && a.mayBeFormat():
		t.failures++
		return t.failures >= mostFailures
	}
	return v == retrySlowly || v == rejected && !a.wroteSome()
}

// deliver sends one request until its fate is sealed, or until it must be sent in pieces. A merged request must be
// whenever all of it would be dropped, since some of its blocks may be fine.
func (d *Destination) deliver(end ends, b block.Block, its term, merged bool) (e ending, err error) {
	var tried formatSet // formats in which b was refused
	var last answer
	var doubted *doubt
	var paged time.Time // when a web page first refused b
	sent := b           // b in the format of the last attempt
	attempt, spread := 0, d.cfg.Retry.spread()
	if d.tenanted(b) {
		attempt, its.started = d.served.attempts(b.Tenant, its.started)
		if its.queued.After(its.started) { // what was refused before was other data
			its.started = its.queued
		}
		if attempt > 0 {
			paged = its.started
		}
	}
	for {
		if wait := d.pace.reserve(len(sent.Body()), sent.Samples+sent.Histograms); wait > 0 {
			d.telemetry.Paced()
			if err := sleep(end.pauses, wait); err != nil {
				return ending{}, err
			}
		}
		if err := d.gate.enter(end.pauses); err != nil {
			return ending{}, err
		}
		format, ok := d.formats.choose(b.Version, tried)
		reason := d.expired(its, attempt)
		if !ok && doubted != nil {
			last = doubted.refused
		}
		switch {
		case reason != "":
		case !ok && d.mayEnd(b, last, &paged): // all formats once more
			if d.tenanted(b) {
				return ending{}, d.later(b.Tenant, retrySlowly, last, time.Now())
			}
			d.report(retrySlowly, last)
			if err := d.again(end, attempt, retrySlowly, spread, last); err != nil {
				return ending{}, err
			}
			tried, doubted = 0, nil
			attempt++
			continue
		case !ok && last.code/100 == 2:
			reason = ReasonUnwritten
		case !ok:
			reason = ReasonRejected
		default:
			sent, err = rewrite(b, sent, d.cfg.Formats[format])
			switch isEmpty := err != nil || sent.Samples+sent.Histograms+sent.Metadata == 0; {
			case isEmpty && doubted != nil:
				reason, last = ReasonRejected, doubted.refused
			case isEmpty:
				reason, last = ReasonFormat, answer{err: err}
			}
		}
		if reason != "" {
			d.gate.leave()
			if merged {
				return ending{fate: apart}, nil
			}
			d.served.well(b.Tenant)
			return ending{sealed, d.drop(b.Header, reason, last)}, nil
		}

		began := time.Now()
		a := d.exchange(end.requests, sent, attempt)
		if a.unnamed {
			d.gate.leave()
			return ending{sealed, d.drop(b.Header, ReasonTenant, a)}, nil
		}
		if end.requests.Err() != nil && a.code == 0 {
			d.gate.leave()
			return ending{}, fmt.Errorf("cannot finish the request: %w", context.Cause(end.requests))
		}
		v := d.judge(a, format)
		if a.mayBeFormat() {
			d.formats.failed(format)
		}
		switch {
		case doubted.settles(v, a):
			v = unsupported
		case v == rejected && d.mayEnd(b, a, &paged):
			v = retrySlowly
		}
		if last = a; d.tenanted(b) {
			switch refused := v == retry || v == retrySlowly; {
			case a.isUndecided(v): // nor about the tenant
			case !refused:
				d.served.well(b.Tenant)
			case doubted != nil && a.mayBeFormat(): // a few more attempts
			case merged && a.late() && a.code != 0: // the request may be too large
			default:
				if merged && a.late() {
					d.limitOn(b).learnTime(b.Samples+b.Histograms, true)
				}
				return ending{}, d.later(b.Tenant, v, a, began)
			}
		}
		d.report(v, a)
		switch v {
		case delivered:
			d.formats.accepted(format)
			d.fits(b, sent)
			if doubted == nil {
				d.announceFormat(format)
			} else {
				d.formats.overrule(doubted.format, format)
			}
			d.delivered(b, sent, a, ReasonPartial)
			if merged {
				d.limitOn(b).learnTime(b.Samples+b.Histograms, false)
			}
			return ending{fate: sealed}, nil
		case oversized:
			d.tooLarge(b, sent)
			return ending{fate: apart}, nil
		case unsupported: // another format is tried: no failure, so no pause and no attempt counted
			tried.add(format)
			d.formats.turnedDown(format, a.code/100 == 2 || a.code == http.StatusUnsupportedMediaType)
		case doubtful:
			tried, doubted = d.formats.allButLast(), &doubt{format: format, refused: a}
		case rejected:
			if merged && !a.wroteSome() { // what was written would be refused as a duplicate
				return ending{fate: apart}, nil
			}
			return ending{sealed, d.reject(b, sent, a)}, nil
		case retry, retrySlowly:
			if err := d.again(end, attempt, v, spread, a); err != nil {
				return ending{}, err
			}
			if merged && a.late() { // it would never be in time
				d.limitOn(b).learnTime(b.Samples+b.Histograms, true)
				return ending{fate: late}, nil
			}
			attempt++
		}
	}
}

// again waits for the next attempt.
func (d *Destination) again(end ends, attempt int, v verdict, spread float64, a answer) error {
	d.telemetry.Retried(a.reason())
	return d.cfg.Retry.wait(end.pauses, attempt, v == retrySlowly, spread, a.retryAfter)
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
