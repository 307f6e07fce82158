// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

// retryAfter, in seconds, is the pause asked for when the pipeline is busy. Senders back off further on their own.
const retryAfter = "1"

// response is the answer to one request.
type response struct {
	code    int
	written promwrite.Written
	err     error // the reason, unless code is 204
}

// ServeHTTP answers one request.
func (r *remoteWriteReceiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "remote write is sent with POST", http.StatusMethodNotAllowed)
		return
	}
	var answer response
	version, err := promwrite.ParseContentType(req.Header.Get("Content-Type"))
	if err != nil {
		answer = response{code: http.StatusUnsupportedMediaType, err: err}
	} else {
		answer = r.write(req, version)
		answer.written.SetHeaders(w.Header())
	}
	r.telemetry.ReceiverRemotewriteRequests.Add(req.Context(), 1, metric.WithAttributeSet(attribute.NewSet(
		attribute.String("version", version.String()), attribute.Int("code", answer.code),
	)))

	switch answer.code {
	case http.StatusNoContent:
		w.WriteHeader(http.StatusNoContent)
		return
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		w.Header().Set("Retry-After", retryAfter)
	}
	http.Error(w, answer.err.Error(), answer.code)
}

// write takes one request's series to the pipeline.
func (r *remoteWriteReceiver) write(req *http.Request, version promwrite.Version) response {
	encoding, err := promwrite.ParseContentEncoding(req.Header.Get("Content-Encoding"))
	if err != nil {
		return response{code: http.StatusUnsupportedMediaType, err: err}
	}
	ctx := r.obsreport.StartMetricsOp(req.Context())
	batch, err := r.decode(ctx, req, version, encoding)
	if err != nil {
		r.obsreport.EndMetricsOp(ctx, "remotewrite", 0, err)
		return response{code: decodeCode(err), err: err}
	}
	batch.rejects.count(ctx, r.telemetry)

	points := batch.written.Samples + batch.written.Histograms
	if points > 0 {
		err = r.next.ConsumeMetrics(ctx, batch.metrics)
	}
	r.obsreport.EndMetricsOp(ctx, "remotewrite", points, err)
	if err != nil {
		return response{code: consumeCode(err), err: fmt.Errorf("cannot pass %d points on: %w", points, err)}
	}
	if err := batch.rejects.err(); err != nil {
		// The rest is written, and the headers say how much that is: sending it again would not help.
		return response{code: http.StatusBadRequest, written: batch.written, err: err}
	}
	return response{code: http.StatusNoContent, written: batch.written}
}

// bodies holds buffers for bodies as received.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

const maxRetainedBody = 4 << 20 // one huge body must not pin memory for ever

// decode reads the body at the sender's pace, and only then takes a worker.
func (r *remoteWriteReceiver) decode(ctx context.Context, req *http.Request, version promwrite.Version, encoding promwrite.Encoding) (batch, error) {
	body := bodies.Get().(*bytes.Buffer)
	defer func() {
		if body.Cap() <= maxRetainedBody {
			body.Reset()
			bodies.Put(body)
		}
	}()
	if _, err := body.ReadFrom(req.Body); err != nil {
		return batch{}, fmt.Errorf("cannot read the body after %d bytes: %w", body.Len(), err)
	}
	select {
	case w := <-r.workers:
		defer func() { r.workers <- w }()
		return w.work(version, encoding, body.Bytes())
	case <-ctx.Done():
		return batch{}, fmt.Errorf("cannot decode %d bytes: %w", body.Len(), ctx.Err())
	}
}

// decodeCode says whose fault it is that nothing was decoded.
func decodeCode(err error) int {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge), errors.Is(err, promwrite.ErrTooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable
	}
	return http.StatusBadRequest
}

// consumeCode tells the sender whether to send again: never after a permanent error, later after any other.
func consumeCode(err error) int {
	switch {
	case consumererror.IsPermanent(err):
		return http.StatusBadRequest
	case status.Code(err) == codes.ResourceExhausted, consumererror.ToHTTPStatus(err) == http.StatusTooManyRequests:
		return http.StatusTooManyRequests
	}
	return http.StatusServiceUnavailable
}
