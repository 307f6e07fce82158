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
	require.Equal(t, "path", get[metricJSON](s, "/api/v1/cardinality/metric?name=m").Labels[0].Name)
	status, _, _ := s.fault(http.MethodGet, "/api/v1/cardinality/metric?name=other", "")
	require.Equal(t, http.StatusNotFound, status)
	status, _, _ = s.fault(http.MethodGet, "/api/v1/cardinality/metric", "")
	require.Equal(t, http.StatusBadRequest, status)
}

func TestTSDBStatusIsPrometheus(t *testing.T) {
	s := open(t)
	var asked inspect.TopQuery
	s.processor("cardinality", fakeCardinality{
		asked: &asked, overview: inspect.CardinalityOverview{Series: 9},
		top: inspect.Top{Rows: []inspect.Row{{Name: "n", Value: "v", Series: inspect.Estimate{Value: 3.6}, Values: inspect.Estimate{Value: 2}}}},
	})
	_, _, text := s.do(http.MethodGet, "/api/v1/status/tsdb?topN=3", "")
	require.JSONEq(t, `{"status":"success","data":{
		"headStats":{"numSeries":9,"numLabelPairs":0,"chunkCount":0,"minTime":0,"maxTime":0},
		"seriesCountByMetricName":[{"name":"n","value":4}],"labelValueCountByLabelName":[{"name":"n","value":2}],
		"memoryInBytesByLabelName":[],"seriesCountByLabelValuePair":[{"name":"n=v","value":4}]}}`, text)
	require.Equal(t, 3, asked.N)
	get[map[string]any](s, "/api/v1/status/tsdb?limit=5")
	require.Equal(t, 5, asked.N)
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
}
