// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"context"
	"fmt"
	"time"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/fetch"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page"
)

// An arrival is a page that is being received. Most pages come in one piece. If one comes in parts, each is read when
// it is there, inside a slot, and no metrics are made before the last one has come.
type arrival struct {
	target *target
	at     time.Time
	start  time.Time // of the request
	body   fetch.Body
	scrape *page.Scrape // nil until something was received
	fault  error        // of the page's content, not of the transfer
	wire   int64        // bytes, as transferred
	size   int64        // as read

	learner learner

	slot  *slot // while it reads
	began time.Time
	read  time.Duration // time spent on reading before that
	fed   int           // bytes since others last had their turn
	late  bool          // reading takes too long
}

// part reads a part of a page that is not the last.
func (in *arrival) part(r fetch.Response) error {
	if err := in.learn(); err != nil {
		return err
	}
	slot := in.resume()
	defer slot.release()
	defer in.pause()
	err := in.begin(r.ContentType)
	if err == nil {
		in.wire += int64(len(r.Body))
		in.size, err = in.body.Part(slot.decoder, r, in.target.bodyLimit(), in.feed)
	}
	return err
}

// learn waits, before a further part of a page with unexpected lines, until there is memory for the lines that it
// holds.
func (in *arrival) learn() error {
	t := in.target
	if in.scrape == nil || !in.scrape.IsLearning() {
		return nil
	}
	t.enter(phaseWaiting)
	defer t.enter(phaseTarget)
	r := t.job.owner
	in.learner.hold(in.scrape.Held())
	if !in.learner.wait(r.fetching, t.have.Timeout-time.Since(in.start)) {
		in.late = true
		return &lateError{t.have.Timeout}
	}
	return nil
}

// bodyLimit is how many bytes a page of the target may have.
func (t *target) bodyLimit() int64 { return int64(t.have.tools.cfg.BodySizeLimit) }

// resume takes a slot to read with.
func (in *arrival) resume() *slot {
	r := slow
	switch {
	case in.scrape != nil:
		r = begun
	case in.target.quick:
		r = quick
	}
	in.slot = in.target.takeSlot(r)
	in.target.enter(phaseReading)
	in.began = time.Now()
	return in.slot
}

// pause stops the clock of reading.
func (in *arrival) pause() {
	took := time.Since(in.began)
	in.read += took
	in.target.job.owner.counters.processing.Add(int64(took))
	in.target.enter(phaseTarget)
}

// checkpoint lets others go first, if it is their turn. It returns an error if reading has taken too long.
func (in *arrival) checkpoint() error {
	t := in.target
	if limit := t.have.Timeout; in.read+time.Since(in.began) > limit {
		in.late = true
		return &lateError{limit}
	}
	in.pause()
	t.enter(phaseWaiting)
	in.slot.pause()
	t.enter(phaseReading)
	in.began = time.Now()
	return nil
}

// A lateError says that a page came in time, but took too long to read.
type lateError struct{ limit time.Duration }

func (e *lateError) Error() string {
	return fmt.Sprintf("cannot read page within `scrape_timeout` (%v)", e.limit)
}

// Is makes the error match other timeouts.
func (*lateError) Is(target error) bool { return target == context.DeadlineExceeded }

func (in *arrival) begin(contentType string) error {
	if in.scrape == nil {
		in.scrape, in.fault = in.target.page.Begin(in.at, contentType)
	}
	return in.fault
}

// piece is how much of a page is read before others may have their turn.
const piece = 256 << 10

func (in *arrival) feed(chunk []byte) error {
	for {
		n := min(len(chunk), piece)
		if in.fault = in.scrape.Feed(chunk[:n]); in.fault != nil {
			return in.fault
		}
		if in.fed += n; in.fed >= piece {
			in.fed = 0
			if err := in.checkpoint(); err != nil {
				return err
			}
		}
		if chunk = chunk[n:]; len(chunk) == 0 {
			return nil
		}
	}
}

// end reads the rest of the page, unless err says that it did not come. It returns the result of the scrape, and the
// error if it failed.
func (in *arrival) end(start time.Time, r fetch.Response, err error, d *fetch.Decoder) (result page.Result, why string, _ error) {
	defer in.learner.end()
	t := in.target
	c := &t.job.owner.counters
	if err == nil {
		in.wire += int64(len(r.Body))
		if err = in.begin(r.ContentType); err == nil {
			in.size, err = in.body.End(d, r, t.bodyLimit(), in.feed)
		}
	}
	why = fetch.Reason(err)
	err = t.job.owner.limits.explain(err, t.bodyLimit())
	report := page.Report{Duration: time.Since(start), BodyBytes: in.size, Err: err}
	switch {
	case why == fetch.ReasonBodySize:
		report.BodyBytes = -1
	case err != nil && in.fault == nil:
		report.BodyBytes = 0 // a page that did not come has no size, even if parts of it came
	}
	if in.scrape == nil {
		result = t.page.Fail(in.at, report)
	} else {
		result = in.scrape.End(report)
	}
	if in.fault != nil || err == nil && result.Err != nil {
		why = pageReason(result.Err)
	}
	if in.late {
		why = fetch.ReasonTimeout
	}
	in.pause()
	t.quick = in.read < turn
	c.wireBytes.Add(in.wire)
	c.bodyBytes.Add(in.size)
	c.samples.Add(int64(result.Samples))
	c.kept.Add(int64(t.have.tools.page.ReportSeries()))
	if result.Err == nil {
		c.kept.Add(int64(result.PostRelabel))
	}
	c.hits.Add(int64(result.Hits))
	c.misses.Add(int64(result.Misses))
	c.limited.Add(int64(result.Limited))
	c.late.Add(int64(result.Late))
	return result, why, t.job.owner.limits.explain(result.Err, t.bodyLimit())
}
