// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/config/configcompression"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/account"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/pace"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/queue"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/server"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
	"github.com/godwit-otel/godwit/internal/origin"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// delivery is a request being sent, or a part of one that is too large as a whole.
type delivery struct {
	account.Parcel

	data   []byte
	memory *otlpstream.Memory // memory of the data, for a whole request

	done chan outcome
	// since is when the delivery began, and sent how often it was sent.
	since time.Time
	sent  uint64
	// origin is the client that the data came from, as far as the server is told.
	origin origin.Origin
	// home identifies the preferred slot: see homeOf.
	home uint64
	// passes lets the next request be sent, if they go in order.
	passes func()
	// unary says that it was sent to a server without streams, and step which of the possible compressions it uses.
	unary bool
	step  int
	span  trace.Span

	// Guarded by the slot's lock: the stream it is pending on, when it was overtaken, and how often it may have broken
	// a stream.
	link      *link
	overtaken overtakings
	strikes   int
	// working is when the server last said that it is working on it, and unanswered how often it was sent again for
	// lack of an answer.
	working    time.Time
	unanswered int
}

func (d *destination) newDelivery(ctx context.Context, data []byte, items int) *delivery {
	return &delivery{
		Parcel: account.NewParcel(items, len(data)), data: data,
		done: make(chan outcome, 1), since: time.Now(), span: trace.SpanFromContext(ctx),
		origin: origin.Of(d.cfg.MetadataKeys, client.FromContext(ctx).Metadata), home: d.homeOf(data),
	}
}

// outcome is the result of an attempt.
type outcome struct {
	verdict verdict
	reason  account.Reason // of a failure
	delay   time.Duration  // asked for by the server, for a retry
	limit   int64          // for the size of a message, for a division
	err     error
}

type verdict uint8

const (
	success verdict = iota
	failure
	retry
	reroute  // to unary: the server has no streams
	division // into parts: the message is too large for the server
)

// deliver returns when a request is acknowledged, or dropped.
func (d *destination) deliver(ctx context.Context, req *queue.Request) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(d.ctx, func() { cancel(errShutdown) })()
	whole := d.newDelivery(ctx, req.Data, req.Items)
	whole.memory = req.Memory
	if d.line != nil {
		whole.passes = func() { d.line.Pass(req.Number) }
		if d.line.Wait(ctx, req.Number) != nil {
			return d.abandon(ctx, whole).err
		}
	}
	whole.noteDestination(d.name)
	err := d.seeThrough(ctx, whole)
	if err == nil {
		whole.noteResult(resultAcked)
	}
	return err
}

func (d *destination) seeThrough(ctx context.Context, p *delivery) error {
	for _, h := range p.origin.Headers() {
		if !h.Fits() {
			return d.drop(p, account.Rejected, fmt.Errorf("the client's metadata has a value that no header can have: %s: %q", h.Key, h.Value))
		}
	}
	limit := d.server.Largest()
	if !exceeds(p, limit) {
		out := d.asAWhole(ctx, p)
		if out.verdict != division {
			return out.err
		}
		limit = out.limit
	}
	return d.inParts(ctx, p, limit)
}

// messageOverhead is the size of a request besides its payload.
const messageOverhead = 64

func exceeds(p *delivery, limit int64) bool {
	return limit > 0 && int64(len(p.data))+messageOverhead > limit
}

// inParts sends a request that is too large in parts. An item that is too large by itself is dropped.
func (d *destination) inParts(ctx context.Context, p *delivery, limit int64) error {
	if p.Items <= 1 {
		return d.drop(p, account.TooLarge, fmt.Errorf("%d bytes are more than the %d that the server takes", len(p.data), limit))
	}
	d.tally.Divided.Add(1)
	p.noteDivided(limit)
	whole := p.Items // from which parts take theirs
	// So many parts exist at a time, so that a tiny limit does not multiply the memory of a request.
	const partsAtOnce = 4
	var (
		parts errgroup.Group
		mu    sync.Mutex
		errs  []error
	)
	parts.SetLimit(partsAtOnce)
	if d.cfg.Ordered {
		parts.SetLimit(1)
	}
	for data, items := range otlpstream.Split(d.signal, p.data, int(limit)-messageOverhead) {
		if items == 0 {
			continue // an empty resource needs no message
		}
		if items == whole && int64(len(data))+messageOverhead > limit { // one profile with many samples, or with a large dictionary
			return d.drop(p, account.TooLarge, fmt.Errorf("%d bytes are more than the %d that the server takes, and cannot be divided", len(data), limit))
		}
		part := d.newDelivery(ctx, data, items)
		part.since = p.since
		d.account.Divide(&p.Parcel, &part.Parcel)
		parts.Go(func() error {
			if err := d.seeThrough(ctx, part); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
			return nil
		})
	}
	_ = parts.Wait()
	if p.Items > 0 {
		errs = append(errs, d.drop(p, account.Rejected, errors.New("they are malformed")))
	}
	return worst(errs)
}

