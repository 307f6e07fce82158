// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/metadata"
)

// The metrics of all processors are the same as those of the Collector's helper: names, attributes, values and events.
func TestItIsMeasuredAsOthersAre(t *testing.T) {
	type event struct {
		name string
		of   []attribute.KeyValue
	}
	type measured struct {
		scope  metricdata.ScopeMetrics
		events []event
	}
	measure := func(create func(set processor.Settings) (processor.Metrics, error)) (m measured) {
		telemetry := componenttest.NewTelemetry()
		defer func() { require.NoError(t, telemetry.Shutdown(context.Background())) }()
		set := processortest.NewNopSettings(metadata.Type)
		set.ID, set.TelemetrySettings = component.NewIDWithName(metadata.Type, "one"), telemetry.NewTelemetrySettings()
		p, err := create(set)
		require.NoError(t, err)
		require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
		ctx, span := set.TracerProvider.Tracer("").Start(t.Context(), "scrape")
		for i := range 3 { // the last one gets no place
			require.NoError(t, p.ConsumeMetrics(ctx, metricsOf(aSeries(i), aSeries(i+1))))
		}
		span.End()
		require.NoError(t, p.Shutdown(t.Context()))
		var all metricdata.ResourceMetrics
		require.NoError(t, telemetry.Reader.Collect(t.Context(), &all))
		for _, s := range all.ScopeMetrics {
			if s.Scope.Name == "go.opentelemetry.io/collector/processor/processorhelper" {
				m.scope = s
			}
		}
		for _, e := range telemetry.SpanRecorder.Ended()[0].Events() {
			m.events = append(m.events, event{e.Name, e.Attributes})
		}
		return m
	}
	ours := measure(func(set processor.Settings) (processor.Metrics, error) {
		cfg := defaultConfig()
		cfg.Memory.MaxSeries, cfg.Defaults.Exceed.OnExceed = 2, []string{"drop"}
		return NewFactory().CreateMetrics(t.Context(), set, cfg, consumertest.NewNop())
	})
	helpers := measure(func(set processor.Settings) (processor.Metrics, error) {
		room := 2
		return processorhelper.NewMetrics(t.Context(), set, nil, consumertest.NewNop(), func(_ context.Context, md pmetric.Metrics) (pmetric.Metrics, error) {
			md.ResourceMetrics().RemoveIf(func(pmetric.ResourceMetrics) bool { room--; return room < 0 })
			if room++; md.ResourceMetrics().Len() == 0 {
				return md, processorhelper.ErrSkipProcessingData
			}
			return md, nil
		})
	})
	require.Len(t, helpers.scope.Metrics, 3)
	metricdatatest.AssertEqual(t, helpers.scope, ours.scope, metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreValue(), metricdatatest.IgnoreExemplars())
	numbers := func(m measured) (all []int64) {
		for _, m := range m.scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				all = append(all, data.DataPoints[0].Value)
			case metricdata.Histogram[float64]:
				all = append(all, int64(data.DataPoints[0].Count))
			}
		}
		return all
	}
	require.ElementsMatch(t, []int64{6, 3, 3}, numbers(ours))
	require.Len(t, ours.events, 6)
	require.Equal(t, helpers.events, ours.events)
}
