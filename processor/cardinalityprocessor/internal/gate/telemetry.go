// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/metadata"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/series"
)

// Telemetry is what the gate's measurements are added to.
type Telemetry struct {
	*metadata.TelemetryBuilder

	Pipeline string // empty if several pipelines share the processor, or if it is not known
	Instance policy.Instance
	Own      metric.MeasurementOption                // attributes of measurements over all rules
	Losses   [amount.Losses]metric.MeasurementOption // the same with each reason of a loss
	observed bool
}

// Name sets whose measurements they are: those of a pipeline or, without a name, of all that share the processor. Rules
// that are compiled later use it.
func (g *Gate) Name(pipeline string) {
	t := &g.Telemetry
	t.Pipeline, t.Instance = pipeline, policy.NewInstance(g.id.String(), pipeline)
	g.Rules.Policy.Instance, g.Aggregator.Instance = t.Instance, t.Instance
	t.Own = t.Instance.Measured()
	for i, name := range amount.LossNames {
		t.Losses[i] = t.Instance.Measured(attribute.String(policy.LabelReason, name))
	}
}

// Observe registers the observable metrics. Calling it again changes nothing.
func (g *Gate) Observe() error {
	if g.Telemetry.observed {
		return nil
	}
	g.Telemetry.observed = true
	return instruments{g}.register()
}

// instruments are the gate as its observable metrics show it.
type instruments struct{ *Gate }

func (g instruments) register() error {
	t, l := g.Telemetry.TelemetryBuilder, g.Limiter
	return errors.Join(
		g.observeFullest(),
		t.RegisterProcessorCardinalityAdmittedSeriesCallback(g.whole(l.Admitted.Load)),
		t.RegisterProcessorCardinalityAggregateMembersCallback(g.byName(func(yield func(string, int64)) {
			_, feeders := g.Aggregator.Sizes()
			eachOf(feeders, yield)
		})),
		t.RegisterProcessorCardinalityAggregateSeriesCallback(g.byName(func(yield func(string, int64)) {
			made, _ := g.Aggregator.Sizes()
			eachOf(made, yield)
		})),
		t.RegisterProcessorCardinalityAggregateStateCallback(g.whole(func() int64 { return g.Aggregator.Used.Load() })),
		t.RegisterProcessorCardinalityAggregateStateFullestCallback(g.whole(func() int64 { return g.Aggregator.Fullest() })),
		t.RegisterProcessorCardinalityContendedGroupsCallback(g.byLimit(func(p *policy.Policy, yield func(*policy.Limit, int64)) {
			for of, n := range l.Groups.Contended(p.Limits) {
				yield(of, int64(n))
			}
		})),
		t.RegisterProcessorCardinalityEndedSeriesCallback(g.whole(l.Ended.Load)),
		t.RegisterProcessorCardinalityExpiredSeriesCallback(g.whole(l.Expired.Load)),
		t.RegisterProcessorCardinalityGroupsCallback(g.byName(func(yield func(string, int64)) {
			l.Groups.Observe(func(rule string, of series.Tally) { yield(rule, int64(of.Groups)) })
		})),
		t.RegisterProcessorCardinalityMemoryCallback(g.whole(g.Memory)),
		t.RegisterProcessorCardinalityOverflowMembersCallback(g.whole(func() int64 {
			_, members, _ := g.Overflow.Sizes()
			return int64(members)
		})),
		t.RegisterProcessorCardinalityOverflowSeriesCallback(g.whole(func() int64 {
			outputs, _, _ := g.Overflow.Sizes()
			return int64(outputs)
		})),
		t.RegisterProcessorCardinalityOverflowStateCallback(g.whole(g.Overflow.All.Used.Load)),
		t.RegisterProcessorCardinalityRejectedSeriesCallback(g.byLimit(func(p *policy.Policy, yield func(*policy.Limit, int64)) {
			for _, of := range p.Limits {
				yield(of, int64(of.Demand.Estimate()+0.5))
			}
		})),
		t.RegisterProcessorCardinalityRuleSilenceCallback(g.byLimit(func(p *policy.Policy, yield func(*policy.Limit, int64)) {
			now := g.Now()
			for _, of := range p.Rules() {
				yield(of, int64(of.Alive.Silent(now).Seconds()))
			}
		})),
		t.RegisterProcessorCardinalityRulesAppliedCallback(g.whole(g.Rules.Applied.Load)),
		t.RegisterProcessorCardinalityRulesBadCallback(g.whole(func() int64 {
			if g.Rules.Fault.Load() != nil {
				return 1
			}
			return 0
		})),
		t.RegisterProcessorCardinalityRulesFailedCallback(g.whole(g.Rules.Failed.Load)),
		t.RegisterProcessorCardinalitySeriesCallback(g.byName(func(yield func(string, int64)) {
			l.Groups.Observe(func(rule string, of series.Tally) { yield(rule, int64(of.Members)) })
		})),
		t.RegisterProcessorCardinalitySnapshotFailuresCallback(g.whole(g.Snapshot.Failures.Load)),
	)
}

// whole observes a number over all rules.
func (g instruments) whole(read func() int64) metric.Int64Callback {
	return func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(read(), g.Telemetry.Own)
		return nil
	}
}

// byLimit observes a number for each limit in force.
func (g instruments) byLimit(read func(p *policy.Policy, yield func(*policy.Limit, int64))) metric.Int64Callback {
	return func(_ context.Context, o metric.Int64Observer) error {
		g.Rules.RLock()
		defer g.Rules.RUnlock()
		read(g.Rules.Policy, func(l *policy.Limit, n int64) { o.Observe(n, l.Measured) })
		return nil
	}
}

// byName observes a number for each rule that exists or existed.
func (g instruments) byName(read func(yield func(rule string, n int64))) metric.Int64Callback {
	return func(_ context.Context, o metric.Int64Observer) error {
		g.Rules.RLock()
		defer g.Rules.RUnlock()
		read(func(rule string, n int64) { o.Observe(n, g.Rules.Policy.Measured(rule)) })
		return nil
	}
}

func eachOf(all map[string]int64, yield func(string, int64)) {
	for rule, n := range all {
		yield(rule, n)
	}
}

// observeFullest observes limits and how far they are used.
func (g instruments) observeFullest() error {
	observed := func(number func(series.Fullness) int) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			for l, f := range g.Limiter.Groups.Fullest(g.Rules.Current()) {
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
