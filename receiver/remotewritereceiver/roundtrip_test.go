// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/prometheusremotewriteexporter"
	remoteapi "github.com/prometheus/client_golang/exp/api/remote"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/featuregate"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// points is the number of series of pipeline's metrics.
const points = 8

// through sends md through contrib's exporter into a receiver, and returns the result.
func through(t *testing.T, message remoteapi.WriteMessageType, md pmetric.Metrics) pmetric.Metrics {
	t.Helper()
	arrived := make(chan pmetric.Metrics, 16)
	next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		arrived <- md
		return nil
	})
	require.NoError(t, err)

	factory := prometheusremotewriteexporter.NewFactory()
	cfg := factory.CreateDefaultConfig().(*prometheusremotewriteexporter.Config)
	cfg.HTTP.Endpoint = start(t, settings(), next)
	cfg.HTTP.DisableKeepAlives = true
	cfg.RemoteWriteProtoMsg = message
	cfg.TranslationStrategy = "UnderscoreEscapingWithoutSuffixes"
	exporter, err := factory.CreateMetrics(context.Background(), exportertest.NewNopSettings(factory.Type()), cfg)
	require.NoError(t, err)
	require.NoError(t, exporter.Start(context.Background(), componenttest.NewNopHost()))
	require.NoError(t, exporter.ConsumeMetrics(context.Background(), md))
	all := pmetric.NewMetrics()
	for all.DataPointCount() < points { // Shutdown would drop what is still in the exporter
		md := <-arrived
		md.ResourceMetrics().MoveAndAppendTo(all.ResourceMetrics())
	}
	require.NoError(t, exporter.Shutdown(context.Background()))
	return all
}

// lossless returns what must survive: resources, names, attributes, values and times, in any order. Types do not: 1.0
// sends none, and in 2.0 a bucket comes back as the counter that it was turned into. Exemplars without their sample are
// contrib's responsibility.
func lossless(md pmetric.Metrics) []string {
	about := regexp.MustCompile(` \([a-z]+, ".*", ".*"\)$`)
	var lines []string
	for _, line := range describe(md) {
		lines = append(lines, about.ReplaceAllString(line, ""))
	}
	slices.Sort(lines)
	return lines
}

func TestRoundTripThroughContribsExporter(t *testing.T) {
	const gate = "exporter.prometheusremotewritexporter.enableSendingRW2"
	require.NoError(t, featuregate.GlobalRegistry().Set(gate, true))
	t.Cleanup(func() { require.NoError(t, featuregate.GlobalRegistry().Set(gate, false)) })

	for _, message := range []remoteapi.WriteMessageType{remoteapi.WriteV1MessageType, remoteapi.WriteV2MessageType} {
		t.Run(string(message), func(t *testing.T) {
			first := through(t, message, pipeline())
			counter := "gauge"
			if message == remoteapi.WriteV2MessageType {
				counter = "sum(true,Cumulative)"
			}
			require.Equal(t, strings.Split(strings.ReplaceAll(strings.TrimSpace(`
{service.instance.id=a:1 service.name=web service.namespace=shop} latency{path=/} = exponential(Cumulative) count=9 sum=12.5 scale=3 zero=1@0.001 +-2[1 0 0 0 4 3] -0[] @0..2000
{service.instance.id=a:1 service.name=web service.namespace=shop} requests_total{code=200} = COUNTER 5 @0..2000
{service.instance.id=a:1 service.name=web service.namespace=shop} requests_total{code=500} = COUNTER none @0..2000 stale
{service.instance.id=a:1 service.name=web service.namespace=shop} size_bucket{le=+Inf} = COUNTER 6 @0..2000
{service.instance.id=a:1 service.name=web service.namespace=shop} size_bucket{le=10} = COUNTER 3 @0..2000
{service.instance.id=a:1 service.name=web service.namespace=shop} size_count{} = COUNTER 6 @0..2000
{service.instance.id=a:1 service.name=web service.namespace=shop} size_sum{} = COUNTER 70 @0..2000
{service.name=lonely} temperature{} = gauge -3.5 @0..2000
`), "COUNTER", counter), "\n"), lossless(first))
			require.Equal(t, lossless(first), lossless(through(t, message, first)), "a second trip changes nothing")
		})
	}
}

// pipeline returns what a scrape or an application passes to the exporter.
func pipeline() pmetric.Metrics {
	const at, start = 2000e6, 1000e6
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.namespace", "shop")
	rm.Resource().Attributes().PutStr("service.name", "web")
	rm.Resource().Attributes().PutStr("service.instance.id", "a:1")
	metrics := rm.ScopeMetrics().AppendEmpty().Metrics()

	m := metrics.AppendEmpty()
	m.SetName("requests_total")
	sum := m.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	p := sum.DataPoints().AppendEmpty()
	p.SetTimestamp(at)
	p.SetStartTimestamp(start)
	p.SetDoubleValue(5)
	p.Attributes().PutStr("code", "200")
	p = sum.DataPoints().AppendEmpty()
	p.SetTimestamp(at)
	p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	p.Attributes().PutStr("code", "500")

	m = metrics.AppendEmpty()
	m.SetName("latency")
	exponential := m.SetEmptyExponentialHistogram()
	exponential.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	e := exponential.DataPoints().AppendEmpty()
	e.SetTimestamp(at)
	e.SetCount(9)
	e.SetSum(12.5)
	e.SetScale(3)
	e.SetZeroCount(1)
	e.SetZeroThreshold(0.001)
	e.Positive().SetOffset(-2)
	e.Positive().BucketCounts().FromRaw([]uint64{1, 0, 0, 0, 4, 3})
	e.Attributes().PutStr("path", "/")

	m = metrics.AppendEmpty()
	m.SetName("size")
	explicit := m.SetEmptyHistogram()
	explicit.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	h := explicit.DataPoints().AppendEmpty()
	h.SetTimestamp(at)
	h.SetCount(6)
	h.SetSum(70)
	h.ExplicitBounds().FromRaw([]float64{10})
	h.BucketCounts().FromRaw([]uint64{3, 3})

	rm = md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "lonely")
	m = rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("temperature")
	g := m.SetEmptyGauge().DataPoints().AppendEmpty()
	g.SetTimestamp(at)
	g.SetDoubleValue(-3.5)
	return md
}
