// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"context"
	"errors"
	"sync/atomic"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/internal/owned"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page"
)

// A delivery hands metrics to the pipeline, until a shutdown runs out of time. What the pipeline refuses is lost.
type delivery struct {
	next      consumer.Metrics
	obsreport *receiverhelper.ObsReport
	tap       inspect.Tap
	refusals  refusals

	handed, lost atomic.Int64 // points that the pipeline accepted, and those that it did not

	sending context.Context // ends when Shutdown runs out of time
	abort   context.CancelFunc
}

// init prepares a delivery. Until the pipeline is known, it must not be used.
func (d *delivery) init(set receiver.Settings, obsreport *receiverhelper.ObsReport, next consumer.Metrics) {
	d.next, d.obsreport, d.refusals.log = next, obsreport, set.Logger
	d.sending, d.abort = context.WithCancel(context.Background())
}

// isOver reports whether nobody waits for metrics any more.
func (d *delivery) isOver() bool { return d.sending.Err() != nil }

// hand hands a target's metrics to the pipeline, those of a large page part by part, and releases the slot. What the
// pipeline refuses is lost, with the parts that would follow.
func (d *delivery) hand(t *target, result page.Result, slot *slot) {
	if result.Metrics.DataPointCount() == 0 && result.Pending() == 0 {
		slot.release()
		result.Release()
		return
	}
	result = result.Send()
	err := d.handPart(t, result, slot)
	for pending := result.Pending(); err == nil && pending > 0; pending = result.Pending() {
		slot = t.takeSlot(begun)
		if err = d.sending.Err(); err != nil { // nobody waits for the other parts any more
			slot.release()
			d.lose(pending, err)
			break
		}
		result = result.Next()
		err = d.handPart(t, result, slot)
		if err == nil && result.Pending() >= pending {
			err = errNoParts
			d.lose(pending, err)
		}
	}
	if err != nil {
		result.Recall()
		d.refuse(t, err) // without Release: whoever refuses metrics may still retry them
	} else {
		result.Release()
		d.refusals.end(t)
	}
}

// handPart hands on the current metrics of the result, and releases the slot. If they are refused, the parts to come count
// as refused, too.
func (d *delivery) handPart(t *target, result page.Result, slot *slot) (err error) {
	points := result.Metrics.DataPointCount()
	before := t.enter(phasePipeline)
	t.last.Store(int32(phasePipeline))
	slot.lend(weigh(result, points), func() {
		ctx := d.obsreport.StartMetricsOp(d.sending)
		// A shutdown that is out of time also ends the parts of a page, even if the pipeline ignores its context.
		if err = d.sending.Err(); err == nil && points > 0 {
			if d.tap.IsOpen() {
				result.Settle()
				d.tap.Metrics(result.Metrics)
			}
			err = owned.Metrics(handback.Lend(ctx, result.Loan(), result.Metrics), d.next, result.Metrics)
		}
		if err != nil {
			points += result.Pending()
			d.lost.Add(int64(points))
		} else {
			d.handed.Add(int64(points))
		}
		d.obsreport.EndMetricsOp(ctx, "prometheus", points, err)
	})
	t.enter(before)
	return err
}

// errNoParts ends a page whose remaining parts are missing although they were announced.
var errNoParts = errors.New("cannot make metrics of the rest of the page")

// lose counts points that are not handed on.
func (d *delivery) lose(points int, err error) {
	d.lost.Add(int64(points))
	d.obsreport.EndMetricsOp(d.obsreport.StartMetricsOp(d.sending), "prometheus", points, err)
}

// refuse records that a target's metrics were not accepted, and are lost. A shutdown that is out of time says nothing
// about the pipeline.
func (d *delivery) refuse(t *target, err error) {
	d.refusals.count(t)
	if !d.isOver() {
		d.refusals.begin(t, err)
	}
}
