// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"net/http"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/advice"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/answer"
	"github.com/godwit-otel/godwit/internal/inspect"
)

type targetDetailJSON struct {
	targetJSON

	Discovered    []inspect.Label `json:"discovered"`
	Relabel       string          `json:"relabel_configs"`
	MetricRelabel string          `json:"metric_relabel_configs"`
	CanLook       bool            `json:"can_look"`
	Next          string          `json:"next"`
}

// find returns the target with the ID of the request's path.
func (v *View) find(r *http.Request) (entry, error) {
	id := r.PathValue("id")
	for _, s := range v.sources.All() {
		if s.Targets == nil {
			continue
		}
		all := s.Targets()
		for i := range all.Jobs {
			j := &all.Jobs[i]
			for k := range j.Targets {
				if j.Targets[k].ID == id {
					return entry{s, j, &j.Targets[k]}, nil
				}
			}
		}
	}
	return entry{}, answer.NotFound("%v", inspect.ErrNoTarget)
}

// Target answers with all that is known of a target.
func (v *View) Target(r *http.Request) (any, error) {
	e, err := v.find(r)
	if err != nil {
		return nil, err
	}
	out := targetDetailJSON{targetJSON: e.json(), Discovered: hidden(e.target.Labels.Discovered()), CanLook: e.source.Look != nil}
	if e.target.State == inspect.Failing {
		out.Next = advice.ForReason(e.target.Reason)
		if code := statusOf(e.target); code != "" {
			out.Next = advice.ForStatus(code)
		}
	}
	if e.job.Rules != nil {
		out.Relabel, out.MetricRelabel = e.job.Rules()
	}
	return out, nil
}
