// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package prometheusremotewriteexporter

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	contrib "github.com/open-telemetry/opentelemetry-collector-contrib/exporter/prometheusremotewriteexporter"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/internal/racetest"
)

// seriesOf sends md through an exporter and returns the series that arrive, sorted.
func seriesOf(t *testing.T, factory exporter.Factory, keys map[string]any, md pmetric.Metrics) []string {
	t.Helper()
	var mu sync.Mutex
	var series []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		encoding, err := promwrite.ParseContentEncoding(r.Header.Get("Content-Encoding"))
		if err != nil {
			t.Error(err)
		}
		decompressor, err := promwrite.NewDecompressor(1 << 20)
		if err != nil {
			t.Error(err)
		}
		raw, err := decompressor.Decompress(nil, encoding, body)
		if err != nil {
			t.Error(err)
		}
		var decoder promwrite.Decoder
		if err := decoder.Decode(promwrite.V1, raw); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		for i := range decoder.Series {
			s := &decoder.Series[i]
			slices.SortFunc(s.Histograms, func(a, b promwrite.Histogram) int { return int(a.Timestamp - b.Timestamp) })
			for _, p := range s.Samples {
				series = append(series, fmt.Sprintf("%v %v@%d", s.Labels, p.Value, p.Timestamp))
			}
			for _, h := range s.Histograms {
				series = append(series, fmt.Sprintf("%v histogram of schema %d@%d", s.Labels, h.Schema, h.Timestamp))
			}
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()

	cfg := factory.CreateDefaultConfig()
	keys["endpoint"] = server.URL
	require.NoError(t, confmap.NewFromStringMap(keys).Unmarshal(cfg))
	e, err := factory.CreateMetrics(t.Context(), exportertest.NewNopSettings(factory.Type()), cfg)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	copied := pmetric.NewMetrics()
	md.CopyTo(copied)
	require.NoError(t, e.ConsumeMetrics(t.Context(), copied))
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(series) > 0
	}, 30*time.Second, time.Millisecond)
	require.NoError(t, e.Shutdown(context.Background()))
	slices.Sort(series)
	return series
}

func TestSeriesAreContribs(t *testing.T) {
	racetest.Sequential(t)
	md := metrics()
	for name, keys := range map[string]map[string]any{
		"defaults":            {},
		"namespace":           {"namespace": "wild"},
		"external labels":     {"external_labels": map[string]any{"cluster": "north", "bird": "none"}},
		"resource labels":     {"resource_to_telemetry_conversion": map[string]any{"enabled": true}},
		"no service labels":   {"resource_to_telemetry_conversion": map[string]any{"enabled": true, "exclude_service_attributes": true}},
		"no scope, no target": {"disable_scope_info": true, "target_info": map[string]any{"enabled": false}},
		"no suffixes":         {"add_metric_suffixes": false},
		"strategy":            {"translation_strategy": "UnderscoreEscapingWithoutSuffixes"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, seriesOf(t, contrib.NewFactory(), keys, md), seriesOf(t, NewFactory(), keys, md))
		})
	}
}

// metrics has one metric of each kind, with names and labels that need care.
func metrics() pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	for k, v := range map[string]string{
		"service.name": "nest", "service.namespace": "tundra", "service.instance.id": "7", "host.name": "alaska", "bird": "resource",
	} {
		rm.Resource().Attributes().PutStr(k, v)
	}
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName("field glasses")
	sm.Scope().SetVersion("v8")
	sm.Scope().Attributes().PutStr("lens.size", "42")
	add := func(name, unit string) pmetric.Metric {
		m := sm.Metrics().AppendEmpty()
		m.SetName(name)
		m.SetUnit(unit)
		return m
	}
	at := pcommon.NewTimestampFromTime(time.UnixMilli(1_700_000_000_123))
	attributes := func(m pcommon.Map) {
		m.PutStr("bird", "godwit")
		m.PutInt("_ring__number", 9)
		m.PutStr("wing.span", "70")
	}

	gauge := add("altitude.above__sea", "m").SetEmptyGauge().DataPoints().AppendEmpty()
	gauge.SetTimestamp(at)
	gauge.SetIntValue(3000)
	attributes(gauge.Attributes())

	sum := add("distance", "km").SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	count := sum.DataPoints().AppendEmpty()
	count.SetTimestamp(at)
	count.SetDoubleValue(11_000.5)
	attributes(count.Attributes())

	histogram := add("flap", "ms").SetEmptyHistogram()
	histogram.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	buckets := histogram.DataPoints().AppendEmpty()
	buckets.SetTimestamp(at)
	buckets.ExplicitBounds().FromRaw([]float64{1, 2.5})
	buckets.BucketCounts().FromRaw([]uint64{1, 2, 3})
	buckets.SetCount(6)
	buckets.SetSum(12.5)
	attributes(buckets.Attributes())

	exponential := add("gust", "1").SetEmptyExponentialHistogram()
	exponential.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	native := exponential.DataPoints().AppendEmpty()
	native.SetTimestamp(at)
	native.SetScale(2)
	native.SetCount(5)
	native.SetSum(9)
	native.Positive().BucketCounts().FromRaw([]uint64{2, 0, 3})

	quantiles := add("rest", "s").SetEmptySummary().DataPoints().AppendEmpty()
	quantiles.SetTimestamp(at)
	quantiles.SetCount(4)
	quantiles.SetSum(8)
	q := quantiles.QuantileValues().AppendEmpty()
	q.SetQuantile(0.5)
	q.SetValue(2)
	return md
}
