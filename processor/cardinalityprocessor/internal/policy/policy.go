// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package policy has the configuration, and compiles it to rules.
package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/fair"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/plain"
)

// Names in metrics of limits that are not rules.
const (
	RuleTotal    = "total"    // memory
	RuleDefaults = "defaults" // defaults
	RuleTenant   = "tenant"   // overrides
)

// Policy is the compiled, immutable form of the limits. How far they are used is in the registry.
type Policy struct {
	Generation uint32
	Begun      int64 // when it came into force
	Exempt     []Matcher
	Limits     []*Limit          // in the order of checks: rules, tenant, defaults, total
	Named      map[string]*Limit // the same, by name
	Known      map[uint64]uint32 // further bounds, of a restored snapshot
	Instance   Instance
}

// Instance identifies the processor in measurements: all processors of a process share the metrics, and one that is in
// several pipelines has an instance in each.
type Instance []attribute.KeyValue

// NewInstance returns that of a processor in a pipeline, or in several that share it, with an empty name.
func NewInstance(processor, pipeline string) Instance {
	i := Instance{attribute.String(labelProcessor, processor)}
	if pipeline != "" {
		i = append(i, attribute.String(labelPipeline, pipeline))
	}
	return i
}

// Measured returns the attributes of a measurement: the instance, and more.
func (i Instance) Measured(more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append(more, i...)...))
}

// MeasuredOf returns the attributes of measurements of a rule that is known by name only.
func (i Instance) MeasuredOf(rule string) metric.MeasurementOption {
	return i.Measured(attribute.String(labelRule, rule))
}

// Limit is one rule, or one of the limits that are not rules: groups of series with a bound for each.
type Limit struct {
	Terms

	Name    string
	implied bool // not a rule of the user

	Index   int
	Match   Matcher
	GroupBy []Source
	Series  Bound
	Share   *share // nil: first come, first served
	Labels  []labelLimit
	tenants map[string]*Terms // of tenants with their own
	Exceed  exceed
	Demand  *fair.Demand // for rejected series
	Alive   *Liveness

	Owner    map[string]string
	instance Instance
	Measured metric.MeasurementOption // attributes for measurements
	Rejected [Reasons][Actions]metric.MeasurementOption
}

// ownLabels are the labels of metrics in addition to the instance's.
var ownLabels = []string{labelRule, LabelReason, labelAction, labelLabel, labelProcessor, labelPipeline}

// Names of labels.
const (
	labelRule   = "rule"
	LabelReason = "reason"
	labelAction = "action"
	labelLabel  = "label"

	labelProcessor = "processor"
	labelPipeline  = "pipeline"
)

// Bound identifies what is counted in a group, for a limit on it.
type Bound struct {
	// Key identifies what is counted, over all generations of the rules: what is defined as before continues to count,
	// whatever its new limit.
	Key uint64
	// Since is the generation from which on everything is counted here. Series from before may belong here without
	// being counted yet.
	Since uint32
}

// ReservePart is the part that is reserved: one in this many series of a limit may only be one with collapsed labels,
// if labels may be collapsed.
const ReservePart = 10

// Reason is why a point was rejected.
type Reason uint8

// The reasons.
const (
	ReasonSeries Reason = iota
	ReasonLabel
	ReasonGroups
	ReasonShare
	ReasonSeriesRate
	ReasonPointsRate
	Reasons
)

// keyMaxSeries is a key, and the reason of its limit.
const keyMaxSeries = "max_series"

// ReasonNames are the names of reasons in metrics.
var ReasonNames = [Reasons]string{keyMaxSeries, "label_limit", "max_groups", "fair_share", "series_rate", "points_rate"}

// Action is what became of a rejected point.
type Action uint8

// The actions.
const (
	ActionDrop Action = iota
	ActionCollapse
	ActionOverflow
	ActionSample
	ActionCollapseWorst
	ActionWait // not configurable, see share
	Actions
)

// Names of actions in the configuration.
const (
	NameDrop     = "drop"
	NameCollapse = "collapse"
	NameOverflow = "overflow"
	nameSample   = "sample"

	NameCollapseWorst = "collapse_worst"
	NameWait          = "wait" // not configurable
)

// ActionNames are the names of actions.
var ActionNames = [Actions]string{NameDrop, NameCollapse, NameOverflow, nameSample, NameCollapseWorst, NameWait}

// Source is one part of a group's key.
type Source struct {
	Kind sourceKind
	Key  string
}

type sourceKind uint8

// Names in the configuration.
const (
	byMetric   = "metric"
	byTenant   = "tenant"
	byResource = "resource"

	byAttribute = "attribute"
	byMetadata  = "metadata"
)

// The kinds of sources.
const (
	FromMetric sourceKind = iota
	FromTenant
	FromResource
	FromAttribute
	fromEither
)

