// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/internal/owned"
	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/receiver/remotewritereceiver/internal/admission"
)

// retryAfter is the pause in seconds that is asked for when the pipeline is busy. Senders back off further on their
// own.
const retryAfter = "1"

// response is the answer to one request, with data about the request.
type response struct {
	code    int
	written promwrite.Written
	err     error // the reason, unless code is 204

	points      int  // offered to the pipeline
	taken       bool // the pipeline accepted it
	rejects     rejects
	wire, plain int // bytes of the body, as received and as decoded
}

// ServeHTTP answers one request.
func (r *remoteWriteReceiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "remote write is sent with POST", http.StatusMethodNotAllowed)
		return
	}
	begins := r.timeAnswer(w)
	var answer response
	version, err := promwrite.ParseContentType(req.Header.Get("Content-Type"))
	if err != nil {
		answer = response{code: http.StatusUnsupportedMediaType, err: err}
	} else {
		answer = r.write(w, req, version)
		answer.written.SetHeaders(w.Header())
	}
	r.telemetry.ReceiverRemotewriteRequests.Add(req.Context(), 1, r.requestOf(version, answer.code))
	r.tally.count(req, version, &answer)

	begins()
	switch answer.code {
	case http.StatusNoContent:
		w.WriteHeader(http.StatusNoContent)
		return
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		w.Header().Set("Retry-After", retryAfter)
	}
	http.Error(w, answer.err.Error(), answer.code)
}

// timeAnswer has `write_timeout` begin with the answer. With net/http's server it begins with the request: if the pipeline takes longer, what it
// accepted is sent again, as the answer is lost. Over HTTP/2 the stream ends at once, so it is not enough to extend the time afterwards. Our own
// server needs none of this.
func (r *remoteWriteReceiver) timeAnswer(w http.ResponseWriter) (begins func()) {
	timeout := r.cfg.HTTP.WriteTimeout
	if timeout <= 0 || !r.cfg.HTTP.TLS.HasValue() {
		return func() {}
	}
	c := http.NewResponseController(w)
	_ = c.SetWriteDeadline(time.Time{}) // net/http's can
	return func() { _ = c.SetWriteDeadline(time.Now().Add(timeout)) }
}

// requestOf returns the attributes by which a request is counted.
func (r *remoteWriteReceiver) requestOf(version promwrite.Version, code int) metric.MeasurementOption {
	if option, known := r.fine[version]; known && code == http.StatusNoContent { // fast path
		return option
	}
	return r.measured(attribute.String("version", version.String()), attribute.Int("code", code))
}

// write hands one request's series to the pipeline.
func (r *remoteWriteReceiver) write(w http.ResponseWriter, req *http.Request, version promwrite.Version) response {
	encoding, err := promwrite.ParseContentEncoding(req.Header.Get("Content-Encoding"))
	if err != nil {
		return response{code: http.StatusUnsupportedMediaType, err: err}
	}
	r.age()
	ctx := r.obsreport.StartMetricsOp(req.Context())
	held := r.memory.Held()
	defer held.Done()
	batch, wire, err := r.decode(ctx, w, req, version, encoding, &held)
	if err != nil {
		r.obsreport.EndMetricsOp(ctx, "remotewrite", 0, err)
		return response{code: decodeCode(err), err: err, wire: wire}
	}
	r.countFailovers(ctx, &batch)

	points := batch.written.Samples + batch.written.Histograms
	answer := response{code: http.StatusNoContent, points: points, rejects: batch.rejects, wire: wire, plain: batch.plain}
	if points > 0 {
		if r.tap.IsOpen() {
			batch.tree.settle()
			r.tap.Metrics(batch.metrics)
		}
		err = owned.Metrics(batch.tree.lend(ctx, points), r.next, batch.metrics)
	}
	r.obsreport.EndMetricsOp(ctx, "remotewrite", points, err)
	if err != nil {
		r.refused(batch.tree, err)
		answer.code, answer.err = consumeCode(err), fmt.Errorf("cannot pass %d points on: %w", points, err)
		if answer.code == http.StatusBadRequest {
			r.countLeftOut(ctx, &batch)
		} else { // all of it will be sent again
			answer.rejects = rejects{}
		}
		return answer
	}
	r.countLeftOut(ctx, &batch)
	r.takeBack(batch.tree)
	batch.ballot.Passed()
	answer.taken, answer.written = true, batch.written
	for _, w := range [...]promwrite.Written{batch.left, batch.learnt} {
		answer.written.Samples += w.Samples
		answer.written.Histograms += w.Histograms
		answer.written.Exemplars += w.Exemplars
	}
	if err := batch.rejects.err(); err != nil {
		// The rest was accepted, and the headers say how much: sending it again would not help.
		answer.code, answer.err = http.StatusBadRequest, err
	}
	return answer
}

