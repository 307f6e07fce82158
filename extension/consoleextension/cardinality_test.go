// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/internal/inspect"
)

func (s *subject) processor(name string, c inspect.Cardinality) {
	s.RegisterInspection(inspect.Source{Kind: component.KindProcessor, ID: id(name), Cardinality: c})
}

func TestNoProcessorIsNoFault(t *testing.T) {
	s := open(t)
	_, _, text := s.do(http.MethodGet, "/api/v1/cardinality", "")
	require.JSONEq(t, `{"processors":[]}`, text)
	for _, path := range []string{"top", "metric?name=m", "whatif?drop=a", "top?processor=other"} {
		status, code, _ := s.fault(http.MethodGet, "/api/v1/cardinality/"+path, "")
		require.Equal(t, http.StatusNotFound, status)
		require.Equal(t, "not_found", code)
	}
}

func TestChurnIsBetweenTwoLooks(t *testing.T) {
	s := open(t)
	f := &fakeCardinality{overview: inspect.CardinalityOverview{Admitted: 100, Expired: 10}}
	s.processor("cardinality", f)
	type answer struct{ Processors []cardinalityJSON }
	first := get[answer](s, "/api/v1/cardinality").Processors[0]
	require.Nil(t, first.New)
	f.overview.Admitted, f.overview.Expired = 130, 25
	s.clock.pass(sampleInterval)
	second := get[answer](s, "/api/v1/cardinality").Processors[0]
	require.InDelta(t, 180, *second.New, 1e-9)
	require.InDelta(t, 90, *second.Gone, 1e-9)
	require.InDelta(t, 10, *second.Over, 0)
}

func TestListsOfProcessorsAreNeverNull(t *testing.T) {
	s := open(t)
	s.processor("cardinality", fakeCardinality{
		overview: inspect.CardinalityOverview{Limits: []inspect.Limit{{Fullest: []inspect.GroupUse{{}}}}, Rejects: []inspect.Reject{{}}, Overflow: []inspect.Overflow{{}}},
		top:      inspect.Top{Rows: []inspect.Row{{}}},
	})
	for _, path := range []string{"cardinality", "cardinality/top", "cardinality/metric?name=m", "cardinality/whatif?drop=a", "status/tsdb"} {
		_, _, text := s.do(http.MethodGet, "/api/v1/"+path, "")
		if path == "cardinality" {
			require.Contains(t, text, `"last_rejection":null`)
			require.Contains(t, text, `"sample_since":null`)
			continue
		}
		require.NotContains(t, text, "null", path)
	}
}

func TestTopAsks(t *testing.T) {
	s := open(t)
	var asked inspect.TopQuery
	s.processor("a", fakeCardinality{})
	s.processor("b", fakeCardinality{asked: &asked, top: inspect.Top{Total: 7, Rows: []inspect.Row{{Name: "=evil", Series: inspect.Estimate{Value: 5}}}}})
	got := get[topJSON](s, "/api/v1/cardinality/top?processor=b&of=pairs&by=new&n=7&match=x&metric=m&label=l")
	require.Equal(t, inspect.TopQuery{Of: "pairs", By: "new", N: 7, Match: "x", Metric: "m", Label: "l"}, asked)
	require.Equal(t, "b", got.Processor)
	require.Equal(t, "a", get[topJSON](s, "/api/v1/cardinality/top").Processor)
	for query, want := range map[string]string{"n=0": "`n`", "n=1001": "`n`", "of=x": "`of`", "by=x": "`by`", "format=x": "`format`"} {
		status, _, message := s.fault(http.MethodGet, "/api/v1/cardinality/top?"+query, "")
		require.Equal(t, http.StatusBadRequest, status)
		require.Contains(t, message, want)
	}
	_, _, text := s.do(http.MethodGet, "/api/v1/cardinality/top?processor=b&format=csv", "")
	require.Contains(t, text, "\n'=evil,,")
	require.Equal(t, maxPage, asked.N)
}

