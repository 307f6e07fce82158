// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Names that the limits outside the rules have in metrics.
const (
	ruleTotal    = "total"    // memory
	ruleDefaults = "defaults" // defaults
	ruleTenant   = "tenant"   // overrides
)

// policy is the compiled, immutable form of the limits. Which of them are met is a matter of the registry.
type policy struct {
	generation uint32
	begun      int64 // when it came in force
	exempt     []matcher
	limits     []*limit          // in the order they are asked: rules, tenant, defaults, total
	named      map[string]*limit // the same, by name
	aggregates []*aggregation    // of all limits
	known      map[uint64]uint32 // bounds that are not in limits, of a restored snapshot
}

// limit is one rule, or one of the limits outside the rules: groups of series with a bound for each.
type limit struct {
	terms

	name    string
	implied bool // it is no rule of somebody's

	index     int
	match     matcher
	groupBy   []source
	series    bound
	share     *share // nil: first come, first served
	labels    []labelLimit
	tenants   map[string]*terms // of those that have their own
	exceed    exceed
	aggregate *aggregation // nil: it makes no series of others
	demand    *demand      // of what is rejected
	alive     *liveness

	owner    map[string]string
	measured metric.MeasurementOption // the attributes of what is measured of it
	rejected [reasons][actions]metric.MeasurementOption
}

// ownLabels are those that metrics have beside the owner's.
var ownLabels = []string{labelRule, labelReason, labelAction, labelLabel}

const (
	labelRule   = "rule"
	labelReason = "reason"
	labelAction = "action"
	labelLabel  = "label"
)

// bound is what is counted in a group, for a limit on it.
type bound struct {
	// key tells what is counted from all else that is counted. It outlives the generation of the rules: what is defined
	// as before goes on counting as before, whatever its new limit is.
	key uint64
	// since is the generation from which on everything is counted here. Series that are in since an earlier one may
	// belong here without having been counted yet.
	since uint32
}

// reservePart: one in so many series of a limit may only be of collapsed labels, if they are to be.
const reservePart = 10

// reason says why a point was rejected.
type reason uint8

const (
	reasonSeries reason = iota
	reasonLabel
	reasonGroups
	reasonShare
	reasonSeriesRate
	reasonPointsRate
	reasons
)

// keyMaxSeries is a key, and the reason of what it limits.
const keyMaxSeries = "max_series"

var reasonNames = [reasons]string{keyMaxSeries, "label_limit", "max_groups", "fair_share", "series_rate", "points_rate"}

// action is what became of it.
type action uint8

const (
	actionDrop action = iota
	actionCollapse
	actionOverflow
	actionSample
	actionCollapseWorst
	actionWait // not to be chosen, see share
	actions
)

const (
	nameDrop     = "drop"
	nameCollapse = "collapse"
	nameOverflow = "overflow"
	nameSample   = "sample"

	nameCollapseWorst = "collapse_worst"
	nameWait          = "wait" // not to be chosen
)

var actionNames = [actions]string{nameDrop, nameCollapse, nameOverflow, nameSample, nameCollapseWorst, nameWait}

// source is one part of a group's key.
type source struct {
	kind sourceKind
	key  string
}

type sourceKind uint8

// How the configuration names them.
const (
	byMetric   = "metric"
	byTenant   = "tenant"
	byResource = "resource"

	byAttribute = "attribute"
	byMetadata  = "metadata"
)

const (
	fromMetric sourceKind = iota
	fromTenant
	fromResource
	fromAttribute
	fromEither
)

func newSource(by string) source {
	kind, key, _ := strings.Cut(by, ":")
	switch {
	case by == byMetric:
		return source{kind: fromMetric}
	case by == byTenant:
		return source{kind: fromTenant}
	case kind == byResource && key != "":
		return source{kind: fromResource, key: key}
	case kind == byAttribute && key != "":
		return source{kind: fromAttribute, key: key}
	default:
		return source{kind: fromEither, key: by}
	}
}

func newSources(all []string) []source {
	var out []source
	for _, by := range all {
		out = append(out, newSource(by))
	}
	return out
}

