// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/aggregate"
)

// pours sends aggregates when they are due, until the context ends.
func (p *cardinalityProcessor) pours(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.Aggregator.Changed:
		case <-timer.C:
		}
		now := p.Now()
		if due := p.Aggregator.Plan(now); len(due) > 0 {
			p.pour(ctx, due)
			now = p.Now()
		}
		timer.Reset(p.Aggregator.Until(now))
	}
}

// pour sends the aggregates of the given rules.
func (p *cardinalityProcessor) pour(ctx context.Context, due map[*aggregate.State]pcommon.Timestamp) {
	var note func()
	if p.Snapshot.Storage != nil && !p.DryRun {
		note = func() {
			if p.Snapshot.SaveFeeders(ctx, due) != nil && ctx.Err() == nil {
				p.Snapshot.Failures.Add(1)
			}
		}
	}
	p.Aggregator.Flush(p.Limiter.Now().Epoch(), due, note, func(all []*aggregate.Pouring) { p.sendAll(ctx, all) })
}

// sendAll sends what was made, and takes back what could not be sent.
func (p *cardinalityProcessor) sendAll(ctx context.Context, pourings []*aggregate.Pouring) {
	a := p.Aggregator
	worst, points, cause := deliveryTaken, 0, error(nil)
	for _, s := range pourings {
		err := p.send(ctx, s)
		of := deliveryOf(err)
		if of == deliveryTaken {
			continue
		}
		if errors.Is(err, errRoadClosed) { // the next process sends it
			a.TakeBack(s, true)
			continue
		}
		p.Telemetry.ProcessorCardinalityAggregateRefusedPoints.Add(ctx, int64(s.Points), p.refusedAs(of))
		lost := a.TakeBack(s, of != deliveryPermanent)
		if lost > 0 {
			p.Telemetry.ProcessorCardinalityAggregateFailedPoints.Add(ctx, int64(lost), p.Telemetry.Own)
		}
		if points += s.Points; of >= worst {
			worst, cause = of, err
		}
	}
	if len(pourings) > 0 {
		before := p.poured
		p.poured = worst
		p.tell(before, worst, "aggregated data", points, cause)
	}
}

// send passes a message through the limits, and on. A dry run only asks the limits.
func (p *cardinalityProcessor) send(ctx context.Context, s *aggregate.Pouring) (err error) {
	ctx = s.Tenant.Context(ctx)
	b := p.NewBatch(s.Tenant.Road)
	accepted := false
	defer func() { p.Conclude(ctx, b, accepted) }()
	p.DecideMade(ctx, b, s.Md)
	if n := s.Md.DataPointCount(); n > 0 && !p.DryRun {
		if err = p.deliver(ctx, s.Shipment); err != nil {
			return err
		}
		p.Points.Made.Add(int64(n))
	}
	accepted = true
	for rule, n := range s.Rules {
		p.Telemetry.ProcessorCardinalityAggregatePoints.Add(ctx, n, rule.Taken)
	}
	return nil
}
