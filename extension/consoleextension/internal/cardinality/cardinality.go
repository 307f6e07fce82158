// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package cardinality shows what processors know of series, and computes what rules would save.
package cardinality

import (
	"net/http"
	"time"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/answer"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/known"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/meter"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/prose"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/sources"
	"github.com/godwit-otel/godwit/internal/inspect"
)

type (
	cardinalityJSON struct {
		inspect.CardinalityOverview

		Processor   string      `json:"processor"`
		Over        *float64    `json:"over_seconds"`
		New         *float64    `json:"new_per_minute"`
		Gone        *float64    `json:"gone_per_minute"`
		SampleSince *time.Time  `json:"sample_since"`
		Limits      []limitJSON `json:"limits"`
	}

	limitJSON struct {
		inspect.Limit

		Last *time.Time `json:"last_rejection"`
	}
)

// wordMetric is the word for a metric in requests and rules.
const wordMetric = "metric"

// View shows what the processors know.
type View struct {
	sources *sources.Registry
	now     func() time.Time
	past    meter.Past[map[*sources.Source]churn]
}

// New returns a view of the processors among the sources.
func New(of *sources.Registry, now func() time.Time) *View { return &View{sources: of, now: now} }

// Overviews answers with the overview of each processor.
func (v *View) Overviews(*http.Request) (any, error) {
	out := []cardinalityJSON{}
	at, now := v.now(), map[*sources.Source]inspect.CardinalityOverview{}
	for _, s := range v.sources.All() {
		if s.Cardinality != nil {
			now[s] = s.Cardinality.Overview()
		}
	}
	before, age := v.past.Since(at, churnOf(now))
	for _, s := range v.sources.All() {
		o, ok := now[s]
		if !ok {
			continue
		}
		one := cardinalityJSON{Processor: s.Name(), CardinalityOverview: o, SampleSince: known.Time(o.SampleSince), Limits: []limitJSON{}}
		one.Rejects, one.Overflow, one.Events = answer.List(o.Rejects), answer.List(o.Overflow), answer.List(o.Events)
		for i := range one.Rejects {
			one.Rejects[i].Labels = answer.List(one.Rejects[i].Labels)
		}
		for i := range one.Overflow {
			one.Overflow[i].Labels = answer.List(one.Overflow[i].Labels)
		}
		for _, l := range o.Limits {
			l.Fullest = answer.List(l.Fullest)
			for i := range l.Fullest {
				l.Fullest[i].Group = answer.List(l.Fullest[i].Group)
			}
			one.Limits = append(one.Limits, limitJSON{Limit: l, Last: known.Time(l.Last)})
		}
		if a, counted := before[s]; counted {
			one.Over = known.Number(age.Seconds())
			one.New = known.Number(max(0, float64(o.Admitted-a.admitted)) / age.Minutes())
			one.Gone = known.Number(max(0, float64(o.Expired-a.expired)) / age.Minutes())
		}
		out = append(out, one)
	}
	return map[string]any{"processors": out}, nil
}

// churn counts the series that a processor has admitted, and those of them that have expired.
type churn struct{ admitted, expired int64 }

func churnOf(all map[*sources.Source]inspect.CardinalityOverview) map[*sources.Source]churn {
	out := make(map[*sources.Source]churn, len(all))
	for s, o := range all {
		out[s] = churn{o.Admitted, o.Expired}
	}
	return out
}

// processor returns the processor that a request names, the first if it names none.
func (v *View) processor(r *http.Request) (*sources.Source, error) {
	asked := r.URL.Query().Get(sources.Processor)
	for _, s := range v.sources.All() {
		if s.Cardinality != nil && (asked == "" || asked == s.Name()) {
			return s, nil
		}
	}
	if asked == "" {
		return nil, answer.NotFound("there is no cardinality processor in the pipelines")
	}
	return nil, answer.NotFound("there is no cardinality processor %q", prose.Cut(asked, 100))
}
