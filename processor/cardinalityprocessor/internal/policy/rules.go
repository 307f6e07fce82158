// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/fair"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
)

// MatchConfig selects points. Everything given must fit. In a pattern `*` stands for any run of characters. What begins with
// `regex:` is a regular expression for the whole, and what begins with `not:` must not fit.
type MatchConfig struct {
	// Metric is the metric's name. Default any.
	Metric string `mapstructure:"metric"`

	// Scope is the name of the instrumentation scope. Default any.
	Scope string `mapstructure:"scope"`

	// Tenant is the point's tenant. Default any.
	Tenant string `mapstructure:"tenant"`

	// Resource are attributes of the resource. Default any.
	Resource map[string]string `mapstructure:"resource"`

	// Attributes are attributes of the point, or else of the resource. Default any.
	Attributes map[string]string `mapstructure:"attributes"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// RuleConfig limits the points it matches, in groups.
type RuleConfig struct {
	// Name names the rule in metrics. Required, and unique.
	Name string `mapstructure:"name"`

	// Match selects the points. Default all.
	Match MatchConfig `mapstructure:"match"`

	// Owner has labels for the metrics of the rule, to route alerts by: {team: web}. Default none.
	Owner map[string]string `mapstructure:"owner"`

	// GroupBy divides the points into groups with separate limits: `metric` (its name), `tenant`, `resource:KEY`,
	// `attribute:KEY` of the point, or just KEY: of the resource, or else of the point. Default one group.
	GroupBy []string `mapstructure:"group_by"`

	// MaxSeries is the limit on the series of a group, 0 for none: they are only counted. Default 0.
	MaxSeries int `mapstructure:"max_series"`

	// MaxNewSeriesPerMinute is the limit on the series of a group that get a place within a minute, 0 for none. A whole
	// minute's worth may come at once. Default 0.
	MaxNewSeriesPerMinute int `mapstructure:"max_new_series_per_minute"`

	// MaxPointsPerSecond is the limit on the points of a group's admitted series, over a minute, 0 for none. Points
	// beyond it are dropped, whatever `on_exceed` says. Default 0.
	MaxPointsPerSecond int `mapstructure:"max_points_per_second"`

	// Adaptive shares max_series of a group fairly among parties. Default: first come, first served.
	Adaptive AdaptiveConfig `mapstructure:"adaptive"`

	// LabelLimits is the limit on the distinct values of an attribute in a group: KEY of the point and of the resource, or
	// `attribute:KEY` or `resource:KEY` of one of them. 0 allows none.
	LabelLimits map[string]int `mapstructure:"label_limits"`

	// Aggregate combines the series that the rule matches. The limits of the rule then apply to the results. Default
	// none.
	Aggregate *AggregateConfig `mapstructure:"aggregate"`

	// Exceed has what differs from the defaults.
	Exceed ExceedConfig `mapstructure:",squash"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// AdaptiveConfig divides the series of a group among parties. When not all that they want has room, those above their
// max-min fair share get no new series, and give up their newest for those below.
type AdaptiveConfig struct {
	// ShareBy says which series belong to one party, in the terms of group_by. Default none: nothing is shared.
	ShareBy []string `mapstructure:"share_by"`

	// Priority gives some parties a larger share. Default none: all are equal.
	Priority PriorityConfig `mapstructure:"priority"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// PriorityConfig weighs parties by the value of an attribute.
type PriorityConfig struct {
	// By is the attribute, in the terms of group_by.
	By string `mapstructure:"by"`

	// Order lists at most 8 values, the most important first. Each weighs twice the next; unlisted values weigh as the last.
	Order []string `mapstructure:"order"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// ExceedConfig says what becomes of points that find no room.
type ExceedConfig struct {
	// OnExceed lists the actions for rejected points, tried in order: `collapse` replaces the value of the label that is over its limit,
	// `collapse_worst` does so too, and if there are too many series replaces that of the label with most values (a
	// tenth of `max_series` is reserved for the results; it needs `statistics`), `overflow` adds the points of all such
	// series up in one, `sample` lets a fraction of the series through, `drop` drops. Other points are dropped.
	// Default [collapse, overflow].
	OnExceed []string `mapstructure:"on_exceed"`

	// KeepLabels are attributes, of resource or point, that overflow series keep, beside those of `group_by` and what
	// `overflow::keep_service` is for. Default none.
	KeepLabels []string `mapstructure:"keep_labels"`

	// SampleRate is the fraction that `sample` lets through, above 0 and below 1. Required with sample.
	SampleRate float64 `mapstructure:"sample_rate"`

	// Gauge is how several gauges become one: last, min, max or mean of all points since the last flush, or drop:
	// they cannot be collapsed or overflow. Default drop.
	Gauge string `mapstructure:"gauge"`

	// prevent unkeyed literal initialization
	_ struct{}
}

func (r *RuleConfig) validate(c *Config) error {
	var errs []error
	if r.MaxSeries < 0 {
		errs = append(errs, fmt.Errorf("`max_series` must not be negative, got %d", r.MaxSeries))
	}
	if r.MaxNewSeriesPerMinute < 0 {
		errs = append(errs, fmt.Errorf("`max_new_series_per_minute` must not be negative, got %d", r.MaxNewSeriesPerMinute))
	}
	if r.MaxPointsPerSecond < 0 {
		errs = append(errs, fmt.Errorf("`max_points_per_second` must not be negative, got %d", r.MaxPointsPerSecond))
	}
	for label := range r.Owner {
		if label == "" || slices.Contains(ownLabels, label) {
			errs = append(errs, fmt.Errorf("`owner` must name labels other than %q, got %q", ownLabels, label))
		}
	}
	errs = append(errs, r.Match.validate("match", c))
	for _, label := range slices.Sorted(maps.Keys(r.LabelLimits)) {
		errs = append(errs, r.ValidateLabelLimit(label, c))
	}
	rate := r.Exceed.SampleRate
	if rate == 0 {
		rate = c.Defaults.Exceed.SampleRate
	}
	if err := r.Exceed.validate(rate); err != nil {
		errs = append(errs, err)
	}
	for _, by := range r.GroupBy {
		errs = append(errs, validateSource("group_by", by, c))
	}
	if r.Aggregate != nil {
		errs = append(errs, r.Aggregate.validate(c))
	}
	return errors.Join(append(errs, r.Adaptive.validate(r.MaxSeries, c))...)
}

// ValidateLabelLimit returns an error if a limit would undo another.
func (r *RuleConfig) ValidateLabelLimit(name string, c *Config) error {
	limited := newLabelLimit(name)
	if limited.Key == "" || r.LabelLimits[name] < 0 {
		return fmt.Errorf("`label_limits` must name attributes and not be negative, got %q: %d", name, r.LabelLimits[name])
	}
	for _, by := range r.GroupBy {
		if from := NewSource(by); from.Key == limited.Key &&
			(from.Kind == fromEither || limited.On[ident.OfResource] && from.Kind == FromResource || limited.On[ident.OfPoint] && from.Kind == FromAttribute) {
			return fmt.Errorf("`label_limits` must not limit what `group_by` groups by, got %q", name)
		}
	}
	for _, from := range c.Tenant.From {
		if key, ok := strings.CutPrefix(from, byResource+":"); ok && key == limited.Key && limited.On[ident.OfResource] {
			return fmt.Errorf("`label_limits` must not limit %q, where `tenant::from` finds tenants: write %s:%s for that of the point",
				name, byAttribute, key)
		}
	}
	for other := range r.LabelLimits {
		if o := newLabelLimit(other); other < name && o.Key == limited.Key &&
			(o.On[ident.OfPoint] && limited.On[ident.OfPoint] || o.On[ident.OfResource] && limited.On[ident.OfResource]) {
			return fmt.Errorf("`label_limits` must limit an attribute once, got %q and %q", other, name)
		}
	}
	return nil
}

func validateSource(key, by string, c *Config) error {
	kind, attribute, ok := strings.Cut(by, ":")
	switch {
	case by == "" || ok && (kind == byResource || kind == byAttribute) && attribute == "":
		return fmt.Errorf("`%s` must name an attribute, got %q", key, by)
	case kind == byMetadata:
		return fmt.Errorf("`%s` has no metadata of its own: name %q in `tenant::from` and write tenant", key, by)
	case by == byTenant && len(c.Tenant.From) == 0:
		return fmt.Errorf("`%s` has tenant, so `tenant::from` must say where it is found", key)
	}
	return nil
}

func (a *AdaptiveConfig) validate(maxSeries int, c *Config) error {
	var errs []error
	for _, by := range a.ShareBy {
		errs = append(errs, validateSource("adaptive::share_by", by, c))
	}
	if len(a.ShareBy) > 0 && maxSeries == 0 {
		errs = append(errs, errors.New("`adaptive::share_by` has nothing to share: set `max_series`"))
	}
	priority := &a.Priority
	if priority.By != "" || len(priority.Order) > 0 {
		errs = append(errs, validateSource("adaptive::priority::by", priority.By, c))
		if n := len(priority.Order); n == 0 || n > fair.MaxPriorities || slices.Contains(priority.Order, "") {
			errs = append(errs, fmt.Errorf("`adaptive::priority::order` must list 1 to %d values, got %q", fair.MaxPriorities, priority.Order))
		}
		if len(a.ShareBy) == 0 {
			errs = append(errs, errors.New("`adaptive::priority` is for those who share: set `adaptive::share_by`"))
		}
	}
	return errors.Join(errs...)
}

// validate checks the actions. rate is the sample rate in force, which may be the default.
func (e *ExceedConfig) validate(rate float64) error {
	var errs []error
	for _, name := range e.OnExceed {
		if !slices.Contains(ActionNames[:ActionWait], name) {
			errs = append(errs, fmt.Errorf("`on_exceed` must list collapse, collapse_worst, overflow, sample or drop, got %q", name))
		}
		if name == ActionNames[ActionSample] && rate == 0 {
			errs = append(errs, errors.New("`on_exceed` has sample, so `sample_rate` must be set"))
		}
	}
	if !(e.SampleRate >= 0 && e.SampleRate < 1) { // NaN, too
		errs = append(errs, fmt.Errorf("`sample_rate` must be above 0 and below 1, got %v", e.SampleRate))
	}
	if _, ok := gaugeModes[e.Gauge]; !ok && e.Gauge != "" {
		errs = append(errs, fmt.Errorf("`gauge` must be drop, last, min, max or mean, got %q", e.Gauge))
	}
	return errors.Join(errs...)
}
