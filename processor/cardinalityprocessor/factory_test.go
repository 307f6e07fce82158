// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/metadata"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

func TestThroughTheFactory(t *testing.T) {
	sink := new(consumertest.MetricsSink)
	cfg := defaultConfig()
	cfg.Memory.MaxSeries = 2
	cfg.IdleTimeout = policy.MinIdleTimeout
	cfg.Overflow.Interval = time.Second
	p, err := NewFactory().CreateMetrics(t.Context(), processortest.NewNopSettings(metadata.Type), cfg, sink)
	require.NoError(t, err)
	require.True(t, p.Capabilities().MutatesData)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	for i := range 10 {
		s := aSeries(i)
		s.kind = delta
		s.value = 1
		require.NoError(t, p.ConsumeMetrics(t.Context(), metricsOf(s)))
	}
	require.Equal(t, 2, sink.DataPointCount(), "what is emptied is not sent")
	require.Eventually(t, func() bool { return sink.DataPointCount() > 2 }, 30*time.Second, 10*time.Millisecond)
	s := aSeries(100)
	s.kind = delta
	s.value = 1
	require.NoError(t, p.ConsumeMetrics(t.Context(), metricsOf(s)))
	require.NoError(t, p.Shutdown(t.Context()))
	sum := 0.0
	for _, md := range sink.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			sum += rm.ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(0).DoubleValue()
		}
	}
	require.InDelta(t, 11, sum, 0, "shutdown sends the rest")
}

func TestDryRunDoesNotClaimToMutate(t *testing.T) {
	cfg := defaultConfig()
	cfg.Mode = policy.ModeDryRun
	p, err := NewFactory().CreateMetrics(t.Context(), processortest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
	require.NoError(t, err)
	require.False(t, p.Capabilities().MutatesData)
	require.NoError(t, p.Shutdown(t.Context()))
}
