// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"fmt"
	rand "math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
)

// TestSeveralPointsOfASeriesInABatch: senders that collect for a while have several values of a series in one batch,
// possibly with its end and return, or its restart, in between. At a limit, with series that lose places and get
// others, with and without aggregation, with refused batches, restarts and kills, nothing is counted twice; and unless
// something is reported as missing, nothing is.
func TestSeveralPointsOfASeriesInABatch(t *testing.T) {
	racetest.Sequential(t)
	seen := map[string]int{}
	for seed := range seeds(t, 24) {
		crowdedLife(t, seed, seen)
	}
	crowdedLife(t, 152597755775277, seen) // counted a series twice that came back to a place
	for _, what := range []string{"exact", "end", "reset", "restart", "kill", "busy", "idle", "promoted"} {
		require.Positive(t, seen[what], what)
	}
}

// crowded sends batches with many points per series.
type crowded struct {
	*piped

	seed      uint64
	random    *rand.Rand
	seen      map[string]int
	config    func(*Config)
	host      *memory
	inputs    []*crowdedInput
	came      int // of these, since the beginning
	want, got int64
	last      map[string]int64
	missing   bool // something may be missing
}

type crowdedInput struct {
	point

	start       time.Time
	value, said int64
}

func crowdedLife(t *testing.T, seed uint64, seen map[string]int) {
	c := &crowded{seed: seed, random: rand.New(rand.NewPCG(seed, 53)), seen: seen, host: newMemory(), last: map[string]int64{}}
	limit, users, aggregates := 1+c.random.IntN(8), c.random.IntN(3), seed%3 == 2
	c.config = withStorage(func(cfg *Config) {
		cfg.Exempt = []MatchConfig{{Metric: "exempt"}}
		cfg.Rules = []RuleConfig{{
			Name: "r", MaxSeries: limit, LabelLimits: map[string]int{"user": users},
			Exceed: ExceedConfig{OnExceed: []string{"collapse", "overflow"}},
		}}
		if aggregates {
			cfg.Rules = append(cfg.Rules, RuleConfig{Name: "a", Aggregate: &AggregateConfig{Without: []string{"id"}}})
		}
	})
	c.piped = newPiped(t, c.config)
	require.NoError(t, c.begin(c.host))
	for range 150 {
		c.step()
	}
	c.clock = c.clock.Add(c.cfg.IdleTimeout / 2) // those that wait do so for no longer
	for _, in := range c.inputs {
		c.clock = c.clock.Add(time.Second)
		c.piped.seen = c.count
		require.NoError(t, c.front.ConsumeMetrics(t.Context(), c.timed(in.point, in.start, c.clock, in.value)))
	}
	c.restart()
	c.sink.Reset()
	c.flush(t.Context())
	c.take()
	require.LessOrEqual(t, c.got, c.want, "seed %d", seed)
	if !c.missing {
		require.Equal(t, c.want, c.got, "seed %d", seed)
		seen["exact"]++
	}
}

func (c *crowded) step() {
	if len(c.inputs) < 4 || c.random.IntN(12) == 0 {
		c.came++
		k := []kind{cumulative, cumulative, histogram, summary}[c.random.IntN(4)]
		c.inputs = append(c.inputs, &crowdedInput{start: c.clock, point: point{name: fmt.Sprint("m", int(k)), kind: k, attrs: attrs{
			"user": int64(c.random.IntN(4)), "id": int64(c.came),
		}}})
	}
	c.batch()
	switch c.random.IntN(20) {
	case 0, 1, 2, 3, 4:
		c.sink.Reset() // it contains what passed, too
		c.pour(c.t.Context(), c.Aggregator.All(c.clock))
		c.flush(c.t.Context())
		c.take()
	case 5:
		c.restart()
	case 6:
		if c.seed%2 == 0 {
			return
		}
		c.seen["kill"]++
		c.missing = true // ends since the last flush
		after := c.host.killed()
		c.Snapshot.Storage = nil
		c.again(after)
	case 7:
		c.epochs(1)
	case 8:
		if c.seed%4 == 1 && c.random.IntN(4) == 0 {
			c.seen["idle"]++
			c.idle()
		}
	}
	require.LessOrEqual(c.t, c.got, c.want, "seed %d", c.seed)
}

