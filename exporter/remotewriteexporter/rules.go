// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"errors"
	"fmt"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/otlptranslator"
	"github.com/prometheus/prometheus/model/relabel"
	"go.opentelemetry.io/collector/confmap"

	"github.com/godwit-otel/godwit/internal/confkeys"
)

// RelabelConfig is a rule of Prometheus' relabel_config, with its keys and its defaults.
type RelabelConfig struct {
	// SourceLabels are the labels whose values, joined by Separator, Regex is matched against. Default none.
	SourceLabels []string `mapstructure:"source_labels"`
	// Separator is put between the values. Default ;.
	Separator string `mapstructure:"separator"`
	// Regex has to match the whole text. Default (.*).
	Regex string `mapstructure:"regex"`
	// Modulus is that of hashmod.
	Modulus uint64 `mapstructure:"modulus"`
	// TargetLabel is the label that is written to, or compared with.
	TargetLabel string `mapstructure:"target_label"`
	// Replacement is what is written; parts of what Regex matched may be in it. Default $1.
	Replacement string `mapstructure:"replacement"`
	// Action is replace, keep, drop, keepequal, dropequal, hashmod, labelmap, labeldrop, labelkeep, lowercase or uppercase.
	// Default replace.
	Action string `mapstructure:"action"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Unmarshal begins with the defaults. In Prometheus' file every value is a text, whatever it looks like.
func (c *RelabelConfig) Unmarshal(conf *confmap.Conf) error {
	raw := conf.ToStringMap()
	for _, key := range []string{"separator", "regex", "target_label", "replacement", "action"} {
		switch v := raw[key].(type) {
		case int, int64, uint64, bool:
			raw[key] = fmt.Sprint(v)
		case float64:
			return fmt.Errorf("`%s` must be a text, got the number %v: put it in quotes", key, v)
		case nil:
			delete(raw, key) // as if it was not there
		}
	}
	d := relabel.DefaultRelabelConfig
	c.Separator, c.Regex, c.Replacement, c.Action = d.Separator, d.Regex.String(), d.Replacement, string(d.Action)
	type plain RelabelConfig // without this method
	return confkeys.Unmarshal(confmap.NewFromStringMap(raw), (*plain)(c))
}

// scheme returns the names that rules may make: those that the strategy makes.
func (c *NamesConfig) scheme() model.ValidationScheme {
	if c.escapes() {
		return model.LegacyValidation
	}
	return model.UTF8Validation
}

// escapes reports whether names are written without UTF-8, which 1.0 needs.
func (c *NamesConfig) escapes() bool {
	return otlptranslator.TranslationStrategyOption(c.TranslationStrategy).ShouldEscape()
}

// relabelling converts rules to those of Prometheus. key is the prefix of their keys.
func relabelling(configs []RelabelConfig, scheme model.ValidationScheme, key string) ([]relabel.Config, error) {
	var list []relabel.Config
	var errs []error
	for i := range configs {
		rule, err := configs[i].rule()
		if err == nil {
			err = rule.Validate(scheme)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("`%swrite_relabel_configs[%d]`: %w", key, i, err))
		}
		list = append(list, rule)
	}
	return list, errors.Join(errs...)
}

func (c *RelabelConfig) rule() (relabel.Config, error) {
	rule := relabel.DefaultRelabelConfig
	rule.Separator, rule.Modulus, rule.TargetLabel, rule.Replacement = c.Separator, c.Modulus, c.TargetLabel, c.Replacement
	for _, name := range c.SourceLabels {
		if !model.UTF8Validation.IsValidLabelName(name) {
			return rule, fmt.Errorf("`source_labels` must be names of labels, got %q", name)
		}
		rule.SourceLabels = append(rule.SourceLabels, model.LabelName(name))
	}
	if c.Regex != rule.Regex.String() { // since a Regexp is compared by its address
		regex, err := relabel.NewRegexp(c.Regex)
		if err != nil {
			return rule, fmt.Errorf("`regex` must be a regular expression of RE2, got %q: %w", c.Regex, err)
		}
		rule.Regex = regex
	}
	if err := rule.Action.UnmarshalYAML(func(to any) error {
		*to.(*string) = c.Action
		return nil
	}); err != nil {
		return rule, fmt.Errorf("`action` must be one of %s, got %q", strings.Join(actions, ", "), c.Action)
	}
	return rule, nil
}

var actions = []string{
	string(relabel.Replace), string(relabel.Keep), string(relabel.Drop), string(relabel.KeepEqual), string(relabel.DropEqual),
	string(relabel.HashMod), string(relabel.LabelMap), string(relabel.LabelDrop), string(relabel.LabelKeep),
	string(relabel.Lowercase), string(relabel.Uppercase),
}