// worst returns the error for the whole. What is undelivered because of a shutdown is kept by a queue on disk, even if
// the parts that were delivered are then sent again.
func worst(errs []error) error {
	all := errors.Join(errs...)
	for _, err := range errs {
		if !consumererror.IsPermanent(err) {
			return err
		}
	}
	return all
}

// asAWhole sends a delivery until it is acknowledged, or dropped, or found to be too large. The error is for the caller
// of the exporter.
func (d *destination) asAWhole(ctx context.Context, p *delivery) outcome {
	if !d.window.enter(ctx, len(p.data)) {
		return d.abandon(ctx, p)
	}
	defer d.window.leave(len(p.data))

	for failures := 1; ; failures++ {
		out := d.attempt(ctx, p)
		switch out.verdict {
		case success:
			d.gate.Succeeded()
			d.tally.Raw.Add(int64(len(p.data)))
			d.account.Ack(&p.Parcel)
			return outcome{}
		case failure:
			return outcome{err: d.drop(p, out.reason, out.err)}
		case division:
			d.account.Requeue(&p.Parcel)
			return out
		case reroute:
			p.unary = true
			d.account.Requeue(&p.Parcel)
			continue
		case retry:
		}
		if ctx.Err() != nil {
			return d.abandon(ctx, p)
		}
		d.tally.Retryable.Add(1)
		d.account.Requeue(&p.Parcel)
		delay := pace.Retry(d.cfg.Retry, failures, out.delay)
		if !d.cfg.Retry.Enabled || d.tooOld(p, time.Now().Add(delay)) {
			return outcome{err: d.drop(p, account.RetriesExhausted, out.err)}
		}
		p.noteRetry(delay, out.err)
		if pace.Sleep(ctx, delay) != nil {
			return d.abandon(ctx, p)
		}
	}
}

// attempt sends a request once, or more often if streams are lost meanwhile.
func (d *destination) attempt(ctx context.Context, p *delivery) outcome {
	if limit := d.server.Largest(); exceeds(p, limit) {
		return outcome{verdict: division, limit: limit}
	}
	if p.unary || !d.server.Streams(time.Now()) {
		return d.unary(ctx, p)
	}
	l := d.lanes.enter(p.origin, time.Now())
	if l == nil {
		d.tally.Crowded.Add(1)
		if d.cfg.Mode != server.Stream {
			return d.unary(ctx, p)
		}
		if l = d.lanes.enterSoon(ctx, p); l == nil {
			if ctx.Err() != nil {
				return outcome{verdict: retry, err: ctx.Err()}
			}
			return outcome{verdict: failure, reason: account.RetriesExhausted, err: errors.New("there is no place for streams of its client")}
		}
	}
	defer d.lanes.leave(l)
	if out, ok := l.hand(ctx, p); !ok {
		return out
	}
	// The next one may follow as soon as the server is known to keep the order of a stream.
	var told <-chan struct{}
	if p.passes != nil {
		told = d.line.Told()
	}
	for {
		select {
		case out := <-p.done:
			return out
		case <-told:
			told = nil
			if d.line.Kept() {
				p.passes()
			}
		case <-ctx.Done():
			return outcome{verdict: retry, err: ctx.Err()}
		}
	}
}