// NewSource parses a source of the configuration.
func NewSource(by string) Source {
	kind, key, _ := strings.Cut(by, ":")
	switch {
	case by == byMetric:
		return Source{Kind: FromMetric}
	case by == byTenant:
		return Source{Kind: FromTenant}
	case kind == byResource && key != "":
		return Source{Kind: FromResource, Key: key}
	case kind == byAttribute && key != "":
		return Source{Kind: FromAttribute, Key: key}
	default:
		return Source{Kind: fromEither, Key: by}
	}
}

func newSources(all []string) []Source {
	var out []Source
	for _, by := range all {
		out = append(out, NewSource(by))
	}
	return out
}

// New compiles the limits. Known bounds date from their given generation, all others from this one.
func New(cfg *Config, generation uint32, known map[uint64]uint32, instance Instance) *Policy {
	p := &Policy{Generation: generation, Named: map[string]*Limit{}, Instance: instance}
	for _, match := range cfg.Exempt {
		p.Exempt = append(p.Exempt, NewMatcher(match))
	}
	tenants := cfg.Tenant.Keys() // or the tenant of an overflow series would be unknown
	add := func(rule *RuleConfig, implied bool, overrides func(*OverrideConfig) RuleOverrideConfig) {
		l := NewLimit(rule, cfg, tenants, instance)
		l.implied = implied
		l.override(cfg.Overrides, overrides)
		p.add(l, known)
	}
	for i := range cfg.Rules {
		add(&cfg.Rules[i], false, ofRule(cfg.Rules[i].Name))
	}
	if anySays(cfg.Overrides, ofTenant) {
		add(&RuleConfig{Name: RuleTenant, GroupBy: []string{byTenant}}, true, ofTenant)
	}
	if n := cfg.Defaults.MaxSeriesPerMetric; n > 0 || anySays(cfg.Overrides, ofMetrics) {
		rule := RuleConfig{Name: RuleDefaults, GroupBy: []string{byMetric}, MaxSeries: n}
		if len(cfg.Tenant.From) > 0 { // or one tenant could fill another's
			rule.GroupBy = append(rule.GroupBy, byTenant)
		}
		add(&rule, true, ofMetrics)
	}
	add(&RuleConfig{Name: RuleTotal, MaxSeries: cfg.Memory.MaxSeries}, true, ofNobody)
	return p
}

// Next compiles the limits of the next generation. What is defined as before continues to count.
func (p *Policy) Next(cfg *Config) *Policy {
	next := New(cfg, p.Generation+1, p.Bounds(), p.Instance)
	for _, l := range next.Limits {
		if before := p.Named[l.Name]; before != nil && l.Series.Key == before.Series.Key {
			l.Demand, l.Alive = before.Demand, before.Alive
		}
	}
	return next
}

func (p *Policy) add(l *Limit, known map[uint64]uint32) {
	l.Index = len(p.Limits)
	for _, b := range l.bounds() {
		b.Since = p.Generation
		if since, ok := known[b.Key]; ok {
			b.Since = since
		}
	}
	p.Limits = append(p.Limits, l)
	p.Named[l.Name] = l
}

// Bounds returns the generations that all bounds date from, by key.
func (p *Policy) Bounds() map[uint64]uint32 {
	all := map[uint64]uint32{}
	maps.Copy(all, p.Known)
	for _, l := range p.Limits {
		for _, b := range l.bounds() {
			all[b.Key] = b.Since
		}
	}
	return all
}

// NewLimit compiles a rule.
func NewLimit(rule *RuleConfig, cfg *Config, tenants []string, instance Instance) *Limit {
	keep := tenants
	if cfg.Overflow.KeepService {
		keep = slices.Concat(keep, rule.keptOfService())
	}
	l := &Limit{
		Name:   rule.Name,
		Match:  NewMatcher(rule.Match),
		Demand: &fair.Demand{},
		Alive:  &Liveness{},

		instance: instance,
	}
	l.Terms = Terms{
		Max: rule.MaxSeries, Newcomers: perMinute(rule.MaxNewSeriesPerMinute), Points: perMinute(rule.MaxPointsPerSecond * 60),
	}
	l.GroupBy = newSources(rule.GroupBy)
	for _, from := range slices.Concat(l.GroupBy, newSources(rule.Adaptive.ShareBy)) {
		if from.Key != "" {
			keep = append(slices.Clone(keep), from.Key) // or groups would share one overflow series
		}
	}
	l.Exceed = newExceed(&rule.Exceed, &cfg.Defaults.Exceed, keep)
	identity := fmt.Sprintf("%q %q %q", rule.Name, rule.Match.identity(), rule.GroupBy)
	l.Series = Bound{Key: xxh3.HashString(identity)}
	l.Share = newShare(&rule.Adaptive, l.Series.Key)
	l.Reserve = l.reserved(l.Max)
	for _, label := range slices.Sorted(maps.Keys(rule.LabelLimits)) {
		limited := newLabelLimit(label)
		limited.Values = Bound{Key: ident.Mix(l.Series.Key, xxh3.HashString(label))}
		l.Labels = append(l.Labels, limited)
		l.Terms.Labels = append(l.Terms.Labels, rule.LabelLimits[label])
	}
	l.Owner = rule.Owner
	l.Measured = l.MeasuredWith()
	for i := range l.Labels {
		l.Labels[i].Measured = l.MeasuredWith(attribute.String(labelLabel, l.Labels[i].Name))
	}
	for why := range l.Rejected {
		for what := range l.Rejected[why] {
			l.Rejected[why][what] = l.MeasuredWith(
				attribute.String(LabelReason, ReasonNames[why]),
				attribute.String(labelAction, ActionNames[what]),
			)
		}
	}
	return l
}

