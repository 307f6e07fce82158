// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOneNameOfTwoTypesMakesNoSeriesTwice: all results but sums are gauges, so those of a gauge and of a sum of the same
// name would be the same series. The type that comes first has it; the other passes.
func TestOneNameOfTwoTypesMakesNoSeriesTwice(t *testing.T) {
	for _, c := range []struct {
		name          string
		outputs       []string
		first, second kind
		made          []string
		passes        int
	}{
		{"extremes", []string{"min", "max"}, gauge, upDown, []string{"hits.max{service:s} 2", "hits.min{service:s} 1"}, 2},
		{"extremes, the other way round", []string{"min", "max"}, upDown, gauge, []string{"hits.max{service:s} 2", "hits.min{service:s} 1"}, 2},
		{"the only output", []string{"max"}, gauge, upDown, []string{"hits{service:s} 2"}, 2},
		{"counts", []string{"sum", "count"}, cumulative, delta, []string{"hits.count{service:s} 2", "hits{service:s} 3"}, 2},
		{"sums", []string{"sum"}, gauge, upDown, []string{"hits{service:s} 3", "hits{service:s} 3"}, 0},
		{"sums of counters", []string{"sum"}, cumulative, delta, []string{"hits{service:s} 3", "hits{service:s} 3"}, 0},
		{"the same type", []string{"min", "max"}, gauge, gauge, []string{"hits.max{service:s} 2", "hits.min{service:s} 1"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, aggregating(AggregateConfig{By: []string{"service"}, Outputs: c.outputs}))
			passed := 0
			for _, k := range []kind{c.first, c.second} {
				for i, p := range []string{"a", "b"} {
					passed += r.consume(r.timed(pod(k, p, "/"), r.clock, r.at(1), int64(i+1))).DataPointCount()
				}
			}
			require.Equal(t, c.passes, passed)
			require.Equal(t, c.made, told(r.poured(10*time.Second)))
			got, err := r.telemetry.GetMetric("otelcol_processor_cardinality_unaggregated_points")
			if c.passes > 0 {
				require.NoError(t, err)
				require.Equal(t, int64(c.passes), sumOf(got, attrs{"rule": "a", "reason": "output"}))
			}
		})
	}
}

// TestASumLeavesTheOverflowForAnAggregate: with keep_input, a sum that goes up and down may be in the overflow, and in an
// aggregate. Without, it is only in the aggregate.
func TestASumLeavesTheOverflowForAnAggregate(t *testing.T) {
	keeps := AggregateConfig{Without: []string{"pod"}, KeepInput: true}
	config := func(of AggregateConfig) func(*Config) {
		return func(c *Config) {
			c.Rules = []RuleConfig{
				{Name: "a", Aggregate: &of},
				{Name: "r", Match: MatchConfig{Resource: map[string]string{"pod": "*"}}, MaxSeries: 1, Exceed: ExceedConfig{OnExceed: []string{"overflow"}}},
			}
		}
	}
	r := newRig(t, config(keeps))
	say := func(a, b int64) (passed []string) {
		for i, n := range []int64{a, b} {
			passed = append(passed, told(r.consume(r.timed(pod(upDown, string(rune('a'+i)), "/"), r.clock, r.at(1), n)))...)
		}
		return passed
	}
	require.Equal(t, []string{"hits{pod:a route:/ service:s} 10"}, say(10, 20))
	require.Equal(t, []string{"hits.sum{route:/ service:s} 30"}, told(r.poured(10*time.Second)))
	require.Equal(t, []string{"hits{otel.metric.overflow:true} 20"}, told(r.flushed(time.Second)))

	keeps.KeepInput = false
	cfg := *r.cfg
	config(keeps)(&cfg)
	r.Apply(&cfg)
	require.Equal(t, []string{"hits{pod:a route:/ service:s} ends"}, say(11, 21))
	require.Equal(t, []string{"hits.sum{route:/ service:s} ends", "hits{route:/ service:s} 32"}, told(r.poured(10*time.Second)))
	require.Empty(t, told(r.flushed(time.Second)), "nobody is left there")
	require.Zero(t, r.gauge("overflow_members", ""))
	say(12, 22)
	require.Equal(t, []string{"hits{route:/ service:s} 34"}, told(r.poured(10*time.Second)))
}