func (d *destination) unary(ctx context.Context, p *delivery) outcome {
	if err := d.gate.Wait(ctx); err != nil {
		return outcome{verdict: retry, err: err}
	}
	data, err := d.signal.OTLPRequest(p.data)
	if err != nil {
		return outcome{verdict: failure, reason: account.Rejected, err: err}
	}
	if d.signal == otlpstream.Profiles { // a part of reused memory, which only the whole request holds
		data = bytes.Clone(data)
	}
	if !d.account.Send(&p.Parcel) {
		<-ctx.Done()
		return outcome{verdict: retry, err: ctx.Err()}
	}
	if p.sent++; p.sent > 1 {
		d.tally.Resent.Add(1)
	}
	p.noteUnary(p.sent - 1)
	payload := otlpstream.Payload{Data: data}
	if len(data) > 0 && &data[0] == &p.data[0] {
		payload.Memory = p.memory
	}
	own := ownCredentials(ctx, p)
	ctx, cancel := context.WithTimeout(transport.WithOrigin(transport.WithAuth(ctx), p.origin), cmp.Or(d.cfg.Timeout, d.cfg.AckTimeout))
	defer cancel()
	sent := time.Now()
	response, step, err := d.server.Compressed(p.step, func(c configcompression.Type) ([]byte, error) { return d.transport.Unary(ctx, payload, c) })
	p.step = step
	st := status.Convert(err)
	delay, asked := otlpstream.RetryDelay(st)
	if asked {
		d.server.Throttle(delay)
	}
	if limit, tooLarge := otlpstream.TooLarge(st); tooLarge {
		return d.divide(p, int64(limit))
	}
	switch {
	case err == nil:
		d.server.Answered(time.Now())
		d.tally.Acked(ctx, time.Since(sent))
		rejected, message := otlpstream.Rejected(response)
		d.partial(p, rejected, message, time.Now())
		return outcome{}
	case mayEnd(err, own):
		if ctx.Err() == nil {
			d.server.Fault(sent, err)
		}
		return outcome{verdict: retry, delay: delay, err: err}
	}
	if d.signal == otlpstream.Profiles && st.Code() == codes.Unimplemented {
		err = fmt.Errorf("the server takes no profiles, because it is older than they are, or has no pipeline for them: %w", err)
	}
	return outcome{verdict: failure, reason: account.Rejected, err: err}
}

// partial records that the server accepted a request, possibly not all of it.
func (d *destination) partial(p *delivery, rejected int, message string, now time.Time) {
	if rejected == 0 && message == "" {
		return
	}
	if rejected > 0 {
		d.account.Reject(&p.Parcel, rejected)
	}
	d.server.Complains(rejected, message, now)
}

// mayEnd reports whether a request that failed may be accepted later. A proxy's refusal ends when somebody corrects the
// proxy, the address or a certificate. A refusal of credentials ends when they are renewed, if they are the exporter's
// own.
func mayEnd(err error, own bool) bool {
	st := status.Convert(err)
	switch {
	case otlpstream.Transient(st):
		return true
	case st.Code() == codes.Unauthenticated:
		return own
	case st.Code() == codes.PermissionDenied:
		return own && transport.ByProxy(err)
	}
	return transport.ByProxy(err)
}

// ownCredentials reports whether a request has credentials of the exporter only. If these are refused, like an expired
// token, that is not about the request; those of a client may be wrong for ever, and must not keep other requests
// waiting.
func ownCredentials(ctx context.Context, p *delivery) bool {
	info := client.FromContext(ctx)
	for range info.Metadata.Keys() {
		return false
	}
	return p.origin == "" && info.Auth == nil
}

// divide returns the outcome for a message that is too large for the server. If the server does not report its limit,
// halves are tried.
func (d *destination) divide(p *delivery, limit int64) outcome {
	if exceeds(p, limit) {
		d.server.Takes(limit)
	} else {
		limit = int64(len(p.data))/2 + messageOverhead
	}
	return outcome{verdict: division, limit: limit}
}

func (d *destination) drop(p *delivery, why account.Reason, err error) error {
	items := p.Items
	d.account.Drop(&p.Parcel, why)
	p.noteResult(why.String())
	return consumererror.NewPermanent(fmt.Errorf("cannot deliver %d items (%s): %w", items, why, err))
}

// abandon ends a delivery because its time is over, not because of an error of its own.
func (d *destination) abandon(ctx context.Context, p *delivery) outcome {
	cause := context.Cause(ctx)
	switch {
	case !errors.Is(cause, errShutdown):
		d.account.Drop(&p.Parcel, account.Canceled)
		p.noteResult(account.Canceled.String())
	case d.queue.Stored():
		d.account.Keep(&p.Parcel)
		p.noteResult(resultKept)
	default:
		d.account.Drop(&p.Parcel, account.Shutdown)
		p.noteResult(account.Shutdown.String())
	}
	return outcome{err: cause}
}

// tooOld reports whether a delivery is older than retry_on_failure allows.
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
