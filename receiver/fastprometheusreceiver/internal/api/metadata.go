// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/godwit-otel/godwit/internal/inorder"
)

type targetMetadata struct {
	metricMetadata

	Target labels.Labels `json:"target"`
	Name   string        `json:"metric,omitempty"`
}

type metricMetadata struct {
	Type string `json:"type"`
	Help string `json:"help"`
	Unit string `json:"unit"`
}

// targetMetadata serves what targets say about metrics.
func (s *Server) targetMetadata(r *http.Request) (any, *fault) {
	limit, fault := number(r, "limit")
	if fault != nil {
		return nil, fault
	}
	matchers, fault := selector(r, "match_target")
	if fault != nil {
		return nil, fault
	}
	metric := r.FormValue("metric")
	out := []targetMetadata{}
	for _, pool := range s.view.Pools() {
		for i := range pool.Targets {
			target := public(pool.Targets[i].Labels)
			if limit >= 0 && len(out) >= limit || !matches(matchers, target) {
				continue
			}
			for _, family := range families(&pool.Targets[i]) {
				if metric != "" && metric != family.Name {
					continue
				}
				one := targetMetadata{Target: target, Name: family.Name, metricMetadata: of(family)}
				if metric != "" { // the client asked for it by name
					one.Name = ""
				}
				out = append(out, one)
			}
		}
	}
	return out, nil
}

// metricMetadata serves what any target says about each metric.
func (s *Server) metricMetadata(r *http.Request) (any, *fault) {
	limit, fault := number(r, "limit")
	if fault != nil {
		return nil, fault
	}
	each, fault := number(r, "limit_per_metric")
	if fault != nil {
		return nil, fault
	}
	metric := r.FormValue("metric")
	type saying struct {
		metricMetadata

		metric string
	}
	seen := map[saying]bool{} // each target may say something else about a metric
	out := map[string][]metricMetadata{}
	for _, pool := range s.view.Pools() {
		for i := range pool.Targets {
			for _, family := range families(&pool.Targets[i]) {
				said, known := out[family.Name]
				saying := saying{of(family), family.Name}
				switch {
				case metric != "" && metric != family.Name:
				case !known && limit >= 0 && len(out) >= limit:
				case each > 0 && len(said) >= each:
				case seen[saying]:
				default:
					seen[saying] = true
					out[family.Name] = append(said, saying.metricMetadata)
				}
			}
		}
	}
	return out, nil
}

func of(f Family) metricMetadata { return metricMetadata{Type: f.Type, Help: f.Help, Unit: f.Unit} }

// families returns what a target says about metrics, sorted by name.
func families(t *Target) []Family {
	if t.Families == nil {
		return nil
	}
	out := t.Families()
	inorder.Sort(out, func(a, b Family) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// number returns a parameter, -1 if it is not there.
func number(r *http.Request, name string) (int, *fault) {
	text := r.FormValue(name)
	if text == "" {
		return -1, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, &fault{badData, fmt.Errorf("%s must be a number", name)}
	}
	return n, nil
}

func selector(r *http.Request, name string) ([]*labels.Matcher, *fault) {
	text := r.FormValue(name)
	if text == "" {
		return nil, nil
	}
	matchers, err := parseSelector(text)
	if err != nil {
		return nil, &fault{badData, fmt.Errorf("invalid parameter %q: %w", name, err)}
	}
	return matchers, nil
}

func matches(matchers []*labels.Matcher, ls labels.Labels) bool {
	for _, m := range matchers {
		if !m.Matches(ls.Get(m.Name)) {
			return false
		}
	}
	return true
}