func TestWhatIf(t *testing.T) {
	s := open(t)
	s.processor("cardinality", fakeCardinality{})
	f := func(query, rule string) {
		t.Helper()
		got := get[whatIfJSON](s, "/api/v1/cardinality/whatif?"+query)
		require.Equal(t, inspect.Estimate{Value: 1, Error: 0.5}, got.After)
		require.Equal(t, rule, got.Rule)
	}
	f("metric=m&drop=path&drop=id", "- name: m\n  match:\n    metric: m\n  label_limits:\n    id: 0\n    path: 0\n  on_exceed:\n  - collapse\n  - overflow\n")
	f("max=10", "- name: all\n  max_series: 10\n")
	f("keep=job", "")
	for query, want := range map[string]string{"": "nothing to change", "max=-1": "`max`", "metric=unseen&drop=a": "unseen"} {
		status, _, message := s.fault(http.MethodGet, "/api/v1/cardinality/whatif?"+query, "")
		require.Equal(t, http.StatusBadRequest, status)
		require.Contains(t, message, want)
	}
}

func TestMetric(t *testing.T) {
	s := open(t)
	s.processor("cardinality", fakeCardinality{})
	var names []string
	for _, l := range get[metricJSON](s, "/api/v1/cardinality/metric?name=m").Labels {
		names = append(names, l.Name)
	}
	require.Equal(t, []string{"id", "method", "path"}, names, "the most values first")
	status, _, _ := s.fault(http.MethodGet, "/api/v1/cardinality/metric?name=other", "")
	require.Equal(t, http.StatusNotFound, status)
	status, _, _ = s.fault(http.MethodGet, "/api/v1/cardinality/metric", "")
	require.Equal(t, http.StatusBadRequest, status)
}

// The processor's own answer is passed on as it is.
func TestTSDBStatusIsPrometheus(t *testing.T) {
	s := open(t)
	s.processor("cardinality", fakeCardinality{})
	for query, want := range map[string]string{"": "10", "?topN=3": "3", "?limit=5": "5", "?topN=3&limit=5": "5"} {
		_, header, text := s.do(http.MethodGet, "/api/v1/status/tsdb"+query, "")
		require.Equal(t, `{"status":"success","data":{"limit":`+want+`}}`, text)
		require.Equal(t, "application/json", header.Get("Content-Type"))
	}
	s.processor("silent", struct{ inspect.Cardinality }{fakeCardinality{}})
	status, code, _ := s.fault(http.MethodGet, "/api/v1/status/tsdb?processor=silent", "")
	require.Equal(t, http.StatusNotFound, status)
	require.Equal(t, "not_found", code)
}

// A processor has an instance for each pipeline that it is in.
func TestInstancesAreToldApart(t *testing.T) {
	s := open(t)
	s.processor("cardinality", fakeCardinality{overview: inspect.CardinalityOverview{Series: 1}})
	s.processor("cardinality", fakeCardinality{overview: inspect.CardinalityOverview{Series: 2}})
	var names []string
	for _, p := range get[struct {
		Processors []cardinalityJSON `json:"processors"`
	}](s, "/api/v1/cardinality").Processors {
		names = append(names, p.Processor)
	}
	require.Equal(t, []string{"cardinality", "cardinality#2"}, names)
	require.Equal(t, "cardinality#2", get[topJSON](s, "/api/v1/cardinality/top?processor=cardinality%232").Processor)

	for _, pipeline := range []string{"metrics/a", "metrics/b"} {
		s.RegisterInspection(inspect.Source{Kind: component.KindProcessor, ID: component.MustNewIDWithName("cardinality", "x"), Pipeline: pipeline, Cardinality: fakeCardinality{}})
	}
	require.Equal(t, "cardinality/x in metrics/a", get[topJSON](s, "/api/v1/cardinality/top?processor=cardinality%2Fx+in+metrics%2Fa").Processor)
	require.Equal(t, "cardinality/x in metrics/b", get[topJSON](s, "/api/v1/cardinality/top?processor=cardinality%2Fx+in+metrics%2Fb").Processor)
}
