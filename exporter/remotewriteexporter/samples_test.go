// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// every returns a point of each type, with the given number of bounds.
func every(bounds int, at time.Time) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "every")
	metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
	stamp := pcommon.NewTimestampFromTime(at)
	gauge := metrics.AppendEmpty()
	gauge.SetName("gauge")
	g := gauge.SetEmptyGauge().DataPoints().AppendEmpty()
	g.SetTimestamp(stamp)
	g.SetDoubleValue(1)
	histogram := metrics.AppendEmpty()
	histogram.SetName("histogram")
	histogram.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	h := histogram.Histogram().DataPoints().AppendEmpty()
	h.SetTimestamp(stamp)
	h.SetSum(1)
	summary := metrics.AppendEmpty()
	summary.SetName("summary")
	s := summary.SetEmptySummary().DataPoints().AppendEmpty()
	s.SetTimestamp(stamp)
	for i := range bounds {
		h.ExplicitBounds().Append(float64(i))
		q := s.QuantileValues().AppendEmpty()
		q.SetQuantile(float64(i) / float64(bounds))
	}
	h.BucketCounts().FromRaw(make([]uint64, bounds+1))
	exponential := metrics.AppendEmpty()
	exponential.SetName("exponential")
	exponential.SetEmptyExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	exponential.ExponentialHistogram().DataPoints().AppendEmpty().SetTimestamp(stamp)
	return md
}

// The number of samples that is counted when a round is filled is the number that is sent.
func TestSamplesAreCountedAsTheyAreSent(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"classic":         func(*Config) {},
		"custom":          func(c *Config) { c.Points.ConvertExplicitHistogramsToNHCB = true },
		"custom, classic": func(c *Config) { c.Points.ConvertExplicitHistogramsToNHCB, c.Points.KeepClassicHistograms = true, true },
	} {
		for _, bounds := range []int{0, 1, 30} {
			cfg := NewDefaultConfig()
			cfg.Labels.TargetInfo.Enabled = false
			change(cfg)
			in, err := newIntake(cfg, Keys{}, nil)
			require.NoError(t, err)
			md := every(bounds, time.Now())
			require.NoError(t, in.encoder.Add(md, ""))
			samples, _ := in.encoder.Pending(0, "")
			require.Equal(t, int64(samples), cfg.Points.samplesOf(md, md.DataPointCount()), "%s, %d bounds", name, bounds)
		}
	}
}

// A round ends when it is a full request, although a histogram is one point.
func TestRoundsEndBySamples(t *testing.T) {
	d := newReceived(t, nil)
	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		c.Endpoint = d.URL
		c.Batch.MaxSamples, c.Batch.Timeout = 1000, time.Hour
		c.Labels.TargetInfo.Enabled = false
	})
	const each = 1 + 33 + 32 // plus a native histogram
	for i := range 16 {
		require.NoError(t, e.ConsumeMetrics(t.Context(), every(30, time.UnixMilli(int64(1e12+i)))))
	}
	eventually(t, func() bool { return d.samples() >= 14*each }, "a full request of them is sent")
}
