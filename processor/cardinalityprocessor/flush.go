// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/overflow"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// flushes runs apart from sweeps, which must continue while the next consumer is busy.
func (p *cardinalityProcessor) flushes(ctx context.Context) {
	flush := time.NewTimer(p.untilFlush())
	defer flush.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-flush.C:
			p.flush(ctx)
			flush.Reset(p.untilFlush())
		}
	}
}

func (p *cardinalityProcessor) untilFlush() time.Duration {
	now := p.Now()
	return now.Truncate(p.cfg.Overflow.Interval).Add(p.cfg.Overflow.Interval).Sub(now)
}

// delivery is the result of sending a message.
type delivery uint8

const (
	deliveryTaken     delivery = iota
	deliveryRefused            // temporarily
	deliveryPermanent          // permanently
	deliveryPanic              // the next consumer panicked, and may not the next time
	deliveries
)

const namePanic = "panic"

// refusals are the names of failed deliveries in metrics.
var refusals = [deliveries]string{"", "refused", "permanent", namePanic}

// refusedAs returns the attributes for points that were not accepted.
func (p *cardinalityProcessor) refusedAs(of delivery) metric.MeasurementOption {
	return p.Telemetry.Instance.Measured(attribute.String(policy.LabelReason, refusals[of]))
}

// flush sends the series made here, after it has recorded what they are made of. What the next consumer cannot accept
// now is kept for the next time.
func (p *cardinalityProcessor) flush(ctx context.Context) {
	p.flushing.Lock()
	defer p.flushing.Unlock()
	shipments := p.Overflow.Flush(p.Limiter.Now().Epoch(), p.Now())
	if n := p.Overflow.Lost.Swap(0); n > 0 {
		p.Telemetry.ProcessorCardinalityUnaccountedPoints.Add(ctx, n, p.Telemetry.Losses[amount.LossNotFinite])
	}
	begin := p.Overflow.Promote(p.Limiter.Peek)
	noted := p.DryRun || p.Snapshot.SaveLedger(ctx, false) == nil
	p.Overflow.Confirm(begin, noted)
	if noted {
		p.Telemetry.ProcessorCardinalityPromotedSeries.Add(ctx, int64(begin.Len()), p.Telemetry.Own)
	} else if ctx.Err() == nil {
		p.Snapshot.Failures.Add(1)
	}
	if p.DryRun { // the series themselves go on
		return
	}
	worst, points, cause := deliveryTaken, 0, error(nil)
	for i := range shipments {
		s := &shipments[i]
		err := p.deliver(ctx, s)
		of := deliveryOf(err)
		if of == deliveryTaken {
			p.Points.Made.Add(int64(s.Points))
			p.Telemetry.ProcessorCardinalityOverflowPoints.Add(ctx, int64(s.Points), p.Telemetry.Own)
			p.Telemetry.ProcessorCardinalityEndMarkers.Add(ctx, int64(len(s.Ended)), p.Telemetry.Own)
			continue
		}
		if errors.Is(err, errRoadClosed) { // the next process sends it
			p.Overflow.Restore(s)
			continue
		}
		p.Telemetry.ProcessorCardinalityOverflowRefusedPoints.Add(ctx, int64(s.Points), p.refusedAs(of))
		lost := s.Points
		if of != deliveryPermanent {
			lost = p.Overflow.Restore(s)
		}
		if lost > 0 {
			p.Telemetry.ProcessorCardinalityOverflowFailedPoints.Add(ctx, int64(lost), p.Telemetry.Own)
		}
		if points += s.Points; of >= worst {
			worst, cause = of, err
		}
	}
	if len(shipments) > 0 {
		before := p.delivery
		p.delivery = worst
		p.tell(before, worst, "overflow", points, cause)
	}
}

// tell logs the result of a flush, if it differs from the last one.
func (p *cardinalityProcessor) tell(before, worst delivery, what string, points int, cause error) {
	var panicked *panicError
	switch {
	case worst == deliveryTaken && before != deliveryTaken:
		p.Logger.Info("The " + what + " is sent again")
	case worst == deliveryPanic && before != deliveryPanic && errors.As(cause, &panicked):
		p.Logger.Error("Cannot send the "+what+": the next component has a defect",
			zap.Int("points", points), zap.Error(cause), zap.ByteString("stack", panicked.stack))
	case worst != deliveryTaken && before == deliveryTaken:
		p.Logger.Warn("Cannot send the "+what, zap.Int("points", points), zap.Error(cause))
	}
}

func deliveryOf(err error) delivery {
	var panicked *panicError
	switch {
	case err == nil:
		return deliveryTaken
	case errors.As(err, &panicked):
		return deliveryPanic
	case consumererror.IsPermanent(err):
		return deliveryPermanent
	default:
		return deliveryRefused
	}
}

// panicError has the value of the next consumer's panic.
type panicError struct {
	cause any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("the next consumer panicked: %v", e.cause) }

// deliver sends a message to the next consumer. It recovers from a panic there, since this goroutine is the processor's
// own: nobody else would, and the process would end.
func (p *cardinalityProcessor) deliver(ctx context.Context, s *overflow.Shipment) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = &panicError{cause: cause, stack: debug.Stack()}
		}
	}()
	return p.consume(s.Tenant.Context(ctx), s.Tenant.Road, s.Md)
}
