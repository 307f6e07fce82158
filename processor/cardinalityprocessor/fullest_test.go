// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// fullestOf returns how far a limit of series, or of the values of a label, is used.
func (r *rig) fullestOf(rule, label string) (used, limit int64) {
	read := func(name string) (n int64) {
		got, err := r.telemetry.GetMetric("otelcol_processor_cardinality_" + name)
		require.NoError(r.t, err)
		points := got.Data.(metricdata.Gauge[int64]).DataPoints
		found := 0
		for i := range points {
			of, _ := points[i].Attributes.Value("rule")
			if at, _ := points[i].Attributes.Value("label"); of.AsString() == rule && at.AsString() == label {
				n = points[i].Value
				found++
			}
		}
		require.LessOrEqual(r.t, found, 1, name)
		return n
	}
	return read("fullest_group"), read("limit")
}

func (r *rig) requireFullest(rule, label string, used, limit int64) {
	r.t.Helper()
	hasUsed, hasLimit := r.fullestOf(rule, label)
	require.Equal(r.t, [2]int64{used, limit}, [2]int64{hasUsed, hasLimit}, "%s %s", rule, label)
}

// flock returns a series of a group.
func flock(name string, ring int) point {
	return point{name: "m", kind: gauge, attrs: attrs{"flock": name, "ring": ring}}
}

// The fullest group is the one with the least room left. Statistics make no difference.
func TestFullestGroupIsTold(t *testing.T) {
	for _, statistics := range []bool{true, false} {
		r := newRig(t, func(c *Config) {
			c.Statistics.Enabled = statistics
			c.Rules = []RuleConfig{
				{Name: "flocks", GroupBy: []string{"flock"}, MaxSeries: 10, LabelLimits: map[string]int{"ring": 8, "none": 0}},
				{Name: "counted"},
				{Name: "idle", Match: MatchConfig{Metric: "x"}, MaxSeries: 7},
			}
		})
		r.requireFullest("flocks", "", 0, 10)
		for i := range 6 {
			r.send(flock("north", i))
		}
		for i := range 3 {
			r.send(flock("south", i))
		}
		r.requireFullest("flocks", "", 6, 10)
		r.requireFullest("flocks", "ring", 6, 8)
		r.requireFullest("flocks", "none", 0, 0)
		r.requireFullest("counted", "", 0, 0)
		r.requireFullest("idle", "", 0, 7)
		r.requireFullest(policy.RuleTotal, "", 9, 200_000)
		for i := range 20 {
			r.send(flock("south", i))
		}
		r.requireFullest("flocks", "", 8, 10)
		r.requireFullest("flocks", "ring", 8, 8)
		r.idle()
		r.requireFullest("flocks", "", 0, 10)
		r.requireFullest("flocks", "ring", 0, 8)
	}
}

// If tenants have limits of their own, those count.
func TestFullestGroupGoesByItsOwnLimit(t *testing.T) {
	small, labels := 4, map[string]int{"i": 3}
	r := newRig(t, func(c *Config) {
		c.Tenant.From = []string{"resource:tenant"}
		c.Rules = []RuleConfig{{Name: "r", GroupBy: []string{"tenant"}, MaxSeries: 10, LabelLimits: map[string]int{"i": 9}}}
		c.Overrides = map[string]OverrideConfig{"small": {Rules: map[string]RuleOverrideConfig{"r": {MaxSeries: &small, LabelLimits: labels}}}}
	})
	of := func(tenant string, i int) point {
		p := aSeries(i)
		p.resource = attrs{"tenant": tenant}
		return p
	}
	for i := range 5 {
		r.send(of("large", i))
	}
	r.requireFullest("r", "", 5, 10)
	for i := range 3 {
		r.send(of("small", i))
	}
	r.requireFullest("r", "", 3, 4)
	r.requireFullest("r", "i", 3, 3)
	cfg := *r.cfg
	cfg.Overrides = nil
	r.Apply(&cfg)
	r.requireFullest("r", "", 5, 10)
	r.requireFullest("r", "i", 5, 9)
}

// After a restart, places are known immediately, and values of labels when they are next seen, on any series.
func TestFullestGroupIsToldAfterARestart(t *testing.T) {
	host := newMemory()
	config := withStorage(func(c *Config) {
		c.Rules = []RuleConfig{{Name: "r", GroupBy: []string{"flock"}, MaxSeries: 10, LabelLimits: map[string]int{"ring": 8}}}
	})
	before := newRig(t, config)
	require.NoError(t, before.begin(host))
	for i := range 5 {
		before.send(flock("north", i))
	}
	require.NoError(t, before.Snapshot.Save(t.Context()))

	after := newRig(t, config)
	require.NoError(t, after.begin(host.killed()))
	after.requireFullest("r", "", 5, 10)
	after.requireFullest("r", "ring", 0, 8)
	require.Len(t, after.send(flock("north", 0)), 1)
	after.requireFullest("r", "", 5, 10)
	after.requireFullest("r", "ring", 5, 8)
}

// The cost of visiting all groups, during which nothing waits.
func BenchmarkFullest(b *testing.B) {
	r := newRig(b, func(c *Config) {
		c.Memory.MaxSeries = 1_000_000
		c.Rules = []RuleConfig{{Name: "r", GroupBy: []string{"flock"}, MaxSeries: 10}}
	})
	for i := range 90_000 {
		r.consume(metricsOf(flock(strconv.Itoa(i), 0)))
	}
	for b.Loop() {
		r.Limiter.Groups.Fullest(r.Rules.Policy)
	}
}
