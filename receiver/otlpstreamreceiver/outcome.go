// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"context"
	"slices"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// transport is how a request came.
type transport string

const (
	transportStream    transport = "grpc_stream"
	transportUnary     transport = "grpc_unary"
	transportHTTP      transport = "http"
	transportWebSocket transport = "websocket"
)

var transports = []transport{transportStream, transportUnary, transportHTTP, transportWebSocket}

// protocol is the transport as the Collector's own metrics have it.
func (t transport) protocol() string {
	if t == transportStream || t == transportUnary {
		return "grpc"
	}
	return "http"
}

func (t transport) streams() bool { return t == transportStream || t == transportWebSocket }

// measured is the attributes of a measurement: which receiver it is of, for all of a process share the metrics, and what else
// there is to tell.
func (r *otlpReceiver) measured(more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append(more, attribute.String("receiver", r.settings.ID.String()))...))
}

// measuredOn is the same of what came over a transport.
func (r *otlpReceiver) measuredOn(t transport, more ...attribute.KeyValue) metric.MeasurementOption {
	return r.measured(append(more, attribute.String("transport", string(t)))...)
}

// overload is the result of what the pipeline never saw, and partialSuccess of what it has taken a part of.
const (
	overload       = "overload"
	partialSuccess = "partial_success"
)

// results are what can become of a request.
var results = [...]string{
	otlpstream.Success.String(), otlpstream.FailedNoneRetryable.String(), otlpstream.FailedRetryable.String(), overload, partialSuccess,
}

func resultName(code otlpstream.ResultCode, refused bool, rejected part) string {
	switch {
	case refused:
		return overload
	case rejected.items > 0:
		return partialSuccess
	}
	return code.String()
}

func resultIndex(result string) int { return slices.Index(results[:], result) }

// outcome is what requests are counted by.
type outcome struct {
	transport transport
	result    string
}

// tally counts, for the receiver's metrics and for those who look. Its attributes are made once.
type tally struct {
	n       atomic.Int64
	options []metric.AddOption
}

func (r *otlpReceiver) count(t transport, result string, n int) {
	c := r.outcomes[outcome{t, result}]
	c.n.Add(int64(n))
	r.telemetry.ReceiverOtlpstreamRequests.Add(context.Background(), int64(n), c.options...)
}

// resend counts a request that its client had sent before.
func (r *otlpReceiver) resend(t transport) {
	c := r.resent[t]
	c.n.Add(1)
	r.telemetry.ReceiverOtlpstreamResentRequests.Add(context.Background(), 1, c.options...)
}
