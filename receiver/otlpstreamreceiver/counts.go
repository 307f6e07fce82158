// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/godwit-otel/godwit/internal/otlpstream"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver/internal/metadata"
)

// transport is how a request came in.
type transport string

const (
	transportStream    transport = "grpc_stream"
	transportUnary     transport = "grpc_unary"
	transportHTTP      transport = "http"
	transportWebSocket transport = "websocket"
)

var transports = []transport{transportStream, transportUnary, transportHTTP, transportWebSocket}

// protocol is the transport's name in the Collector's own metrics.
func (t transport) protocol() string {
	if t == transportStream || t == transportUnary {
		return "grpc"
	}
	return "http"
}

func (t transport) streams() bool { return t == transportStream || t == transportWebSocket }

// counts are the counters of requests for the receiver's own metrics and the Collector's.
type counts struct {
	of        component.ID // of the receiver
	telemetry *metadata.TelemetryBuilder
	obs       map[transport]*receiverhelper.ObsReport
	parented  map[transport]*receiverhelper.ObsReport // see session
	outcomes  map[outcome]*tally
	resent    map[transport]*tally
}

func newCounts(set receiver.Settings) (*counts, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, fmt.Errorf("cannot set up telemetry: %w", err)
	}
	c := &counts{
		of: set.ID, telemetry: telemetry,
		obs:      map[transport]*receiverhelper.ObsReport{},
		parented: map[transport]*receiverhelper.ObsReport{},
		outcomes: map[outcome]*tally{},
		resent:   map[transport]*tally{},
	}
	for _, t := range transports {
		report := receiverhelper.ObsReportSettings{ReceiverID: set.ID, Transport: t.protocol(), ReceiverCreateSettings: set}
		if c.parented[t], err = receiverhelper.NewObsReport(report); err != nil {
			return nil, fmt.Errorf("cannot set up telemetry: %w", err)
		}
		// A stream's context lives as long as the stream: the spans of its requests are roots, with a link to the
		// stream's.
		report.LongLivedCtx = t.streams()
		if c.obs[t], err = receiverhelper.NewObsReport(report); err != nil {
			return nil, fmt.Errorf("cannot set up telemetry: %w", err)
		}
		c.resent[t] = &tally{options: []metric.AddOption{c.measuredOn(t)}}
		for _, result := range results {
			c.outcomes[outcome{t, result}] = &tally{options: []metric.AddOption{c.measuredOn(t, attribute.String("result", result))}}
		}
	}
	return c, nil
}

// measured returns the attributes of a measurement: the receiver, since all of a process share the metrics, and more.
func (c *counts) measured(more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append(more, attribute.String("receiver", c.of.String()))...))
}

// measuredOn returns the same for a transport.
func (c *counts) measuredOn(t transport, more ...attribute.KeyValue) metric.MeasurementOption {
	return c.measured(append(more, attribute.String("transport", string(t)))...)
}

// overload is the result of requests that the pipeline never saw, and partialSuccess of those that it accepted in part.
const (
	overload       = "overload"
	partialSuccess = "partial_success"
)

// results are all results of a request.
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

// outcome is the attributes by which requests are counted.
type outcome struct {
	transport transport
	result    string
}

// tally has the counters, for the receiver's metrics and its snapshots. Its attributes are made once.
type tally struct {
	n       atomic.Int64
	options []metric.AddOption
}

func (c *counts) count(t transport, result string, n int) {
	one := c.outcomes[outcome{t, result}]
	one.n.Add(int64(n))
	c.telemetry.ReceiverOtlpstreamRequests.Add(context.Background(), int64(n), one.options...)
}

// opened counts a new stream, and closed its end, by reason.
func (c *counts) opened(ctx context.Context, t transport) {
	c.telemetry.ReceiverOtlpstreamStreams.Add(ctx, 1, c.measuredOn(t))
}

func (c *counts) closed(ctx context.Context, t transport, reason string) {
	c.telemetry.ReceiverOtlpstreamStreams.Add(ctx, -1, c.measuredOn(t))
	c.telemetry.ReceiverOtlpstreamStreamsClosed.Add(ctx, 1, c.measuredOn(t, attribute.String("reason", reason)))
}

// duplicate counts a request that the pipeline had accepted before.
func (c *counts) duplicate(t transport) {
	c.telemetry.ReceiverOtlpstreamDuplicateRequests.Add(context.Background(), 1, c.measuredOn(t))
}

// resend counts a request that its client had sent before.
func (c *counts) resend(t transport) {
	one := c.resent[t]
	one.n.Add(1)
	c.telemetry.ReceiverOtlpstreamResentRequests.Add(context.Background(), 1, one.options...)
}
