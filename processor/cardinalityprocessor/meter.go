// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/collector/pipeline"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// meter records the metrics of all processors, as the Collector's processorhelper does. That visits all metrics before
// and after to count points; here, the numbers are known from the decisions.
type meter struct {
	in, out  metric.Int64Counter
	duration metric.Float64Histogram
	of       metric.MeasurementOption
	who      trace.EventOption
}

func newMeter(set processor.Settings) (*meter, error) {
	from := set.MeterProvider.Meter("go.opentelemetry.io/collector/processor/processorhelper")
	in, errIn := from.Int64Counter("otelcol_processor_incoming_items",
		metric.WithDescription("Number of items passed to the processor. [Alpha]"), metric.WithUnit("{item}"))
	duration, errDuration := from.Float64Histogram("otelcol_processor_internal_duration",
		metric.WithDescription("Duration of time taken to process a batch of telemetry data through the processor. [Alpha]"), metric.WithUnit("s"))
	out, errOut := from.Int64Counter("otelcol_processor_outgoing_items",
		metric.WithDescription("Number of items emitted from the processor. [Alpha]"), metric.WithUnit("{item}"))
	id := attribute.String("processor", set.ID.String())
	return &meter{
		in: in, out: out, duration: duration, who: trace.WithAttributes(id),
		of: metric.WithAttributeSet(attribute.NewSet(id, attribute.String("otel.signal", pipeline.SignalMetrics.String()))),
	}, errors.Join(errIn, errOut, errDuration)
}

// begin starts the measurement of a batch.
func (m *meter) begin(ctx context.Context) time.Time {
	trace.SpanFromContext(ctx).AddEvent("Start processing.", m.who)
	return time.Now()
}

// end records the result of a batch, before that is passed on.
func (m *meter) end(ctx context.Context, begun time.Time, came, goes int64) {
	m.duration.Record(ctx, time.Since(begun).Seconds(), m.of)
	trace.SpanFromContext(ctx).AddEvent("End processing.", m.who)
	m.in.Add(ctx, came, m.of)
	m.out.Add(ctx, goes, m.of)
}
