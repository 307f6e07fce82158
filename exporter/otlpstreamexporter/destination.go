// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// errShutdown is temporary, so that a queue on disk keeps the request.
var errShutdown = errors.New("the exporter is shut down")

// destination is one server, or a group of servers behind one address, with all the state there is about it.
type destination struct {
	*streamExporter

	transport transport
	gate      gate
	modes     modes
	slots     []*slot
	// ready hands deliveries to whichever slot has room first.
	ready chan *delivery

	requests, bytes *semaphore.Weighted
	maxMessage      atomic.Int64 // what the server said last; 0 is no limit

	// ctx ends when deliveries are given up; quit is closed, after that, to end the slots.
	ctx    context.Context
	giveUp context.CancelFunc
	quit   chan struct{}
	// cut ends what the slots still do then.
	cut     context.Context
	cutOff  context.CancelFunc
	running sync.WaitGroup
}

// delivery is a request on its way.
type delivery struct {
	*request

	done chan outcome
	// since is when the exporter began with it, and sent how often it has sent it.
	since time.Time
	sent  uint64
	// unary tells that a server without streams had it.
	unary bool

	// The slot's lock guards the stream it is pending on, and how often it may have broken one.
	link    *link
	strikes int

	// The account's lock guards these.
	state    state
	settled  bool // and will stay in its state
	reason   dropReason
	rejected int
}

// outcome ends an attempt.
type outcome struct {
	verdict verdict
	reason  dropReason    // of a failure
	delay   time.Duration // that the server asks for, of a retry
	err     error
}

type verdict uint8

const (
	success verdict = iota
	failure
	retry
	reroute // to unary: the server knows no streams
)

func newDestination(e *streamExporter, t transport) *destination {
	d := &destination{
		streamExporter: e,
		transport:      t,
		gate:           gate{multiplier: e.cfg.Retry.Multiplier, ceiling: e.cfg.Retry.MaxInterval},
		modes:          modes{mode: e.cfg.Mode, reprobe: e.cfg.ReprobeInterval},
		ready:          make(chan *delivery),
		requests:       semaphore.NewWeighted(int64(e.cfg.InFlight.Requests)),
		bytes:          semaphore.NewWeighted(e.cfg.InFlight.Bytes),
		quit:           make(chan struct{}),
	}
	d.ctx, d.giveUp = context.WithCancel(context.Background())
	d.cut, d.cutOff = context.WithCancel(context.Background())
	if e.cfg.Mode == modeUnary {
		return d
	}
	for i := range e.cfg.Streams {
		s := newSlot(d, i)
		d.slots = append(d.slots, s)
		d.running.Go(s.run)
	}
	d.running.Go(d.watch)
	return d
}

// deliver returns when a request is acknowledged, or given up.
func (d *destination) deliver(ctx context.Context, req *request) error {
	p := &delivery{request: req, done: make(chan outcome, 1), since: time.Now()}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(d.ctx, func() { cancel(errShutdown) })()

	size := min(int64(len(req.data)), d.cfg.InFlight.Bytes)
	if d.requests.Acquire(ctx, 1) != nil {
		return d.abandon(ctx, p)
	}
	defer d.requests.Release(1)
	if d.bytes.Acquire(ctx, size) != nil {
		return d.abandon(ctx, p)
	}
	defer d.bytes.Release(size)

	for failures := 1; ; failures++ {
		out := d.attempt(ctx, p)
		switch out.verdict {
		case success:
			d.gate.succeeded()
			d.account.move(p, acked)
			return nil
		case failure:
			return d.drop(p, out.reason, out.err)
		case reroute:
			p.unary = true
			d.account.move(p, queued)
			continue
		case retry:
		}
		if ctx.Err() != nil {
			return d.abandon(ctx, p)
		}
		d.telemetry.ExporterOtlpstreamRetryableFailures.Add(ctx, 1)
		d.account.move(p, queued)
		delay := retryDelay(d.cfg.Retry, failures, out.delay)
		if !d.cfg.Retry.Enabled || d.tooOld(p, time.Now().Add(delay)) {
			return d.drop(p, dropRetriesExhausted, out.err)
		}
		if sleep(ctx, delay) != nil {
			return d.abandon(ctx, p)
		}
	}
}

// attempt sends a request once, or more often if streams are lost meanwhile.
func (d *destination) attempt(ctx context.Context, p *delivery) outcome {
	if limit := d.maxMessage.Load(); limit > 0 && int64(len(p.data))+messageOverhead > limit {
		return tooLarge(len(p.data), limit)
	}
	if p.unary || !d.modes.stream(time.Now()) {
		return d.unary(ctx, p)
	}
	if out, ok := d.hand(ctx, p); !ok {
		return out
	}
	select {
	case out := <-p.done:
		return out
	case <-ctx.Done():
		return outcome{verdict: retry, err: ctx.Err()}
	}
}

