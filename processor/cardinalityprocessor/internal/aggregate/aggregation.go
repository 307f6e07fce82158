// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zeebo/xxh3"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// Rule is the part of a rule that aggregates many series into few. It never changes; the series it has made are kept in
// its state.
type Rule struct {
	Limit     *policy.Limit
	Index     int // its index among all of them
	identity  uint64
	Labels    selection
	interval  time.Duration
	outputs   []policy.Operation
	KeepInput bool
	State     *State

	Taken metric.MeasurementOption
	Lost  [amount.Losses]metric.MeasurementOption
}

// NewRules returns the aggregating parts of all rules of a policy.
func NewRules(cfg *policy.Config, p *policy.Policy) (all []*Rule) {
	for i := range cfg.Rules {
		if rule := &cfg.Rules[i]; rule.Aggregate != nil {
			a := newAggregation(rule, p.Named[rule.Name], cfg.Tenant.Keys())
			a.Index = len(all)
			all = append(all, a)
		}
	}
	return all
}

func newAggregation(rule *policy.RuleConfig, l *policy.Limit, tenants []string) *Rule {
	cfg := rule.Aggregate
	a := &Rule{Limit: l, Labels: newSelection(cfg, tenants), interval: cfg.Interval, KeepInput: cfg.KeepInput}
	if a.interval == 0 {
		a.interval = policy.DefaultAggregateInterval
	}
	for _, name := range cfg.Outputs {
		a.outputs = append(a.outputs, policy.Operation(slices.Index(policy.OperationNames[:], name)))
	}
	if len(a.outputs) == 0 {
		a.outputs = []policy.Operation{policy.OperationSum}
	}
	slices.Sort(a.outputs)
	// What the rule matches, and how often it sends, may change while its series go on.
	a.identity = xxh3.HashString(fmt.Sprintf("%q %q %v %v %t", rule.Name, a.Labels.names(), a.Labels.without, a.outputs, a.KeepInput))
	a.Taken = l.Measured
	for why, name := range amount.LossNames {
		a.Lost[why] = l.MeasuredWith(attribute.String(policy.LabelReason, name))
	}
	return a
}

// OperationsOn returns the rule's operations that apply to a metric, or why none do.
func (a *Rule) OperationsOn(m pmetric.Metric) ([]policy.Operation, amount.Loss) {
	class := amount.ClassOf(m)
	switch {
	case m.Type() == pmetric.MetricTypeEmpty:
		return nil, amount.LossOutput
	case m.Type() == pmetric.MetricTypeSummary:
		return nil, amount.LossSummary
	case amount.ShapeOf(m) == amount.ShapeNumber && (class == amount.ClassGauge || class == amount.ClassUpDown):
		return a.outputs, amount.LossNone
	}
	for i, of := range a.outputs { // the outputs are in order
		if of == policy.OperationSum {
			if amount.ShapeOf(m) == amount.ShapeNumber && i+1 < len(a.outputs) && a.outputs[i+1] == policy.OperationCount {
				return a.outputs[:i+2], amount.LossNone
			}
			return a.outputs[:i+1], amount.LossNone
		}
		if of == policy.OperationCount && amount.ShapeOf(m) == amount.ShapeNumber {
			return a.outputs[i : i+1], amount.LossNone
		}
	}
	return nil, amount.LossOutput
}

// NameOf returns the name of an output. An output that means the same as the metric, with fewer series, keeps its name.
func (a *Rule) NameOf(name string, class amount.Class, of policy.Operation) string {
	if of != policy.OperationCount && !a.KeepInput {
		if last := class == amount.ClassGauge || class == amount.ClassUpDown; !last || len(a.outputs) == 1 {
			return name
		}
	}
	return name + "." + policy.OperationNames[of]
}

// selection says which attributes stay.
type selection struct {
	without             bool
	Resource, Attribute []string // sorted
}

func newSelection(cfg *policy.AggregateConfig, tenants []string) selection {
	s := selection{without: cfg.Without != nil}
	for _, name := range slices.Concat(cfg.By, cfg.Without) {
		switch from := policy.NewSource(name); from.Kind {
		case policy.FromResource:
			s.Resource = append(s.Resource, from.Key)
		case policy.FromAttribute:
			s.Attribute = append(s.Attribute, from.Key)
		default:
			s.Resource, s.Attribute = append(s.Resource, name), append(s.Attribute, name)
		}
	}
	if !s.without {
		s.Resource = append(s.Resource, tenants...) // otherwise the tenant of the series made would not be known
	}
	for _, keys := range []*[]string{&s.Resource, &s.Attribute} {
		slices.Sort(*keys)
		*keys = slices.Compact(*keys)
	}
	return s
}

func (s *selection) names() string {
	return strings.Join(s.Resource, "\x00") + "\x01" + strings.Join(s.Attribute, "\x00")
}

func (s *selection) Keeps(keys []string, key string) bool {
	return slices.Contains(keys, key) != s.without
}

// Hash returns the hash of the attributes that stay. If all stay, it is the hash of all.
func (s *selection) Hash(h *ident.Hasher, keys []string, of pcommon.Map) uint64 {
	var sum, n uint64
	for key, value := range of.All() {
		if s.Keeps(keys, key) {
			sum += h.Attribute(h.Text(key), value)
			n++
		}
	}
	return ident.Mix(sum, n)
}
