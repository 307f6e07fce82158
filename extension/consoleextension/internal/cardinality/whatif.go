// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinality

import (
	"fmt"
	"net/http"

	"go.yaml.in/yaml/v2"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/answer"
	"github.com/godwit-otel/godwit/internal/inspect"
)

// maxLabels limits the labels to drop or keep in one request.
const maxLabels = 1000

type whatIfJSON struct {
	inspect.Projection

	Processor string `json:"processor"`
	Rule      string `json:"rule"`
}

// WhatIf answers with the estimated effect of a rule.
func (v *View) WhatIf(r *http.Request) (any, error) {
	s, err := v.processor(r)
	if err != nil {
		return nil, err
	}
	query := r.URL.Query()
	change := inspect.Change{Metric: query.Get(wordMetric), Drop: query["drop"], Keep: query["keep"]}
	if len(change.Drop)+len(change.Keep) > maxLabels {
		return nil, answer.BadRequest("`drop` and `keep` must not be more than %d", maxLabels)
	}
	limit, err := answer.Whole(r, "max", 0, 0, 1<<31-1)
	if err != nil {
		return nil, err
	}
	change.Max = int64(limit)
	if len(change.Drop)+len(change.Keep) == 0 && change.Max == 0 {
		return nil, answer.BadRequest("there is nothing to change: give `drop`, `keep` or `max`")
	}
	projection, err := s.Cardinality.WhatIf(change)
	if err != nil {
		return nil, answer.BadRequest("%v", err)
	}
	rule, err := ruleFor(change)
	if err != nil {
		return nil, err
	}
	return whatIfJSON{projection, s.Name(), rule}, nil
}

// ruleFor returns a change as rules of the processor, "" if no rule does the same. To drop a label means to limit it to
// no values of its own.
func ruleFor(change inspect.Change) (string, error) {
	if len(change.Keep) > 0 {
		return "", nil
	}
	rule := yaml.MapSlice{{Key: "name", Value: ruleName(change)}}
	if change.Metric != "" {
		rule = append(rule, yaml.MapItem{Key: "match", Value: yaml.MapSlice{{Key: wordMetric, Value: change.Metric}}})
	}
	if change.Max > 0 {
		rule = append(rule, yaml.MapItem{Key: "max_series", Value: change.Max})
	}
	if len(change.Drop) > 0 {
		limits := make(map[string]int, len(change.Drop))
		for _, name := range change.Drop {
			limits[name] = 0 // none
		}
		rule = append(rule,
			yaml.MapItem{Key: "label_limits", Value: limits},
			yaml.MapItem{Key: "on_exceed", Value: []string{"collapse", "overflow"}})
	}
	text, err := yaml.Marshal([]yaml.MapSlice{rule})
	if err != nil {
		return "", fmt.Errorf("cannot write the rule: %w", err)
	}
	return string(text), nil
}

func ruleName(change inspect.Change) string {
	if change.Metric == "" {
		return "all"
	}
	return change.Metric
}
