// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

// downAfter is how many consecutive failures make a destination count as down when there is no breaker.
const downAfter = 5

// complainInterval is how often losses for the same reason are logged.
const complainInterval = time.Minute

// report records in the gate what an answer says about the destination, and logs changes.
func (d *Destination) report(v verdict, a answer) {
	if a.retryAfter > 0 && (v == retry || v == retrySlowly) {
		// The jitter keeps clients that were told the same time from coming back together.
		pause := min(a.retryAfter, d.cfg.Retry.MaxRetryAfter)
		d.gate.holdFor(jitter(pause, 0.1))
	}
	if a.isUndecided(v) {
		d.gate.leave()
		return
	}
	switch v {
	case delivered, rejected, oversized, unsupported, doubtful:
		d.gate.succeeded()
		d.setDown(false, a)
	case retry:
		if a.code == http.StatusTooManyRequests {
			d.gate.leave() // it answers, and says when to come again: that is not an outage
			return
		}
		if d.gate.failed() >= cmp.Or(d.cfg.Breaker.Failures, downAfter) {
			d.setDown(true, a)
		}
	case retrySlowly:
		d.gate.failed()
		d.setDown(true, a)
	}
}

// setDown reports a change, and two changes in their order.
func (d *Destination) setDown(down bool, a answer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	changed := d.down != down
	d.down = down
	switch {
	case !changed:
	case down:
		d.telemetry.Down(a.reasonDown())
		d.log.Warn("destination accepts no data; it stays in the queue and is retried", a.fields()...)
	default:
		d.telemetry.Down(nil)
		d.log.Info("destination accepts data again")
	}
}

// announceFormat logs a change of the format that the destination accepts.
func (d *Destination) announceFormat(format int) {
	d.mu.Lock()
	changed := d.announced != format
	d.announced = format
	d.mu.Unlock()
	if changed {
		f := d.cfg.Formats[format]
		d.log.Info("format of the destination changed",
			zap.Stringer("version", f.Version), zap.Stringer("encoding", f.Compression))
	}
}

// drop drops a block. The error tells the sender of the data why.
func (d *Destination) drop(h block.Header, reason string, a answer) error {
	d.telemetry.Dropped(h, reason)
	d.complain(h, reason, a)
	return &LostError{Reason: reason, answer: a}
}

// LostError means that a block, or part of it, was not delivered.
type LostError struct {
	Reason string
	answer answer
}

func (l *LostError) Error() string {
	text := "cannot deliver the data (" + l.Reason + ")"
	if l.answer.code != 0 {
		text += fmt.Sprintf(": the destination answers %d", l.answer.code)
	}
	if said := l.answer.said(); said != "" {
		text += ": " + said
	}
	return text
}

func (l *LostError) Unwrap() error { return l.answer.err }

// Again reports whether it may be delivered if it is sent again.
func (l *LostError) Again() bool { return l.Reason == ReasonElapsed || l.Reason == ReasonAge }

// complain logs a loss, if it has another reason than the last one, or once a minute. The counters tell how often.
func (d *Destination) complain(h block.Header, reason string, a answer) {
	d.mu.Lock()
	key := dropKey{reason, a.code}
	news := d.lastDrop != key || time.Since(d.lastDropAt) >= complainInterval
	if news {
		d.lastDrop, d.lastDropAt = key, time.Now()
	}
	d.mu.Unlock()
	if news {
		fields := a.fields()
		if reason == ReasonUnwritten {
			fields = append(fields, zap.String("advice", "the destination knows 1.0 alone: set `protobuf_message` to auto or 1.0"))
		}
		if a.repeated && a.hasWritten {
			fields = append(fields, zap.String("or not", "the request was repeated: if an earlier attempt was written and only its answer is missing, this refuses what is there"))
		}
		d.log.Warn("lost data of a block; more of the same is counted, not logged", append(fields,
			zap.String("reason", reason), zap.Int("samples", h.Samples), zap.Int("histograms", h.Histograms))...)
	}
}

// dropKey identifies a kind of drop.
type dropKey struct {
	reason string
	code   int
}

// reasonDown returns what an answer, or its absence, means for the destination.
func (a answer) reasonDown() error {
	if a.code == 0 {
		return a.err
	}
	return fmt.Errorf("cannot deliver: the destination answers %d", a.code)
}

func (a answer) fields() []zap.Field {
	var fields []zap.Field
	if a.code != 0 {
		fields = append(fields, zap.Int("code", a.code), zap.String("answer", a.text))
	}
	if a.err != nil {
		fields = append(fields, zap.Error(a.err))
	}
	return fields
}
