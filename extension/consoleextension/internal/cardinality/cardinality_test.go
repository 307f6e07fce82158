// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinality

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/answer"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/consoletest"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/meter"
	"github.com/godwit-otel/godwit/internal/inspect"
)

// subject is the view of a test's processors.
type subject struct {
	*consoletest.World

	view *View
}

func open(t *testing.T) *subject {
	t.Helper()
	w := consoletest.New(t)
	return &subject{w, New(w.Sources, w.Clock.Now)}
}

func (s *subject) processor(name string, c inspect.Cardinality) {
	s.Register(inspect.Source{Kind: component.KindProcessor, ID: consoletest.ID(name), Cardinality: c})
}

func TestNoProcessorIsNoFault(t *testing.T) {
	s := open(t)
	_, _, text := consoletest.Ask(t, s.view.Overviews, "", "")
	require.JSONEq(t, `{"processors":[]}`, text)
	for query, f := range map[string]answer.Func{"": s.view.Top, "?name=m": s.view.Metric, "?drop=a": s.view.WhatIf, "?processor=other": s.view.Top} {
		status, code, _ := consoletest.Fault(t, f, query, "")
		require.Equal(t, http.StatusNotFound, status)
		require.Equal(t, "not_found", code)
	}
}

func TestChurnIsBetweenTwoLooks(t *testing.T) {
	s := open(t)
	f := &consoletest.Cardinality{Now: inspect.CardinalityOverview{Admitted: 100, Expired: 10}}
	s.processor("cardinality", f)
	type overviews struct{ Processors []cardinalityJSON }
	first := consoletest.Get[overviews](t, s.view.Overviews, "").Processors[0]
	require.Nil(t, first.New)
	f.Now.Admitted, f.Now.Expired = 130, 25
	s.Clock.Pass(meter.Interval)
	second := consoletest.Get[overviews](t, s.view.Overviews, "").Processors[0]
	require.InDelta(t, 180, *second.New, 1e-9)
	require.InDelta(t, 90, *second.Gone, 1e-9)
	require.InDelta(t, 10, *second.Over, 0)
}

func TestListsOfProcessorsAreNeverNull(t *testing.T) {
	s := open(t)
	s.processor("cardinality", consoletest.Cardinality{
		Now:  inspect.CardinalityOverview{Limits: []inspect.Limit{{Fullest: []inspect.GroupUse{{}}}}, Rejects: []inspect.Reject{{}}, Overflow: []inspect.Overflow{{}}},
		Rows: inspect.Top{Rows: []inspect.Row{{}}},
	})
	_, _, text := consoletest.Ask(t, s.view.Overviews, "", "")
	require.Contains(t, text, `"last_rejection":null`)
	require.Contains(t, text, `"sample_since":null`)
	for query, f := range map[string]answer.Func{"": s.view.Top, "?name=m": s.view.Metric, "?drop=a": s.view.WhatIf, "?topN=1": s.view.TSDB} {
		_, _, text := consoletest.Ask(t, f, query, "")
		require.NotContains(t, text, "null", query)
	}
}

func TestTopAsks(t *testing.T) {
	s := open(t)
	var asked inspect.TopQuery
	s.processor("a", consoletest.Cardinality{})
	s.processor("b", consoletest.Cardinality{Asked: &asked, Rows: inspect.Top{Total: 7, Rows: []inspect.Row{{Name: "=evil", Series: inspect.Estimate{Value: 5}}}}})
	got := consoletest.Get[topJSON](t, s.view.Top, "?processor=b&of=pairs&by=new&n=7&match=x&metric=m&label=l")
	require.Equal(t, inspect.TopQuery{Of: "pairs", By: "new", N: 7, Match: "x", Metric: "m", Label: "l"}, asked)
	require.Equal(t, "b", got.Processor)
	require.Equal(t, "a", consoletest.Get[topJSON](t, s.view.Top, "").Processor)
	for query, want := range map[string]string{"n=0": "`n`", "n=1001": "`n`", "of=x": "`of`", "by=x": "`by`", "format=x": "`format`"} {
		status, _, message := consoletest.Fault(t, s.view.Top, "?"+query, "")
		require.Equal(t, http.StatusBadRequest, status)
		require.Contains(t, message, want)
	}
	_, _, text := consoletest.Ask(t, s.view.Top, "?processor=b&format=csv", "")
	require.Contains(t, text, "\n'=evil,,")
	require.Equal(t, answer.MaxRows, asked.N)
}

