// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/series"
)

// Name says whose the measurements are: a pipeline's, or without a name those of all that share the processor. Rules that are
// compiled from then on know it.
func (g *Gate) Name(pipeline string) {
	g.Pipeline, g.Instance = pipeline, policy.NewInstance(g.id.String(), pipeline)
	g.Policy.Instance, g.Aggregator.Instance = g.Instance, g.Instance
	g.Own = g.Instance.Measured()
	for i, name := range amount.LossNames {
		g.Losses[i] = g.Instance.Measured(attribute.String(policy.LabelReason, name))
	}
}

// Observe has what there is measured when it is asked for. To do so again changes nothing.
func (g *Gate) Observe() error {
	if g.observed {
		return nil
	}
	g.observed = true
	return errors.Join(
		g.observeFullest(),
		g.Telemetry.RegisterProcessorCardinalityAdmittedSeriesCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(g.Limiter.Admitted.Load(), g.Own)
			return nil
		}),
		g.Telemetry.RegisterProcessorCardinalityAggregateMembersCallback(func(_ context.Context, o metric.Int64Observer) error {
			_, feeders := g.Aggregator.Sizes()
			g.observeRules(o, feeders)
			return nil
		}),
		g.Telemetry.RegisterProcessorCardinalityAggregateSeriesCallback(func(_ context.Context, o metric.Int64Observer) error {
			made, _ := g.Aggregator.Sizes()
			g.observeRules(o, made)
			return nil
		}),
		g.Telemetry.RegisterProcessorCardinalityAggregateStateCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(g.Aggregator.Used.Load(), g.Own)
			return nil
		}),
		g.Telemetry.RegisterProcessorCardinalityAggregateStateFullestCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(g.Aggregator.Fullest(), g.Own)
			return nil
		}),
		g.Telemetry.RegisterProcessorCardinalityContendedGroupsCallback(func(_ context.Context, o metric.Int64Observer) error {
			g.Rules.RLock()
			defer g.Rules.RUnlock()
			for l, n := range g.Limiter.Groups.Contended(g.Policy.Limits) {
				o.Observe(int64(n), l.Measured)
			}
			return nil
		}),
		g.Telemetry.RegisterProcessorCardinalityEndedSeriesCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(g.Limiter.Ended.Load(), g.Own)
			return nil
		}),
		g.Telemetry.RegisterProcessorCardinalityExpiredSeriesCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(g.Limiter.Expired.Load(), g.Own)
			return nil
		}),
		g.Telemetry.RegisterProcessorCardinalityMemoryCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(g.Memory(), g.Own)
			return nil
		}),
		g.Telemetry.RegisterProcessorCardinalityOverflowSeriesCallback(func(_ context.Context, o metric.Int64Observer) error {
			outputs, _, _ := g.Overflow.Sizes()
			o.Observe(int64(outputs), g.Own)
			return nil
		}),
		g.Telemetry.RegisterProcessorCardinalityOverflowMembersCallback(func(_ context.Context, o metric.Int64Observer) error {
			_, members, _ := g.Overflow.Sizes()
			o.Observe(int64(members), g.Own)
			return nil
		}),
		g.Telemetry.RegisterProcessorCardinalityOverflowStateCallback(func(_ context.Context, o metric.Int64Observer) error {
			_, _, used := g.Overflow.Sizes()
			o.Observe(used, g.Own)
			return nil
		}),
		g.Telemetry.RegisterProcessorCardinalityRejectedSeriesCallback(func(_ context.Context, o metric.Int64Observer) error {
			g.Rules.RLock()
			defer g.Rules.RUnlock()
			for _, l := range g.Policy.Limits {
				o.Observe(int64(l.Demand.Estimate()+0.5), l.Measured)
			}
			return nil
		}),
		g.Telemetry.RegisterProcessorCardinalityRuleSilenceCallback(func(_ context.Context, o metric.Int64Observer) error {
			g.Rules.RLock()
			defer g.Rules.RUnlock()
			now := g.Now()
			for _, l := range g.Policy.Rules() {
				o.Observe(int64(l.Alive.Silent(now).Seconds()), l.Measured)
			}
			return nil
		}),
		g.Telemetry.RegisterProcessorCardinalityRulesAppliedCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(g.RulesApplied.Load(), g.Own)
			return nil
		}),
		g.Telemetry.RegisterProcessorCardinalityRulesFailedCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(g.RulesFailed.Load(), g.Own)
			return nil
		}),
		g.Telemetry.RegisterProcessorCardinalityRulesBadCallback(func(_ context.Context, o metric.Int64Observer) error {
			bad := int64(0)
			if g.RulesBad.Load() {
				bad = 1
			}
			o.Observe(bad, g.Own)
			return nil
		}),
		g.Telemetry.RegisterProcessorCardinalitySnapshotFailuresCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(g.SaveFailure.Load(), g.Own)
			return nil
		}),
		g.Telemetry.RegisterProcessorCardinalitySeriesCallback(func(_ context.Context, o metric.Int64Observer) error {
			g.Rules.RLock()
			defer g.Rules.RUnlock()
			g.Limiter.Groups.Observe(func(rule string, t series.Tally) {
				o.Observe(int64(t.Members), g.Policy.Measured(rule))
			})
			return nil
		}),
		g.Telemetry.RegisterProcessorCardinalityGroupsCallback(func(_ context.Context, o metric.Int64Observer) error {
			g.Rules.RLock()
			defer g.Rules.RUnlock()
			g.Limiter.Groups.Observe(func(rule string, t series.Tally) {
				o.Observe(int64(t.Groups), g.Policy.Measured(rule))
			})
			return nil
		}),
	)
}

// observeFullest shows limits and how far they are used.
func (g *Gate) observeFullest() error {
	observed := func(number func(series.Fullness) int) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			g.Rules.RLock()
			rules := g.Policy
			g.Rules.RUnlock()
			for l, f := range g.Limiter.Groups.Fullest(rules) {
				if f.Series.Max > 0 {
					o.Observe(int64(number(f.Series)), l.Measured)
				}
				for i, of := range f.Labels {
					if of.Max > 0 {
						o.Observe(int64(number(of)), l.Labels[i].Measured)
					}
				}
			}
			return nil
		}
	}
	return errors.Join(
		g.Telemetry.RegisterProcessorCardinalityLimitCallback(observed(func(f series.Fullness) int { return f.Max })),
		g.Telemetry.RegisterProcessorCardinalityFullestGroupCallback(observed(func(f series.Fullness) int { return f.Used })),
	)
}

// observeRules observes a number for each rule.
func (g *Gate) observeRules(o metric.Int64Observer, by map[string]int64) {
	g.Rules.RLock()
	defer g.Rules.RUnlock()
	for rule, n := range by {
		o.Observe(n, g.Policy.Measured(rule))
	}
}
