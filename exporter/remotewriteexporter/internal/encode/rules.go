// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
)

// rules are those of write_relabel_configs. They are applied to a series when it is first seen.
//
// A series is made for all resources that contribute labels of the same names, so rules are applied without the values of
// these. That says the same as long as no rule needs them: those that one does need are made part of the schema, which then
// is that of the resources with these values. A label that rules read, but never set, still keeps its place in series, so that
// resources share those although their points are known by resource.
type rules struct {
	configs []*relabel.Config
	made    []*regexp.Regexp // of each config whose target is a template: the names it may make
	scheme  model.ValidationScheme

	// For one series at a time; the table is locked.
	sorted  labels.ScratchBuilder
	builder *labels.Builder
}

// newRules checks configs; nil if there are none. Names have to be valid where the strategy makes them so.
func newRules(configs []relabel.Config, escaped bool) (*rules, error) {
	if len(configs) == 0 {
		return nil, nil
	}
	r := &rules{scheme: model.UTF8Validation, builder: labels.NewBuilder(labels.EmptyLabels())}
	if escaped {
		r.scheme = model.LegacyValidation
	}
	for i := range configs {
		c := configs[i]
		if err := c.Validate(r.scheme); err != nil {
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
		r.configs, r.made = append(r.configs, &c), append(r.made, made)
	}
	return r, nil
}

// variable is what a template puts a part of the text in for.
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

// read says whether the value of a label decides what a rule does.
func (r *rules) read(name string) bool {
	return slices.ContainsFunc(r.configs, func(c *relabel.Config) bool {
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

// set says whether a rule may give a label another value, or remove it for that.
func (r *rules) set(name string) bool {
	for i, c := range r.configs {
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

// remove says whether a label goes by its name, whatever its value.
func (r *rules) remove(name string) bool {
	return slices.ContainsFunc(r.configs, func(c *relabel.Config) bool {
		return c.Action == relabel.LabelDrop && c.Regex.MatchString(name) ||
			c.Action == relabel.LabelKeep && !c.Regex.MatchString(name)
	})
}

// apply applies the rules to labels, none of them empty. It is false if they drop the series.
func (r *rules) apply(list []label) (before, after labels.Labels, keep bool) {
	r.sorted.Reset()
	for _, l := range list {
		r.sorted.Add(l.name, l.value)
	}
	r.sorted.Sort()
	before = r.sorted.Labels()
	r.builder.Reset(before)
	if !relabel.ProcessBuilder(r.builder, r.configs...) {
		return before, before, false
	}
	return before, r.builder.Labels(), true
}

// valid says whether a series of these labels can be sent: a receiver refuses one without a name.
func (r *rules) valid(ls labels.Labels) bool {
	if ls.Get(nameLabel) == "" {
		return false
	}
	return ls.IsValid(r.scheme)
}
