// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"encoding/json"
	"fmt"
	rand "math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/insight"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// A dry run counts what enforcing would do: both report the same in metrics and in what is displayed, for any input.
func TestADryRunCountsWhatEnforcingRejects(t *testing.T) {
	racetest.Sequential(t)
	rejected := 0
	for seed := range seeds(t, 40) {
		rejected += dryRun(t, seed)
	}
	require.Positive(t, rejected)
}

func FuzzADryRunCountsWhatEnforcingRejects(f *testing.F) {
	f.Add(uint64(1000))
	f.Fuzz(func(t *testing.T, seed uint64) { dryRun(t, seed) })
}

func dryRun(t *testing.T, seed uint64) (rejected int) {
	random := rand.New(rand.NewPCG(seed, 21))
	actions := []string{"collapse", "collapse_worst", "overflow", "sample", "drop"}
	random.Shuffle(len(actions), func(i, j int) { actions[i], actions[j] = actions[j], actions[i] })
	rule := RuleConfig{
		Name: "r", GroupBy: [][]string{nil, {"metric"}, {"tenant"}}[random.IntN(3)], MaxSeries: random.IntN(12), MaxNewSeriesPerMinute: random.IntN(3) * 4,
		MaxPointsPerSecond: random.IntN(2) * 2,
		Exceed:             ExceedConfig{OnExceed: actions, KeepLabels: []string{"kind"}, SampleRate: 0.3, Gauge: []string{"last", "drop"}[random.IntN(2)]},
	}
	if random.IntN(2) == 0 {
		rule.LabelLimits = map[string]int{"id": random.IntN(8)}
	}
	if rule.MaxSeries > 0 && random.IntN(4) == 0 {
		rule.Adaptive.ShareBy = []string{"attribute:kind"}
	}
	aggregates := random.IntN(4) == 0
	both := make([]*rig, 2)
	for i, mode := range []string{policy.ModeEnforce, policy.ModeDryRun} {
		both[i] = newRig(t, func(c *Config) {
			c.Mode, c.Tenant.From = mode, []string{"metadata:flock"}
			c.Rules = []RuleConfig{rule}
			c.Memory.MaxSeries = 40
			if aggregates {
				c.Rules = append(c.Rules, RuleConfig{
					Name: "a", Match: MatchConfig{Metric: "m2"}, Aggregate: &AggregateConfig{Without: []string{"id"}, Interval: 10 * time.Second},
				})
			}
		})
	}
	began := both[0].clock
	for step := range 120 {
		var all []func(r *rig) pmetric.Metrics
		for range 1 + random.IntN(8) {
			p := point{
				name: fmt.Sprint("m", random.IntN(3)), attrs: attrs{"id": int64(random.IntN(25)), "kind": int64(random.IntN(2))},
			}
			p.kind = kind((len(p.name) + int(p.name[1])) % int(kinds))
			id := p.attrs["id"].(int64)
			start, value, ends := began.Add(time.Duration(id%5)*time.Second), int64(step)*(1+id), random.IntN(12) == 0
			all = append(all, func(r *rig) pmetric.Metrics {
				md := r.timed(p, start, r.clock, value)
				if ends {
					amount.Silence(onlyMetricOf(md), 0)
				}
				return md
			})
		}
		flock, sweeps, flushes := fmt.Sprint(random.IntN(3)), random.IntN(3), random.IntN(6) == 0
		for _, r := range both {
			r.clock = r.clock.Add(5 * time.Second)
			md := pmetric.NewMetrics()
			for _, said := range all {
				said(r).ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
			}
			_, _ = r.process(ident.Tenant{Name: flock, Key: "flock"}.Context(t.Context()), md)
			r.sweeps(sweeps * r.Limiter.Shards() / 2)
			if flushes {
				r.flush(t.Context())
				r.pour(t.Context(), r.Aggregator.Plan(r.Now()))
			}
		}
	}
	enforced, dry := counted(t, both[0]), counted(t, both[1])
	require.Equal(t, enforced, dry, "seed %d: %+v", seed, rule)
	if got, err := both[0].telemetry.GetMetric("otelcol_processor_cardinality_rejected_points"); err == nil {
		rejected = int(sumOf(got, nil))
	}
	return rejected
}

// counted returns everything that a processor reports about its counts, except what only one that changes data reports.
func counted(t *testing.T, r *rig) map[string]any {
	all := map[string]any{}
	for _, name := range []string{
		"rejected_points", "rejected_series", "series", "groups", "limit", "fullest_group", "admitted_series", "expired_series", "ended_series",
		"overflow_series", "overflow_members", "overflow_state", "unaccounted_points", "aggregated_points", "unaggregated_points", "aggregate_members",
		"aggregate_series", "shed_series", "contended_groups", "promoted_series",
	} {
		got, err := r.telemetry.GetMetric("otelcol_processor_cardinality_" + name)
		if err != nil {
			continue // nothing was counted
		}
		switch data := got.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				all[name+fmt.Sprint(p.Attributes.ToSlice())] = p.Value
			}
		case metricdata.Gauge[int64]:
			for _, p := range data.DataPoints {
				all[name+fmt.Sprint(p.Attributes.ToSlice())] = p.Value
			}
		default:
			require.Fail(t, "kind of metric", name)
		}
	}
	i := insight.New(r.Gate)
	o := i.Overview()
	all["overview"] = []any{o.Series, o.Metrics, o.Admitted, o.Expired, o.Groups, o.Rejected, len(o.Rejects), len(o.Overflow), o.Events}
	for _, l := range o.Limits {
		l.Fullest = nil // equally full groups have no order
		all["limit "+l.Rule+l.Label] = fmt.Sprint(l.Used, l.Groups, l.Rejected, l.Points, l.Last)
	}
	for _, of := range []string{inspect.TopMetrics, inspect.TopLabels, inspect.TopPairs, inspect.TopGroups} {
		for _, row := range i.Top(inspect.TopQuery{Of: of, N: 1000}).Rows {
			row.WorstLabel = "" // any of those with the same number of values
			text, err := json.Marshal(row)
			require.NoError(t, err)
			all[of+row.Name+row.Value] = string(text)
		}
	}
	return all
}
