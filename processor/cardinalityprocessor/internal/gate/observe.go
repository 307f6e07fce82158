// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/series"
)

// observe has what there is measured when it is asked for.
func (g *Gate) observe() error {
	return errors.Join(
		g.observeFullest(),
		g.Telemetry.RegisterProcessorCardinalityAdmittedSeriesCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(g.Limiter.Admitted.Load())
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
			o.Observe(g.Aggregator.Used.Load())
			return nil
		}),
		g.Telemetry.RegisterProcessorCardinalityAggregateStateFullestCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(g.Aggregator.Fullest())
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
			o.Observe(g.Limiter.Ended.Load())
			return nil
		}),
		g.Telemetry.RegisterProcessorCardinalityExpiredSeriesCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(g.Limiter.Expired.Load())
			return nil
		}),
		g.Telemetry.RegisterProcessorCardinalityMemoryCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(g.Memory())
			return nil
		}),
		g.Telemetry.RegisterProcessorCardinalityOverflowSeriesCallback(func(_ context.Context, o metric.Int64Observer) error {
			outputs, _, _ := g.Overflow.Sizes()
			o.Observe(int64(outputs))
			return nil
		}),
		g.Telemetry.RegisterProcessorCardinalityOverflowMembersCallback(func(_ context.Context, o metric.Int64Observer) error {
			_, members, _ := g.Overflow.Sizes()
			o.Observe(int64(members))
			return nil
		}),
		g.Telemetry.RegisterProcessorCardinalityOverflowStateCallback(func(_ context.Context, o metric.Int64Observer) error {
			_, _, used := g.Overflow.Sizes()
			o.Observe(used)
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
			o.Observe(g.RulesApplied.Load())
			return nil
		}),
		g.Telemetry.RegisterProcessorCardinalityRulesFailedCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(g.RulesFailed.Load())
			return nil
		}),
		g.Telemetry.RegisterProcessorCardinalityRulesBadCallback(func(_ context.Context, o metric.Int64Observer) error {
			bad := int64(0)
			if g.RulesBad.Load() {
				bad = 1
			}
			o.Observe(bad)
			return nil
		}),
		g.Telemetry.RegisterProcessorCardinalitySnapshotFailuresCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(g.SaveFailure.Load())
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

// LossOptions are the attributes of each loss.
var LossOptions = func() (all [amount.Losses]metric.MeasurementOption) {
	for i, name := range amount.LossNames {
		all[i] = metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", name)))
	}
	return all
}()
