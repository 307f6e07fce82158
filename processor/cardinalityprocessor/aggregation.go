// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

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
)

// aggregation is the part of a rule that makes few series of many. It never changes; what it has made is its state's.
type aggregation struct {
	limit     *limit
	index     int // in the policy
	identity  uint64
	labels    selection
	interval  time.Duration
	outputs   []operation
	keepInput bool
	state     *aggregationState

	taken metric.MeasurementOption
	lost  [losses]metric.MeasurementOption
}

// operation is what is made of several series.
type operation uint8

const (
	operationSum operation = iota
	operationCount
	operationMin
	operationMax
	operationAvg
	operationLast
	operations
)

const (
	nameSum   = "sum"
	nameCount = "count"
	nameMin   = "min"
	nameAvg   = "avg"
)

var operationNames = [operations]string{nameSum, nameCount, nameMin, nameMax, nameAvg, nameLast}

func newAggregation(rule *RuleConfig, l *limit, tenants []string) *aggregation {
	cfg := rule.Aggregate
	a := &aggregation{limit: l, labels: newSelection(cfg, tenants), interval: cfg.Interval, keepInput: cfg.KeepInput}
	if a.interval == 0 {
		a.interval = defaultAggregateInterval
	}
	for _, name := range cfg.Outputs {
		a.outputs = append(a.outputs, operation(slices.Index(operationNames[:], name)))
	}
	if len(a.outputs) == 0 {
		a.outputs = []operation{operationSum}
	}
	slices.Sort(a.outputs)
	// What the rule matches, and how often it sends, may change while its series go on.
	a.identity = xxh3.HashString(fmt.Sprintf("%q %q %v %v %t", rule.Name, a.labels.names(), a.labels.without, a.outputs, a.keepInput))
	a.taken = l.measured
	for why, name := range lossNames {
		a.lost[why] = metric.WithAttributeSet(attribute.NewSet(append(l.ownAttributes(), attribute.String(labelReason, name))...))
	}
	return a
}

// operationsOn returns those of the rule that there are for a metric, or why there are none.
func (a *aggregation) operationsOn(m pmetric.Metric) ([]operation, loss) {
	class := classOf(m)
	switch {
	case m.Type() == pmetric.MetricTypeEmpty:
		return nil, lossOutput
	case m.Type() == pmetric.MetricTypeSummary:
		return nil, lossSummary
	case shapeOf(m) == shapeNumber && (class == classGauge || class == classUpDown):
		return a.outputs, lossNone
	}
	for i, of := range a.outputs { // they are in order
		if of == operationSum {
			if shapeOf(m) == shapeNumber && i+1 < len(a.outputs) && a.outputs[i+1] == operationCount {
				return a.outputs[:i+2], lossNone
			}
			return a.outputs[:i+1], lossNone
		}
		if of == operationCount && shapeOf(m) == shapeNumber {
			return a.outputs[i : i+1], lossNone
		}
	}
	return nil, lossOutput
}

// nameOf is that of an output. What says the same as the metric, of fewer series, has its name.
func (a *aggregation) nameOf(name string, class class, of operation) string {
	if of != operationCount && !a.keepInput {
		if last := class == classGauge || class == classUpDown; !last || len(a.outputs) == 1 {
			return name
		}
	}
	return name + "." + operationNames[of]
}

// selection is which attributes stay.
type selection struct {
	without             bool
	resource, attribute []string // sorted
}

func newSelection(cfg *AggregateConfig, tenants []string) selection {
	s := selection{without: cfg.Without != nil}
	for _, name := range slices.Concat(cfg.By, cfg.Without) {
		switch from := newSource(name); from.kind {
		case fromResource:
			s.resource = append(s.resource, from.key)
		case fromAttribute:
			s.attribute = append(s.attribute, from.key)
		default:
			s.resource, s.attribute = append(s.resource, name), append(s.attribute, name)
		}
	}
	if !s.without {
		s.resource = append(s.resource, tenants...) // or the tenant of what is made could not be told
	}
	for _, keys := range []*[]string{&s.resource, &s.attribute} {
		slices.Sort(*keys)
		*keys = slices.Compact(*keys)
	}
	return s
}

func (s *selection) names() string {
	return strings.Join(s.resource, "\x00") + "\x01" + strings.Join(s.attribute, "\x00")
}

func (s *selection) keeps(keys []string, key string) bool {
	return slices.Contains(keys, key) != s.without
}

// hash is that of the attributes that stay. It is the hash of all if all do.
func (s *selection) hash(h *hasher, keys []string, of pcommon.Map) uint64 {
	var sum, n uint64
	for key, value := range of.All() {
		if s.keeps(keys, key) {
			sum += h.attribute(h.text(key), value)
			n++
		}
	}
	return mix(sum, n)
}