// hand gives a delivery to a slot that has room; so it waits for the gate and for a connection, too.
func (d *destination) hand(ctx context.Context, p *delivery) (outcome, bool) {
	select {
	case d.ready <- p:
		return outcome{}, true
	default:
	}
	expired, stop := d.expiry(p)
	defer stop()
	select {
	case d.ready <- p:
		return outcome{}, true
	case <-expired:
		return outcome{verdict: failure, reason: dropRetriesExhausted, err: errors.New("there is no stream to send it on")}, false
	case <-ctx.Done():
		return outcome{verdict: retry, err: ctx.Err()}, false
	}
}

func (d *destination) unary(ctx context.Context, p *delivery) outcome {
	if err := d.gate.wait(ctx); err != nil {
		return outcome{verdict: retry, err: err}
	}
	data, err := otlpstream.InOTLPForm(p.data)
	if err != nil {
		return outcome{verdict: failure, reason: dropRejected, err: err}
	}
	if p.sent++; p.sent > 1 {
		d.telemetry.ExporterOtlpstreamResentRequests.Add(ctx, 1)
	}
	d.account.move(p, pending)
	ctx, cancel := context.WithTimeout(ctx, d.cfg.AckTimeout)
	defer cancel()
	sent := time.Now()
	response, err := d.transport.unary(ctx, data)
	st := status.Convert(err)
	delay, asked := otlpstream.RetryDelay(st)
	if asked {
		d.throttle(delay)
	}
	switch {
	case err == nil:
		d.telemetry.ExporterOtlpstreamAckLatency.Record(ctx, time.Since(sent).Seconds())
		d.account.reject(p, otlpstream.Rejected(response))
		return outcome{}
	case otlpstream.Transient(st):
		return outcome{verdict: retry, delay: delay, err: err}
	}
	return outcome{verdict: failure, reason: dropRejected, err: err}
}

// throttle lets nothing through to the destination for the delay.
func (d *destination) throttle(delay time.Duration) {
	if longer := d.gate.hold(delay, time.Now()); longer > 0 {
		d.telemetry.ExporterOtlpstreamThrottledTime.Add(d.ctx, longer.Seconds())
	}
}

func (d *destination) drop(p *delivery, why dropReason, err error) error {
	d.account.drop(p, why)
	return consumererror.NewPermanent(fmt.Errorf("cannot deliver %d items (%s): %w", p.items, why, err))
}

// abandon ends a delivery because its time is over, not for a fault of its own.
func (d *destination) abandon(ctx context.Context, p *delivery) error {
	cause := context.Cause(ctx)
	switch {
	case !errors.Is(cause, errShutdown):
		d.account.drop(p, dropCanceled)
	case d.cfg.Queue.HasValue() && d.cfg.Queue.Get().Storage != nil:
		d.account.keep(p)
	default:
		d.account.drop(p, dropShutdown)
	}
	return cause
}

// tooOld tells whether a delivery is older than retry_on_failure allows.
func (d *destination) tooOld(p *delivery, now time.Time) bool {
	return d.cfg.Retry.MaxElapsedTime > 0 && now.Sub(p.since) > d.cfg.Retry.MaxElapsedTime
}

func (d *destination) expiry(p *delivery) (expired <-chan time.Time, stop func()) {
	if d.cfg.Retry.MaxElapsedTime <= 0 {
		return nil, func() {}
	}
	t := time.NewTimer(d.cfg.Retry.MaxElapsedTime - time.Since(p.since))
	return t.C, func() { t.Stop() }
}

// watch gives up on requests that the server does not answer, and on streams that it does not close.
func (d *destination) watch() {
	tick := time.NewTicker(max(d.cfg.AckTimeout/20, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			for _, s := range d.slots {
				s.expire(now)
			}
		case <-d.quit:
			return
		}
	}
}

// limitShutdown makes deliveries end in time. The return undoes it.
func (d *destination) limitShutdown(ctx context.Context) (undo func()) {
	if !d.cfg.Shutdown.WaitForAcks {
		d.giveUp()
		return func() {}
	}
	t := time.AfterFunc(d.cfg.Shutdown.Timeout, d.giveUp)
	stop := context.AfterFunc(ctx, d.giveUp)
	return func() { t.Stop(); stop() }
}

// close ends the streams: first as the protocol has it, and what is left a moment later by force.
func (d *destination) close() error {
	const moment = time.Second
	d.giveUp()
	t := time.AfterFunc(moment, d.cutOff)
	close(d.quit)
	d.running.Wait()
	t.Stop()
	d.cutOff()
	if b := d.account.snapshot(); b.dropped[dropShutdown] > 0 {
		d.set.Logger.Warn("Shut down before everything was acknowledged", zap.Int64("dropped_items", b.dropped[dropShutdown]))
	}
	return d.transport.close()
}

// messageOverhead is what a request has besides its payload.
const messageOverhead = 64

func tooLarge(size int, limit int64) outcome {
	return outcome{verdict: failure, reason: dropTooLarge, err: status.Errorf(codes.InvalidArgument,
		"%d bytes are more than the %d that the server takes; send smaller batches", size, limit)}
}
