// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// DefaultAggregateInterval is that of rules that do not say.
const DefaultAggregateInterval = time.Minute

// AggregateConfig makes few series of many: those that are the same but for some labels become one.
type AggregateConfig struct {
	// By lists the attributes to keep, of the resource and of the point: KEY, or `resource:KEY` or `attribute:KEY`. With
	// an empty list none does. Either this or `without` is required.
	By []string `mapstructure:"by"`

	// Without lists the attributes to remove, in the same terms.
	Without []string `mapstructure:"without"`

	// Interval is how often results are sent, at multiples of it. From 1s to idle_timeout. Default 1m.
	Interval time.Duration `mapstructure:"interval"`

	// Outputs lists what is computed. `sum` is for all types but summaries, `count` (of series) for all but these and
	// histograms; `min`, `max`, `avg` and `last` are for gauges and sums that are not monotonic. Default [sum].
	Outputs []string `mapstructure:"outputs"`

	// KeepInput lets the inputs pass as well. The names of outputs then always have a suffix. Default
	// false.
	KeepInput bool `mapstructure:"keep_input"`

	// prevent unkeyed literal initialization
	_ struct{}
}

func (a *AggregateConfig) validate(c *Config) error {
	var errs []error
	if (a.By == nil) == (a.Without == nil) {
		errs = append(errs, errors.New("`aggregate` must have either `by` or `without`: write by: [] to keep no attribute"))
	}
	if a.Without != nil && len(a.Without) == 0 {
		errs = append(errs, errors.New("`aggregate::without` must name an attribute"))
	}
	for _, labels := range []struct {
		key   string
		names []string
	}{{"by", a.By}, {"without", a.Without}} {
		for i, name := range labels.names {
			errs = append(errs, validateLabel("aggregate::"+labels.key, name))
			if slices.Contains(labels.names[:i], name) {
				errs = append(errs, fmt.Errorf("`aggregate::%s` must not list %q twice", labels.key, name))
			}
		}
	}
	for _, from := range c.Tenant.From {
		if key, ok := strings.CutPrefix(from, byResource+":"); ok {
			if slices.Contains(a.Without, key) || slices.Contains(a.Without, from) {
				errs = append(errs, fmt.Errorf("`aggregate::without` must not have %q: `tenant::from` finds tenants there", key))
			}
		}
	}
	if a.Interval != 0 && (a.Interval < time.Second || a.Interval > c.IdleTimeout) {
		errs = append(errs, fmt.Errorf("`aggregate::interval` must be from 1s to `idle_timeout` (%s), got %s", c.IdleTimeout, a.Interval))
	}
	if a.Interval == 0 && c.IdleTimeout < DefaultAggregateInterval {
		errs = append(errs, fmt.Errorf("`aggregate::interval` must be set: its default of 1m is above `idle_timeout` (%s)", c.IdleTimeout))
	}
	for i, name := range a.Outputs {
		switch {
		case !slices.Contains(OperationNames[:], name):
			errs = append(errs, fmt.Errorf("`aggregate::outputs` must list %s, got %q", strings.Join(OperationNames[:], ", "), name))
		case slices.Contains(a.Outputs[:i], name):
			errs = append(errs, fmt.Errorf("`aggregate::outputs` must not list %q twice", name))
		}
	}
	return errors.Join(errs...)
}

// validateLabel checks an attribute to be kept or removed.
func validateLabel(key, name string) error {
	kind, attribute, ok := strings.Cut(name, ":")
	switch {
	case name == "" || ok && (kind == byResource || kind == byAttribute) && attribute == "":
		return fmt.Errorf("`%s` must name an attribute, got %q", key, name)
	case name == byMetric || name == byTenant:
		return fmt.Errorf("`%s` cannot have %s, which always stays: for an attribute of this name write %s:%s", key, name, byAttribute, name)
	case ok && kind == byMetadata:
		return fmt.Errorf("`%s` cannot have %q: metadata is no attribute, and tenants always stay apart", key, name)
	}
	return nil
}