// newPolicy compiles the limits. Bounds that are known date from the generation given, all others from this one.
func newPolicy(cfg *Config, generation uint32, known map[uint64]uint32) *policy {
	p := &policy{generation: generation, named: map[string]*limit{}}
	for _, match := range cfg.Exempt {
		p.exempt = append(p.exempt, newMatcher(match))
	}
	var tenants []string
	for _, from := range cfg.Tenant.From {
		if key, ok := strings.CutPrefix(from, byResource+":"); ok {
			tenants = append(tenants, key) // or the tenant of an overflow series could not be told
		}
	}
	add := func(rule *RuleConfig, implied bool, overrides func(*OverrideConfig) RuleOverrideConfig) {
		l := newLimit(rule, cfg, tenants)
		l.implied = implied
		l.override(cfg.Overrides, overrides)
		p.add(l, known)
	}
	for i := range cfg.Rules {
		add(&cfg.Rules[i], false, ofRule(cfg.Rules[i].Name))
	}
	if anySays(cfg.Overrides, ofTenant) {
		add(&RuleConfig{Name: ruleTenant, GroupBy: []string{byTenant}}, true, ofTenant)
	}
	if n := cfg.Defaults.MaxSeriesPerMetric; n > 0 || anySays(cfg.Overrides, ofMetrics) {
		rule := RuleConfig{Name: ruleDefaults, GroupBy: []string{byMetric}, MaxSeries: n}
		if len(cfg.Tenant.From) > 0 { // or one tenant's would be full of another's
			rule.GroupBy = append(rule.GroupBy, byTenant)
		}
		add(&rule, true, ofMetrics)
	}
	add(&RuleConfig{Name: ruleTotal, MaxSeries: cfg.Memory.MaxSeries}, true, ofNobody)
	return p
}

// next compiles the limits of the next generation. What is defined as before goes on counting.
func (p *policy) next(cfg *Config) *policy {
	next := newPolicy(cfg, p.generation+1, p.bounds())
	for _, l := range next.limits {
		if before := p.named[l.name]; before != nil && l.series.key == before.series.key {
			l.demand, l.alive = before.demand, before.alive
		}
	}
	return next
}

func (p *policy) add(l *limit, known map[uint64]uint32) {
	l.index = len(p.limits)
	for _, b := range l.bounds() {
		b.since = p.generation
		if since, ok := known[b.key]; ok {
			b.since = since
		}
	}
	if l.aggregate != nil {
		l.aggregate.index = len(p.aggregates)
		p.aggregates = append(p.aggregates, l.aggregate)
	}
	p.limits = append(p.limits, l)
	p.named[l.name] = l
}

// bounds maps the keys of all bounds to the generations they date from.
func (p *policy) bounds() map[uint64]uint32 {
	all := map[uint64]uint32{}
	maps.Copy(all, p.known)
	for _, l := range p.limits {
		for _, b := range l.bounds() {
			all[b.key] = b.since
		}
	}
	return all
}

func newLimit(rule *RuleConfig, cfg *Config, tenants []string) *limit {
	keep := tenants
	if cfg.Overflow.KeepService {
		keep = slices.Concat(keep, rule.keptOfService())
	}
	l := &limit{
		name:   rule.Name,
		match:  newMatcher(rule.Match),
		demand: &demand{},
		alive:  &liveness{},
	}
	l.terms = terms{
		max: rule.MaxSeries, newcomers: perMinute(rule.MaxNewSeriesPerMinute), points: perMinute(rule.MaxPointsPerSecond * 60),
	}
	l.groupBy = newSources(rule.GroupBy)
	for _, from := range slices.Concat(l.groupBy, newSources(rule.Adaptive.ShareBy)) {
		if from.key != "" {
			keep = append(slices.Clone(keep), from.key) // or groups would come together in one overflow series
		}
	}
	l.exceed = newExceed(&rule.Exceed, &cfg.Defaults.Exceed, keep)
	identity := fmt.Sprintf("%q %q %q", rule.Name, rule.Match.identity(), rule.GroupBy)
	l.series = bound{key: xxh3.HashString(identity)}
	l.share = newShare(&rule.Adaptive, l.series.key)
	l.reserve = l.reserved(l.max)
	for _, label := range slices.Sorted(maps.Keys(rule.LabelLimits)) {
		limited := newLabelLimit(label)
		limited.values = bound{key: mix(l.series.key, xxh3.HashString(label))}
		l.labels = append(l.labels, limited)
		l.terms.labels = append(l.terms.labels, rule.LabelLimits[label])
	}
	l.owner = rule.Owner
	l.measured = metric.WithAttributeSet(attribute.NewSet(l.ownAttributes()...))
	for i := range l.labels {
		l.labels[i].measured = l.measuredLabel(l.labels[i].name)
	}
	for why := range l.rejected {
		for what := range l.rejected[why] {
			l.rejected[why][what] = metric.WithAttributeSet(attribute.NewSet(append(
				l.ownAttributes(),
				attribute.String(labelReason, reasonNames[why]),
				attribute.String(labelAction, actionNames[what]),
			)...))
		}
	}
	if rule.Aggregate != nil {
		l.aggregate = newAggregation(rule, l, tenants)
	}
	return l
}

