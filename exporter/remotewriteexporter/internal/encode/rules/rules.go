// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package rules applies write_relabel_configs to labels, and tells beforehand which labels the result may depend on.
package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/names"
)

// Rules are write_relabel_configs. They are applied to a series when it is first seen.
//
// A series is made for all resources that contribute labels of the same names, so rules are applied without the values
// of these. The result is the same as long as no rule needs them: those that a rule does need become part of the
// schema, which is then that of the resources with these values. A label that rules read, but never set, still keeps
// its place in series, so that resources share these although their points are known by resource.
type Rules struct {
	Configs []*relabel.Config
	made    []*regexp.Regexp // for each config whose target is a template: the names that it can make
	Scheme  model.ValidationScheme

	// Used for one series at a time; the table must be locked.
	sorted  labels.ScratchBuilder
	builder *labels.Builder
}

// New checks configs; it returns nil if there are none. If escaped, names must be valid in the old sense.
func New(configs []relabel.Config, escaped bool) (*Rules, error) {
	if len(configs) == 0 {
		return nil, nil
	}
	r := &Rules{Scheme: model.UTF8Validation, builder: labels.NewBuilder(labels.EmptyLabels())}
	if escaped {
		r.Scheme = model.LegacyValidation
	}
	for i := range configs {
		c := configs[i]
		if err := c.Validate(r.Scheme); err != nil {
			return nil, fmt.Errorf("cannot use rule %d: %w", i, err)
		}
		var made *regexp.Regexp
		switch c.Action {
		case relabel.Replace:
			made = namesOf(c.TargetLabel)
		case relabel.LabelMap:
			made = namesOf(c.Replacement)
		default:
		}
		r.Configs, r.made = append(r.Configs, &c), append(r.made, made)
	}
	return r, nil
}

// variable is a reference to a capture group in a template.
var variable = regexp.MustCompile(`\$(\$|\w+|\{\w+\})`)

// namesOf matches all texts that a template can make.
func namesOf(template string) *regexp.Regexp {
	var b strings.Builder
	at := 0
	for _, m := range variable.FindAllStringIndex(template, -1) {
		b.WriteString(regexp.QuoteMeta(template[at:m[0]]) + ".*")
		at = m[1]
	}
	b.WriteString(regexp.QuoteMeta(template[at:]))
	return regexp.MustCompile("^(?s:" + b.String() + ")$")
}

// Read reports whether the value of a label decides what a rule does.
func (r *Rules) Read(name string) bool {
	return slices.ContainsFunc(r.Configs, func(c *relabel.Config) bool {
		switch c.Action {
		case relabel.LabelDrop, relabel.LabelKeep:
			return false
		case relabel.LabelMap:
			return c.Regex.MatchString(name)
		case relabel.KeepEqual, relabel.DropEqual:
			return c.TargetLabel == name || slices.Contains(c.SourceLabels, model.LabelName(name))
		default:
			return slices.Contains(c.SourceLabels, model.LabelName(name))
		}
	})
}

// Set reports whether a rule may change a label's value, or remove it thereby.
func (r *Rules) Set(name string) bool {
	for i, c := range r.Configs {
		switch c.Action {
		case relabel.HashMod, relabel.Lowercase, relabel.Uppercase:
			if c.TargetLabel == name {
				return true
			}
		default:
			if made := r.made[i]; made != nil && made.MatchString(name) {
				return true
			}
		}
	}
	return false
}

// Remove reports whether a label is removed by its name, whatever its value.
func (r *Rules) Remove(name string) bool {
	return slices.ContainsFunc(r.Configs, func(c *relabel.Config) bool {
		return c.Action == relabel.LabelDrop && c.Regex.MatchString(name) ||
			c.Action == relabel.LabelKeep && !c.Regex.MatchString(name)
	})
}

// Apply applies the rules to labels, none of them empty. It returns false if they drop the series.
func (r *Rules) Apply(list []names.Label) (before, after labels.Labels, keep bool) {
	r.sorted.Reset()
	for _, l := range list {
		r.sorted.Add(l.Name, l.Value)
	}
	r.sorted.Sort()
	before = r.sorted.Labels()
	r.builder.Reset(before)
	if !relabel.ProcessBuilder(r.builder, r.Configs...) {
		return before, before, false
	}
	return before, r.builder.Labels(), true
}

// Valid reports whether a series with these labels can be sent: a receiver refuses one without a name.
func (r *Rules) Valid(ls labels.Labels) bool {
	if ls.Get(names.NameLabel) == "" {
		return false
	}
	return ls.IsValid(r.Scheme)
}