const serviceNamespace, serviceName = "service.namespace", "service.name"

// ofService are the attributes that name the service of series.
var ofService = []string{serviceNamespace, serviceName}

// keptOfService returns those that overflow series keep: not those with too many values themselves.
func (rule *RuleConfig) keptOfService() []string {
	return slices.DeleteFunc(slices.Clone(ofService), func(key string) bool {
		for name := range rule.LabelLimits {
			if newLabelLimit(name).Key == key {
				return true
			}
		}
		return false
	})
}

// reserved is how many series are reserved for collapsed labels.
func (l *Limit) reserved(of int) int {
	if l.Share == nil && slices.Contains(l.Exceed.Actions, ActionCollapseWorst) {
		return of / ReservePart
	}
	return 0
}

// MeasuredWith returns the attributes for measurements of a rule, with others.
func (l *Limit) MeasuredWith(more ...attribute.KeyValue) metric.MeasurementOption {
	for key, value := range l.Owner {
		more = append(more, attribute.String(key, value))
	}
	return l.instance.Measured(append(more, attribute.String(labelRule, l.Name))...)
}

// Measured returns the attributes for measurements of a rule, which may no longer be in force.
func (p *Policy) Measured(rule string) metric.MeasurementOption {
	if l := p.Named[rule]; l != nil {
		return l.Measured
	}
	return p.Instance.MeasuredOf(rule)
}

func (l *Limit) bounds() []*Bound {
	all := []*Bound{&l.Series}
	if l.Share != nil {
		all = append(all, &l.Share.Parties)
	}
	for i := range l.Labels {
		all = append(all, &l.Labels[i].Values)
	}
	return all
}

// OfTenants reports whether each group of a limit is of one tenant.
func (l *Limit) OfTenants() bool {
	return slices.ContainsFunc(l.GroupBy, func(from Source) bool { return from.Kind == FromTenant })
}

// Owner is what the points of a metric have in common.
type Owner struct {
	Resource pcommon.Map
	Scope    string // the name of the scope
	Metric   string
	Tenant   string
	Account  uint64 // hash of the tenant, who pays for the memory of groups
}

// Group is the hash of the group's key, without the bound's.
func (l *Limit) Group(h *ident.Hasher, of *Owner, attributes pcommon.Map) uint64 {
	return HashOf(l.GroupBy, h, of, attributes)
}

// HashOf hashes the values of several sources.
func HashOf(sources []Source, h *ident.Hasher, of *Owner, attributes pcommon.Map) uint64 {
	var sum uint64
	for _, from := range sources {
		sum = ident.Mix(sum, from.hash(h, of, attributes))
	}
	return sum
}

func (from Source) hash(h *ident.Hasher, of *Owner, attributes pcommon.Map) uint64 {
	switch from.Kind {
	case FromMetric:
		return h.Text(of.Metric)
	case FromTenant:
		return h.Text(of.Tenant)
	case FromResource:
		return h.AttributeOf(of.Resource, from.Key)
	case FromAttribute:
		return h.AttributeOf(attributes, from.Key)
	default:
		if value, ok := of.Resource.Get(from.Key); ok {
			return h.Value(value)
		}
		return h.AttributeOf(attributes, from.Key)
	}
}

// Keys are the attributes of resources in which tenants are found.
func (cfg *TenantConfig) Keys() (all []string) {
	for _, from := range cfg.From {
		if key, ok := strings.CutPrefix(from, byResource+":"); ok {
			all = append(all, key)
		}
	}
	return all
}

// Describe returns the name of a source, and its value for a series.
func (from Source) Describe(of *Owner, attributes pcommon.Map) (name, value string) {
	if from.Kind == FromMetric {
		return byMetric, of.Metric
	}
	if from.Kind == FromTenant {
		return byTenant, of.Tenant
	}
	var v pcommon.Value
	ok := false
	if from.Kind != FromAttribute {
		v, ok = of.Resource.Get(from.Key)
	}
	if !ok && from.Kind != FromResource {
		v, ok = attributes.Get(from.Key)
	}
	if ok {
		value = plain.Text(v)
	}
	return from.Key, value
}
