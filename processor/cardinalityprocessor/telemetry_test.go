// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/metadata"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// All processors of a process, and all instances of one, have the same metrics, with attributes that distinguish them.
func TestInstancesAreToldApart(t *testing.T) {
	telemetry := componenttest.NewTelemetry()
	defer func() { require.NoError(t, telemetry.Shutdown(context.Background())) }()
	for n, of := range []struct{ processor, pipeline string }{{"", "a"}, {"", "b"}, {"second", "b"}} {
		set := processortest.NewNopSettings(metadata.Type)
		set.ID = component.NewIDWithName(metadata.Type, of.processor)
		set.TelemetrySettings = telemetry.NewTelemetrySettings()
		cfg := defaultConfig()
		cfg.Rules = []RuleConfig{{
			Name: "one", GroupBy: []string{"metric"}, MaxSeries: 1, LabelLimits: map[string]int{"id": 9}, Owner: map[string]string{"team": "web"},
			Exceed: ExceedConfig{OnExceed: []string{"drop"}},
		}}
		p, err := NewFactory().CreateMetrics(t.Context(), set, cfg, consumertest.NewNop())
		require.NoError(t, err)
		require.NoError(t, p.Start(t.Context(), &startHost{Host: componenttest.NewNopHost(), InstanceID: instance{of.pipeline}}))
		defer func() { require.NoError(t, p.Shutdown(context.Background())) }()
		for i := range n + 2 {
			require.NoError(t, p.ConsumeMetrics(t.Context(), metricsOf(aSeries(i))))
		}
	}
	var all metricdata.ResourceMetrics
	require.NoError(t, telemetry.Reader.Collect(t.Context(), &all))
	seen := 0
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if !strings.HasPrefix(m.Name, "otelcol_processor_cardinality_") {
				continue
			}
			seen++
			for _, of := range []attrs{{"processor": "cardinality", "pipeline": "metrics/a"}, {"processor": "cardinality", "pipeline": "metrics/b"}, {"processor": "cardinality/second", "pipeline": "metrics/b"}} {
				require.Positive(t, dataPointsOf(m, of), "%s of %v", m.Name, of)
			}
			require.Equal(t, dataPointsOf(m, nil), 3*dataPointsOf(m, attrs{"processor": "cardinality", "pipeline": "metrics/a"}), m.Name)
		}
	}
	require.Greater(t, seen, 20)
	rejected, err := telemetry.GetMetric("otelcol_processor_cardinality_rejected_points")
	require.NoError(t, err)
	require.Equal(t, int64(1), sumOf(rejected, attrs{"processor": "cardinality", "pipeline": "metrics/a", "rule": "one", "team": "web"}))
	require.Equal(t, int64(2), sumOf(rejected, attrs{"processor": "cardinality", "pipeline": "metrics/b", "rule": "one"}))
	require.Equal(t, int64(3), sumOf(rejected, attrs{"processor": "cardinality/second", "rule": "one"}))
	series, err := telemetry.GetMetric("otelcol_processor_cardinality_series")
	require.NoError(t, err)
	require.Equal(t, int64(1), sumOf(series, attrs{"processor": "cardinality", "pipeline": "metrics/b", "rule": policy.RuleTotal}))
}

// dataPointsOf counts the points that have all of the attributes.
func dataPointsOf(m metricdata.Metrics, want attrs) (n int) {
	var points []metricdata.DataPoint[int64]
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		points = data.DataPoints
	case metricdata.Gauge[int64]:
		points = data.DataPoints
	}
	for _, p := range points {
		if hasAll(p.Attributes, want) {
			n++
		}
	}
	return n
}

// sumOf adds up the points that have all of the attributes.
func sumOf(m metricdata.Metrics, want attrs) int64 {
	var points []metricdata.DataPoint[int64]
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		points = data.DataPoints
	case metricdata.Gauge[int64]:
		points = data.DataPoints
	}
	var sum int64
	for _, p := range points {
		if hasAll(p.Attributes, want) {
			sum += p.Value
		}
	}
	return sum
}

func hasAll(set attribute.Set, want attrs) bool {
	for k, v := range want {
		if got, ok := set.Value(attribute.Key(k)); !ok || got.String() != fmt.Sprint(v) {
			return false
		}
	}
	return true
}