// countLeftOut counts what was left out of a request and will not be sent again.
func (r *remoteWriteReceiver) countLeftOut(ctx context.Context, b *batch) {
	r.countRejects(ctx, &b.rejects)
	if n := b.left.Samples + b.left.Histograms; n > 0 {
		r.telemetry.ReceiverRemotewriteDeduplicatedPoints.Add(ctx, int64(n), r.measured())
	}
}

// countFailovers counts elections that changed to another replica in a request.
func (r *remoteWriteReceiver) countFailovers(ctx context.Context, b *batch) {
	if b.ballot == nil {
		return
	}
	if n := b.ballot.Tell(); n > 0 {
		r.telemetry.ReceiverRemotewriteFailovers.Add(ctx, int64(n), r.measured())
	}
}

// decode reads the body at the sender's pace, and only then takes a worker. It also returns the size of the body.
func (r *remoteWriteReceiver) decode(
	ctx context.Context, w http.ResponseWriter, req *http.Request, version promwrite.Version, encoding promwrite.Encoding, held *admission.Hold,
) (decoded batch, wire int, err error) {
	body, done, err := r.memory.Read(ctx, w, req)
	defer done()
	wire = len(body)
	if err != nil {
		return batch{}, wire, err
	}
	if !r.memory.InTurn(wire) { // else those that have slots may wait for its memory
		if err := r.slot(ctx); err != nil {
			return batch{}, wire, fmt.Errorf("cannot decode %d bytes: %w", wire, err)
		}
		defer func() { <-r.slots }()
	}
	worker, err := r.worker()
	if err != nil {
		return batch{}, wire, err
	}
	worker.translator.layout.asker = asker{r.infos, tenantOf(req, r.cfg.TargetInfo.TenantHeader, r.infos != nil)}
	ballot := r.replicas.Ballot(tenantOf(req, r.cfg.Replicas.TenantHeader, r.replicas != nil))
	into := r.tree()
	decoded, err = worker.work(ctx, version, encoding, body, held, ballot, into)
	held.Translated()
	if err != nil {
		r.takeBack(into)
	}
	if !worker.oversized() {
		r.idle.Put(worker)
	}
	return decoded, wire, err
}

// tenantOf is the value of a request's header, if asked: a header name that is not canonical costs a conversion each
// time.
func tenantOf(req *http.Request, header string, asked bool) string {
	if !asked {
		return ""
	}
	return req.Header.Get(header)
}

// slot takes a slot. If one is free, it need not watch whether the client is still there.
func (r *remoteWriteReceiver) slot(ctx context.Context) error {
	select {
	case r.slots <- struct{}{}: // fast path
		return nil
	default:
	}
	select {
	case r.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// worker takes an idle worker or makes one. The garbage collector takes idle ones after a while.
func (r *remoteWriteReceiver) worker() (*worker, error) {
	known := r.known.Load()
	if w, ok := r.idle.Get().(*worker); ok {
		w.translator.request.known = known
		return w, nil
	}
	return newWorker(r.cfg, known)
}

// decodeCode is the status code for an error of decoding.
func decodeCode(err error) int {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge), errors.Is(err, promwrite.ErrTooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, admission.ErrBusy), errors.Is(err, admission.ErrSlow), errors.Is(err, os.ErrDeadlineExceeded):
		return http.StatusServiceUnavailable // senders drop data on 408
	}
	return http.StatusBadRequest
}

// consumeCode returns the status code that makes the sender send again, or not: not after a permanent error, later
// after any other.
func consumeCode(err error) int {
	switch {
	case consumererror.IsPermanent(err):
		return http.StatusBadRequest
	case status.Code(err) == codes.ResourceExhausted, consumererror.ToHTTPStatus(err) == http.StatusTooManyRequests:
		return http.StatusTooManyRequests
	}
	return http.StatusServiceUnavailable
}
