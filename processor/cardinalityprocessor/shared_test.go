// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/metadata"
)

// contexts is a consumer that records the context of its calls.
type contexts struct {
	*consumertest.MetricsSink

	seen func(info client.Info, md pmetric.Metrics)
}

func (c *contexts) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	c.seen(client.FromContext(ctx), md)
	return c.MetricsSink.ConsumeMetrics(ctx, md)
}

// lane is one pipeline of a shared processor.
type lane struct {
	processor.Metrics

	sink *consumertest.MetricsSink
}

func newLanes(t *testing.T, cfg *Config, files component.Host, names ...string) map[string]lane {
	all := map[string]lane{}
	for _, name := range names {
		sink := new(consumertest.MetricsSink)
		set := processortest.NewNopSettings(metadata.Type)
		set.ID = component.NewID(metadata.Type)
		p, err := NewFactory().CreateMetrics(t.Context(), set, cfg, sink)
		require.NoError(t, err)
		all[name] = lane{p, sink}
	}
	if files == nil {
		files = componenttest.NewNopHost()
	}
	for _, name := range names {
		require.NoError(t, all[name].Start(t.Context(), &startHost{Host: files, InstanceID: instance{name}}))
	}
	return all
}

// total returns the sum and the number of points of a metric that a pipeline received.
func (l lane) total() (sum int64, points int) {
	for _, md := range l.sink.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				for i := range amount.PointCount(m) {
					n, _ := reading(m, i)
					sum += n
					points++
				}
			}
		}
	}
	return sum, points
}

// TestPipelinesShareALimiter: there is one limit for all pipelines, and series made in a pipeline continue there, also
// after restarts.
func TestPipelinesShareALimiter(t *testing.T) {
	files := &lockedFiles{files: map[string]*memory{}, open: map[string]bool{}}
	cfg := defaultConfig()
	cfg.Shared, cfg.Storage, cfg.Overflow.Interval = true, &memoryID, time.Hour
	cfg.Memory.MaxSeries = 200_000
	cfg.Rules = []RuleConfig{{Name: "r", MaxSeries: 3, Exceed: ExceedConfig{OnExceed: []string{"overflow"}}}}
	require.NoError(t, cfg.Validate())
	start := time.Now().Add(-time.Second)
	say := func(l lane, kind kind, i int, n int64) {
		p := aSeries(i)
		p.kind = kind
		md := (&rig{}).timed(p, start, time.Now(), n)
		require.NoError(t, l.ConsumeMetrics(t.Context(), md))
	}
	for round := range 3 {
		all := newLanes(t, cfg, files, "a", "b")
		for i := range 2 {
			say(all["a"], delta, i, 1)
			say(all["b"], delta, i, 10)
		}
		say(all["a"], delta, 2, 1)
		say(all["b"], delta, 3, 10)
		_, passedA := all["a"].total()
		_, passedB := all["b"].total()
		require.Equal(t, 3, passedA+passedB, "round %d", round)
		require.NoError(t, all["a"].Shutdown(t.Context()))
		say(all["b"], delta, 4, 10)
		sumA, _ := all["a"].total()
		require.Equal(t, int64(3), sumA, "it is flushed with its pipeline")
		require.NoError(t, all["b"].Shutdown(t.Context()))
		sumA, _ = all["a"].total()
		sumB, _ := all["b"].total()
		require.Equal(t, []int64{3, 40}, []int64{sumA, sumB}, "round %d", round)
		require.NoError(t, all["b"].Shutdown(t.Context()), "again")
	}
}

// A cumulative series that overflows in two pipelines is a member in each.
func TestTheSameSeriesInTwoPipelines(t *testing.T) {
	cfg := defaultConfig()
	cfg.Shared, cfg.Overflow.Interval = true, time.Hour
	cfg.Rules = []RuleConfig{{Name: "r", LabelLimits: map[string]int{"i": 0}}}
	all := newLanes(t, cfg, nil, "a", "b")
	begin := time.Now()
	for i := range 5 {
		for _, l := range all {
			p := aSeries(i)
			p.kind = cumulative
			require.NoError(t, l.ConsumeMetrics(t.Context(), (&rig{}).timed(p, begin, begin.Add(time.Millisecond), 7)))
		}
	}
	require.NoError(t, all["a"].Shutdown(t.Context()))
	require.NoError(t, all["b"].Shutdown(t.Context()))
	for _, l := range all {
		require.NotEmpty(t, l.sink.AllMetrics())
		sum, _ := sharedLast(l)
		require.Equal(t, int64(35), sum)
	}
}

// sharedLast returns what a pipeline last received.
func sharedLast(l lane) (sum int64, points int) {
	all := l.sink.AllMetrics()
	last := lane{sink: new(consumertest.MetricsSink)}
	_ = last.sink.ConsumeMetrics(context.Background(), all[len(all)-1])
	return last.total()
}

// Without the pipeline's name nothing can be shared; an instance that was never started shuts down like any other.
func TestSharingNeedsPipelines(t *testing.T) {
	cfg := defaultConfig()
	cfg.Shared = true
	p, err := NewFactory().CreateMetrics(t.Context(), processortest.NewNopSettings(metadata.Type), cfg, new(consumertest.MetricsSink))
	require.NoError(t, err)
	require.ErrorContains(t, p.Start(t.Context(), &startHost{Host: componenttest.NewNopHost()}), "without `shared`")
	require.NoError(t, p.Shutdown(t.Context()))
}
