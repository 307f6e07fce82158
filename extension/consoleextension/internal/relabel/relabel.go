// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package relabel shows the effect of Prometheus' rules on labels, one by one.
package relabel

import (
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"go.yaml.in/yaml/v2"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/answer"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/prose"
	"github.com/godwit-otel/godwit/internal/inspect"
)

// Rules can make labels grow a millionfold, so everything is limited.
const (
	maxRules   = 1000
	maxLabels  = 1000
	maxSize    = 64 << 10 // of all labels, after any step
	maxSteps   = 8 << 20  // of an answer, in which each step repeats all labels
	maxSources = 50
	maxText    = 4096 // of a rule's replacement
	maxRefs    = 20   // to groups of the expression
	maxTime    = 2 * time.Second
)

type (
	relabelRequest struct {
		Labels []inspect.Label `json:"labels"`
		Rules  string          `json:"rules"`
	}

	relabelledJSON struct {
		Steps   []stepJSON      `json:"steps"`
		Dropped bool            `json:"dropped"`
		Labels  []inspect.Label `json:"labels"`
		Skipped int             `json:"skipped"`
	}

	stepJSON struct {
		Index   int             `json:"index"`
		Action  string          `json:"action"`
		Rule    string          `json:"rule"`
		Matched *bool           `json:"matched"`
		Changed bool            `json:"changed"`
		Dropped bool            `json:"dropped"`
		Changes []changeJSON    `json:"changes"`
		Labels  []inspect.Label `json:"labels"`
	}

	changeJSON struct {
		Name   string  `json:"name"`
		Before *string `json:"before"`
		After  *string `json:"after"`
	}
)

// Answer applies rules to labels, one by one, with Prometheus' own code.
func Answer(r *http.Request) (any, error) {
	var asked relabelRequest
	if err := answer.Decode(r, &asked); err != nil {
		return nil, err
	}
	if len(asked.Labels) > maxLabels {
		return nil, answer.BadRequest("`labels` must not be more than %d", maxLabels)
	}
	rules, err := parseRules(asked.Rules)
	if err != nil {
		return nil, err
	}
	builder := labels.NewBuilder(labels.EmptyLabels())
	for _, l := range asked.Labels {
		builder.Set(l.Name, l.Value)
	}
	now := builder.Labels()
	if sizeOf(now) > maxSize {
		return nil, answer.BadRequest("`labels` must not have more than %d bytes", maxSize)
	}
	began := time.Now()
	out := relabelledJSON{Steps: []stepJSON{}}
	size := 0
	for i, rule := range rules {
		before := now
		keep := relabel.ProcessBuilder(builder, rule)
		now = builder.Labels()
		step := stepJSON{Index: i, Action: string(rule.Action), Matched: matches(rule, before), Dropped: !keep, Changes: []changeJSON{}, Labels: []inspect.Label{}}
		text, err := yaml.Marshal(rule)
		if err != nil {
			return nil, answer.BadRequest("cannot write rule %d: %v", i, err)
		}
		step.Rule = string(text)
		if keep {
			step.Changes, step.Labels = changes(before, now), list(now)
		}
		step.Changed = len(step.Changes) > 0
		if size += sizeOf(now) + len(text); size > maxSteps || sizeOf(now) > maxSize {
			return nil, answer.BadRequest("the labels become too large: rule %d leaves %d bytes", i, sizeOf(now))
		}
		if time.Since(began) > maxTime {
			return nil, answer.BadRequest("the rules take too long: stopped after rule %d", i)
		}
		out.Steps = append(out.Steps, step)
		if !keep {
			out.Dropped, out.Skipped, out.Labels = true, len(rules)-i-1, []inspect.Label{}
			return out, nil
		}
	}
	out.Labels = list(now)
	return out, nil
}

// matches reports whether the rule's expression matches the labels, nil for actions without one. A match need not
// change anything.
func matches(rule *relabel.Config, now labels.Labels) *bool {
	var fits bool
	switch rule.Action {
	case relabel.Replace, relabel.Keep, relabel.Drop:
		values := make([]string, 0, len(rule.SourceLabels))
		for _, name := range rule.SourceLabels {
			values = append(values, now.Get(string(name)))
		}
		fits = rule.Regex.MatchString(strings.Join(values, rule.Separator))
	case relabel.LabelDrop, relabel.LabelKeep, relabel.LabelMap:
		now.Range(func(l labels.Label) { fits = fits || rule.Regex.MatchString(l.Name) })
	case relabel.KeepEqual, relabel.DropEqual:
		values := make([]string, 0, len(rule.SourceLabels))
		for _, name := range rule.SourceLabels {
			values = append(values, now.Get(string(name)))
		}
		fits = strings.Join(values, rule.Separator) == now.Get(rule.TargetLabel)
	default: // lowercase, uppercase and hashmod apply to all labels
		return nil
	}
	return &fits
}

// parseRules parses a list of rules, with or without its key.
func parseRules(text string) ([]*relabel.Config, error) {
	var rules []*relabel.Config
	if err := yaml.UnmarshalStrict([]byte(text), &rules); err != nil {
		var keyed struct {
			Relabel       []*relabel.Config `yaml:"relabel_configs"`
			MetricRelabel []*relabel.Config `yaml:"metric_relabel_configs"`
			WriteRelabel  []*relabel.Config `yaml:"write_relabel_configs"`
		}
		if yaml.UnmarshalStrict([]byte(text), &keyed) != nil {
			return nil, answer.BadRequest("`rules` cannot be read: %s", plain(err))
		}
		rules = append(append(keyed.Relabel, keyed.MetricRelabel...), keyed.WriteRelabel...)
	}
	if len(rules) > maxRules {
		return nil, answer.BadRequest("`rules` must not be more than %d", maxRules)
	}
	for i, rule := range rules {
		if rule == nil {
			return nil, answer.BadRequest("rule %d of `rules` is empty", i)
		}
		if err := rule.Validate(model.UTF8Validation); err != nil {
			return nil, answer.BadRequest("rule %d of `rules` is wrong: %v", i, err)
		}
		puts := rule.Replacement + rule.TargetLabel + rule.Separator
		if len(puts) > maxText || strings.Count(puts, "$") > maxRefs || len(rule.SourceLabels) > maxSources {
			return nil, answer.BadRequest("rule %d of `rules` is too large: at most %d source labels, %d references to groups, %d bytes", i, maxSources, maxRefs, maxText)
		}
	}
	return rules, nil
}

// plain returns an error of the YAML package in one line.
func plain(err error) string {
	return prose.Cut(strings.Join(strings.Fields(err.Error()), " "), 1000)
}

func sizeOf(ls labels.Labels) (n int) {
	ls.Range(func(l labels.Label) { n += len(l.Name) + len(l.Value) })
	return n
}

func list(from labels.Labels) []inspect.Label {
	out := make([]inspect.Label, 0, from.Len())
	from.Range(func(l labels.Label) { out = append(out, inspect.Label{Name: l.Name, Value: l.Value}) })
	return out
}

func changes(before, after labels.Labels) []changeJSON {
	out := []changeJSON{}
	before.Range(func(l labels.Label) {
		if !after.Has(l.Name) {
			out = append(out, changeJSON{Name: l.Name, Before: &l.Value})
		} else if value := after.Get(l.Name); value != l.Value {
			out = append(out, changeJSON{Name: l.Name, Before: &l.Value, After: &value})
		}
	})
	after.Range(func(l labels.Label) {
		if !before.Has(l.Name) {
			out = append(out, changeJSON{Name: l.Name, After: &l.Value})
		}
	})
	return out
}
