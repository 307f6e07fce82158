// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"time"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/fetch"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page"
)

// An arrival is a page on its way from a target into metrics. Most come in one piece. Of those that come in parts, each is
// read when it is there, inside a slot, and nothing is made of any of them until the last has come.
type arrival struct {
	target *target
	at     time.Time
	body   fetch.Body
	scrape *page.Scrape // nil until something has come
	fault  error        // the page's own, not one of how it came
	wire   int64        // bytes, as transferred
	size   int64        // as read
}

// part reads a part of a page, and more is to come.
func (in *arrival) part(r fetch.Response) error {
	owner := in.target.job.owner
	slot := owner.slots.take()
	defer slot.release()
	began := time.Now()
	err := in.begin(r.ContentType)
	if err == nil {
		in.wire += int64(len(r.Body))
		in.size, err = in.body.Part(&slot.decoder, r, in.target.bodyLimit(), in.feed)
	}
	owner.counters.processing.Add(int64(time.Since(began)))
	return err
}

// bodyLimit is how many bytes a page of the target may have.
func (t *target) bodyLimit() int64 { return int64(t.have.gear.cfg.BodySizeLimit) }

func (in *arrival) begin(contentType string) error {
	if in.scrape == nil {
		in.scrape, in.fault = in.target.page.Begin(in.at, contentType)
	}
	return in.fault
}

func (in *arrival) feed(chunk []byte) error {
	in.fault = in.scrape.Feed(chunk)
	return in.fault
}

// end reads the page, or what was not read of it yet, unless an error says that it has not come. It returns what came
// of the scrape, and if it failed why.
func (in *arrival) end(start time.Time, r fetch.Response, err error, d *fetch.Decoder) (result page.Result, why string, _ error) {
	t := in.target
	c := &t.job.owner.counters
	began := time.Now()
	if err == nil {
		in.wire += int64(len(r.Body))
		if err = in.begin(r.ContentType); err == nil {
			in.size, err = in.body.End(d, r, t.bodyLimit(), in.feed)
		}
	}
	why = fetch.Reason(err)
	err = t.job.owner.limits.explain(err, t.bodyLimit())
	report := page.Report{Duration: time.Since(start), BodyBytes: in.size, Err: err}
	if why == fetch.ReasonBodySize {
		report.BodyBytes = -1
	}
	if in.scrape == nil {
		result = t.page.Fail(in.at, report)
	} else {
		result = in.scrape.End(report)
	}
	if in.fault != nil || err == nil && result.Err != nil {
		why = pageReason(result.Err)
	}
	c.processing.Add(int64(time.Since(began)))
	c.wireBytes.Add(in.wire)
	c.bodyBytes.Add(in.size)
	c.samples.Add(int64(result.Samples))
	c.hits.Add(int64(result.Hits))
	c.misses.Add(int64(result.Misses))
	c.limited.Add(int64(result.Limited))
	c.late.Add(int64(result.Late))
	return result, why, t.job.owner.limits.explain(result.Err, t.bodyLimit())
}