// batch sends some points of some inputs, in order of time, in metrics of their own or in one.
func (c *crowded) batch() {
	md := pmetric.NewMetrics()
	for _, in := range c.inputs {
		if c.random.IntN(3) == 0 {
			continue
		}
		own := c.random.IntN(2) == 0
		for i := range 1 + c.random.IntN(4) {
			one := c.nextOf(in)
			if own || i == 0 {
				one.ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
			} else {
				all := md.ResourceMetrics()
				amount.AppendPointOf(all.At(all.Len()-1).ScopeMetrics().At(0).Metrics().At(0), onlyMetricOf(one))
			}
		}
	}
	metricsOf(point{name: "exempt"}).ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
	for c.random.IntN(4) == 0 {
		c.seen["busy"]++
		c.err = errBusy
		again := pmetric.NewMetrics()
		md.CopyTo(again)
		require.ErrorIs(c.t, c.front.ConsumeMetrics(c.t.Context(), again), errBusy)
	}
	c.err = nil
	c.piped.seen = c.count
	require.NoError(c.t, c.front.ConsumeMetrics(c.t.Context(), md))
	c.piped.seen = func(pmetric.Metrics) {}
}

// nextOf returns the next point of an input.
func (c *crowded) nextOf(in *crowdedInput) pmetric.Metrics {
	c.clock = c.clock.Add(time.Duration(1+c.random.IntN(900)) * time.Millisecond)
	switch c.random.IntN(12) {
	case 0:
		c.seen["end"]++
		one := c.timed(in.point, in.start, c.clock, 0)
		amount.Silence(onlyMetricOf(one), 0)
		return one
	case 1:
		c.seen["reset"]++
		in.start, in.value, in.said = c.clock.Add(-time.Microsecond), 0, 0
	}
	in.value += int64(c.random.IntN(20))
	c.want += in.value - in.said
	in.said = in.value
	return c.timed(in.point, in.start, c.clock, in.value)
}

func (c *crowded) take() {
	for _, md := range c.sink.AllMetrics() {
		c.count(md)
	}
	c.sink.Reset()
}

func (c *crowded) count(md pmetric.Metrics) {
	for id, p := range allPoints(md) {
		if p.metric.Name() == "exempt" || amount.WhenAt(p.metric, p.at).NoValue {
			continue
		}
		n, start := reading(p.metric, p.at)
		stream := fmt.Sprint(id, " ", uint64(start))
		require.GreaterOrEqual(c.t, n, c.last[stream], "seed %d: %s", c.seed, stream)
		c.got += n - c.last[stream]
		c.last[stream] = n
	}
}

// lost reports whether this process has counted anything as missing.
func (c *crowded) lost() bool {
	if got, err := c.telemetry.GetMetric("otelcol_processor_cardinality_promoted_series"); err == nil && sumOf(got, nil) > 0 {
		c.seen["promoted"]++
	}
	n := c.unaccounted("") - c.unaccounted(amount.NameNoValue)
	if got, err := c.telemetry.GetMetric("otelcol_processor_cardinality_unaggregated_points"); err == nil {
		n += sumOf(got, nil)
	}
	return n > 0
}

func (c *crowded) restart() {
	c.seen["restart"]++
	c.sink.Reset()
	require.NoError(c.t, c.shutdown(c.t.Context()))
	c.take()
	c.again(c.host)
}

func (c *crowded) again(host *memory) {
	c.missing = c.missing || c.lost()
	now := c.clock.Add(time.Second)
	c.host, c.piped = host, newPiped(c.t, c.config)
	c.clock = now
	c.Overflow.Begin = pcommon.NewTimestampFromTime(now)
	require.NoError(c.t, c.begin(host))
}