func TestWhatIf(t *testing.T) {
	s := open(t)
	s.processor("cardinality", consoletest.Cardinality{})
	f := func(query, rule string) {
		t.Helper()
		got := consoletest.Get[whatIfJSON](t, s.view.WhatIf, "?"+query)
		require.Equal(t, inspect.Estimate{Value: 1, Error: 0.5}, got.After)
		require.Equal(t, rule, got.Rule)
	}
	f("metric=m&drop=path&drop=id", "- name: m\n  match:\n    metric: m\n  label_limits:\n    id: 0\n    path: 0\n  on_exceed:\n  - collapse\n  - overflow\n")
	f("max=10", "- name: all\n  max_series: 10\n")
	f("keep=job", "")
	for query, want := range map[string]string{"": "nothing to change", "max=-1": "`max`", "metric=unseen&drop=a": "unseen"} {
		status, _, message := consoletest.Fault(t, s.view.WhatIf, "?"+query, "")
		require.Equal(t, http.StatusBadRequest, status)
		require.Contains(t, message, want)
	}
}

func TestMetric(t *testing.T) {
	s := open(t)
	s.processor("cardinality", consoletest.Cardinality{})
	var names []string
	for _, l := range consoletest.Get[metricJSON](t, s.view.Metric, "?name=m").Labels {
		names = append(names, l.Name)
	}
	require.Equal(t, []string{"id", "method", "path"}, names, "the most values first")
	status, _, _ := consoletest.Fault(t, s.view.Metric, "?name=other", "")
	require.Equal(t, http.StatusNotFound, status)
	status, _, _ = consoletest.Fault(t, s.view.Metric, "", "")
	require.Equal(t, http.StatusBadRequest, status)
}

// The processor's own response is passed on unchanged.
func TestTSDBStatusIsPrometheus(t *testing.T) {
	s := open(t)
	s.processor("cardinality", consoletest.Cardinality{})
	for query, want := range map[string]string{"": "10", "?topN=3": "3", "?limit=5": "5", "?topN=3&limit=5": "5"} {
		_, header, text := consoletest.Ask(t, s.view.TSDB, ""+query, "")
		require.Equal(t, `{"status":"success","data":{"limit":`+want+`}}`, text)
		require.Equal(t, "application/json", header.Get("Content-Type"))
	}
	s.processor("silent", struct{ inspect.Cardinality }{consoletest.Cardinality{}})
	status, code, _ := consoletest.Fault(t, s.view.TSDB, "?processor=silent", "")
	require.Equal(t, http.StatusNotFound, status)
	require.Equal(t, "not_found", code)
}

// A processor has an instance in each of its pipelines.
func TestInstancesAreToldApart(t *testing.T) {
	s := open(t)
	s.processor("cardinality", consoletest.Cardinality{Now: inspect.CardinalityOverview{Series: 1}})
	s.processor("cardinality", consoletest.Cardinality{Now: inspect.CardinalityOverview{Series: 2}})
	var names []string
	for _, p := range consoletest.Get[struct {
		Processors []cardinalityJSON `json:"processors"`
	}](t, s.view.Overviews, "").Processors {
		names = append(names, p.Processor)
	}
	require.Equal(t, []string{"cardinality", "cardinality#2"}, names)
	require.Equal(t, "cardinality#2", consoletest.Get[topJSON](t, s.view.Top, "?processor=cardinality%232").Processor)

	for _, pipeline := range []string{"metrics/a", "metrics/b"} {
		s.Register(inspect.Source{Kind: component.KindProcessor, ID: component.MustNewIDWithName("cardinality", "x"), Pipeline: pipeline, Cardinality: consoletest.Cardinality{}})
	}
	require.Equal(t, "cardinality/x in metrics/a", consoletest.Get[topJSON](t, s.view.Top, "?processor=cardinality%2Fx+in+metrics%2Fa").Processor)
	require.Equal(t, "cardinality/x in metrics/b", consoletest.Get[topJSON](t, s.view.Top, "?processor=cardinality%2Fx+in+metrics%2Fb").Processor)
}