const serviceNamespace, serviceName = "service.namespace", "service.name"

// ofService are what names the service that series are of.
var ofService = []string{serviceNamespace, serviceName}

// keptOfService is what overflow series keep of that: not what has too many values itself.
func (rule *RuleConfig) keptOfService() []string {
	return slices.DeleteFunc(slices.Clone(ofService), func(key string) bool {
		for name := range rule.LabelLimits {
			if newLabelLimit(name).key == key {
				return true
			}
		}
		return false
	})
}

// reserved is how many of so many series are for those of collapsed labels.
func (l *limit) reserved(of int) int {
	if l.share == nil && slices.Contains(l.exceed.actions, actionCollapseWorst) {
		return of / reservePart
	}
	return 0
}

// ownAttributes are those of all that is measured of a rule.
func (l *limit) ownAttributes() []attribute.KeyValue {
	all := []attribute.KeyValue{attribute.String(labelRule, l.name)}
	for key, value := range l.owner {
		all = append(all, attribute.String(key, value))
	}
	return all
}

// measured are the attributes of what is measured of a rule, which may not be in force any more.
func (p *policy) measured(rule string) metric.MeasurementOption {
	if l := p.named[rule]; l != nil {
		return l.measured
	}
	return measuredAs(rule)
}

func measuredAs(rule string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String(labelRule, rule))
}

func (l *limit) bounds() []*bound {
	all := []*bound{&l.series}
	if l.share != nil {
		all = append(all, &l.share.parties)
	}
	for i := range l.labels {
		all = append(all, &l.labels[i].values)
	}
	return all
}

// owner is what the points of a metric have in common.
type owner struct {
	resource pcommon.Map
	scope    string // its name
	metric   string
	tenant   string
	account  uint64 // of the tenant, who pays for what is remembered of groups
}

// group is the hash of the group's key, less the bound's.
func (l *limit) group(h *hasher, of *owner, attributes pcommon.Map) uint64 {
	return h.sources(l.groupBy, of, attributes)
}

func (h *hasher) sources(sources []source, of *owner, attributes pcommon.Map) uint64 {
	var sum uint64
	for _, from := range sources {
		sum = mix(sum, from.hash(h, of, attributes))
	}
	return sum
}

func (from source) hash(h *hasher, of *owner, attributes pcommon.Map) uint64 {
	switch from.kind {
	case fromMetric:
		return h.text(of.metric)
	case fromTenant:
		return h.text(of.tenant)
	case fromResource:
		return h.attributeOf(of.resource, from.key)
	case fromAttribute:
		return h.attributeOf(attributes, from.key)
	default:
		if value, ok := of.resource.Get(from.key); ok {
			return h.value(value)
		}
		return h.attributeOf(attributes, from.key)
	}
}

// attributeOf has a hash for what is missing, too: those without are a group.
func (h *hasher) attributeOf(attributes pcommon.Map, key string) uint64 {
	if value, ok := attributes.Get(key); ok {
		return h.value(value)
	}
	return 0
}
