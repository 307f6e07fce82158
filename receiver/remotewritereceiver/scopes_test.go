// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"net/http"
	"testing"

	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// TestLabelsBecomeScopes: series of one resource are grouped by the scope in their labels, and their points do not have
// these labels; without the key they stay labels.
func TestLabelsBecomeScopes(t *testing.T) {
	request := newV2()
	for i, labels := range [][]string{
		{"__name__", "a", "job", "j", "otel_scope_name", "lib", "otel_scope_version", "1", "otel_scope_team", "x", "own", "1"},
		{"__name__", "b", "job", "j"},
		{"__name__", "a", "job", "j", "otel_scope_name", "lib", "otel_scope_version", "1", "otel_scope_team", "x", "own", "2"},
		{"__name__", "a", "job", "j", "otel_scope_name", "lib", "otel_scope_version", "2", "otel_scope_schema_url", "http://s"},
		{"__name__", "a", "job", "k", "otel_scope_name", "lib", "otel_scope_version", "", "otel_scope_empty", ""},
	} {
		request.series(sample(float64(i), 1000, 0), writev2.Metadata_METRIC_TYPE_GAUGE, "", "", labels...)
	}
	send := func(scopes bool) pmetric.Metrics {
		sink := new(consumertest.MetricsSink)
		a := postV2(t, start(t, settings(), sink, func(c *Config) { c.ScopesFromLabels = scopes }), &request.Request)
		require.Equal(t, http.StatusNoContent, a.code, a.body)
		require.Equal(t, 5, a.written.Samples)
		return sink.AllMetrics()[0]
	}
	md := send(true)
	require.Equal(t, 2, md.ResourceMetrics().Len())
	first := md.ResourceMetrics().At(0).ScopeMetrics()
	require.Equal(t, 3, first.Len())
	require.Equal(t, "lib", first.At(0).Scope().Name())
	require.Equal(t, "1", first.At(0).Scope().Version())
	require.Equal(t, map[string]any{"team": "x"}, first.At(0).Scope().Attributes().AsRaw())
	points := first.At(0).Metrics().At(0).Gauge().DataPoints()
	require.Equal(t, 2, points.Len(), "of one metric")
	require.Equal(t, map[string]any{"own": "2"}, points.At(1).Attributes().AsRaw())
	require.Empty(t, first.At(1).Scope().Name())
	require.Equal(t, "2", first.At(2).Scope().Version())
	require.Equal(t, "http://s", first.At(2).SchemaUrl())
	second := md.ResourceMetrics().At(1).ScopeMetrics()
	require.Equal(t, 1, second.Len())
	require.Equal(t, "lib", second.At(0).Scope().Name())
	require.Zero(t, second.At(0).Scope().Attributes().Len())

	md = send(false)
	require.Equal(t, 1, md.ResourceMetrics().At(0).ScopeMetrics().Len())
	point := md.ResourceMetrics().At(1).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0)
	require.Equal(t, map[string]any{"otel_scope_name": "lib"}, point.Attributes().AsRaw())
}
