// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/gate"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/insight"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/stats"
)

// exploding returns n series of a metric with an id, and ten of another.
func exploding(from, n int) pmetric.Metrics {
	var points []point
	for i := range n {
		points = append(points, point{
			resource: attrs{"service.name": "shop"}, name: "requests", unit: "1", kind: delta,
			attrs: attrs{"route": "/" + strconv.Itoa(i%20), "user": strconv.Itoa(from + i)}, value: 1,
		})
	}
	for i := range 10 {
		points = append(points, point{resource: attrs{"service.name": "db"}, name: "size", kind: gauge, attrs: attrs{"i": int64(i)}})
	}
	return metricsOf(points...)
}

func limited(c *Config) {
	c.Defaults.Exceed.OnExceed = []string{"overflow"}
	c.Rules = []RuleConfig{{
		Name: "service", GroupBy: []string{"service.name"}, MaxSeries: 100, LabelLimits: map[string]int{"route": 30},
		Match: MatchConfig{Metric: "*", Resource: map[string]string{"service.name": "*"}},
	}}
}

func near(t *testing.T, want float64, got inspect.Estimate) {
	t.Helper()
	require.InDelta(t, want, got.Value, max(3*got.Error, 0.02*want))
}

func TestTheOverviewTellsLimitsAndWhatTheyDid(t *testing.T) {
	r := newRig(t, limited)
	r.consume(exploding(0, 2000))
	o := insight.New(r.Gate).Overview()
	require.Equal(t, policy.ModeEnforce, o.Mode)
	require.Equal(t, int64(110), o.Series)
	require.Equal(t, int64(110), o.Admitted)
	require.Equal(t, 2, o.Metrics)
	require.Equal(t, 110, o.SampleSize)
	near(t, 1900, o.Rejected)

	require.Len(t, o.Limits, 3)
	series, label, total := o.Limits[0], o.Limits[1], o.Limits[2]
	require.Equal(t, "service", series.Rule)
	require.Equal(t, "* service.name=*", series.Match)
	require.Equal(t, int64(100), series.Max)
	require.Equal(t, int64(100), series.Used)
	require.Equal(t, 2, series.Groups)
	require.Equal(t, int64(1900), series.Points)
	require.Equal(t, r.Now(), series.Last)
	require.Equal(t, []inspect.GroupUse{
		{Group: []inspect.Label{{Name: "service.name", Value: "shop"}}, Used: 100, Max: 100},
		{Group: []inspect.Label{{Name: "service.name", Value: "db"}}, Used: 10, Max: 100},
	}, series.Fullest)
	require.Equal(t, "route", label.Label)
	require.Equal(t, int64(20), label.Used)
	require.Equal(t, policy.RuleTotal, total.Rule)
	require.Equal(t, int64(110), total.Used)

	require.NotEmpty(t, o.Rejects)
	reject := o.Rejects[0]
	require.Equal(t, "requests", reject.Metric)
	require.Equal(t, []string{"service", "max_series", "overflow"}, []string{reject.Rule, reject.Reason, reject.Action})
	require.Contains(t, reject.Labels, inspect.Label{Name: "service.name", Value: "shop"})
	require.Len(t, o.Overflow, 1)
	require.Equal(t, "requests", o.Overflow[0].Metric)
	require.Equal(t, "service", o.Overflow[0].Rule)
	require.Len(t, o.Events, 1)
	require.Equal(t, "first_rejection", o.Events[0].Kind)

	flow := r.flow()
	require.Equal(t, int64(2010), flow.In)
	require.Equal(t, int64(110), flow.Out)
	require.Equal(t, int64(1900), flow.Limited)
}

func TestListsSayWhatHasTheMost(t *testing.T) {
	r := newRig(t, limited)
	r.consume(exploding(0, 2000))
	i := insight.New(r.Gate)
	metrics := i.Top(inspect.TopQuery{Of: inspect.TopMetrics, N: 10, By: inspect.ByRejected})
	require.Equal(t, 110, int(metrics.Total))
	require.Len(t, metrics.Rows, 2)
	worst := metrics.Rows[0]
	require.Equal(t, []string{"requests", "sum", "delta", "1", "user"}, []string{worst.Name, worst.Type, worst.Temporality, worst.Unit, worst.WorstLabel})
	near(t, 100, worst.Series)
	near(t, 1900, worst.Rejected)

	labels := i.Top(inspect.TopQuery{Of: inspect.TopLabels, N: 1, By: inspect.ByValues})
	require.True(t, labels.More)
	require.Equal(t, "user", labels.Rows[0].Name)
	require.True(t, labels.Rows[0].IDLike)
	near(t, 2000, labels.Rows[0].Values)
	near(t, 2000, labels.Rows[0].Series)
	near(t, 2010, inspect.Estimate{Value: labels.Total})

	pairs := i.Top(inspect.TopQuery{Of: inspect.TopPairs, N: 10, Label: "service.name"})
	require.Equal(t, []string{"shop", "db"}, []string{pairs.Rows[0].Value, pairs.Rows[1].Value})
	require.Equal(t, inspect.Estimate{Value: 100}, pairs.Rows[0].Series)

	groups := i.Top(inspect.TopQuery{Of: inspect.TopGroups, N: 10, Match: "service.name"})
	require.Equal(t, "service.name=shop", groups.Rows[0].Value)
	require.Equal(t, int64(100), groups.Rows[0].Used)
	require.Positive(t, groups.Rows[0].NewPerMinute.Value)

	detail, ok := i.Metric("requests")
	require.True(t, ok)
	require.Len(t, detail.Labels, 3)
	require.NotEmpty(t, detail.Examples)
	require.NotEmpty(t, detail.Labels[0].Examples)
	_, ok = i.Metric("unknown")
	require.False(t, ok)
}

func TestALimitWithoutGroupsIsSharedByItsMetrics(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Rules = []RuleConfig{{Name: "m", Match: MatchConfig{Metric: "requests"}, MaxSeries: 150}}
	})
	r.consume(exploding(0, 100))
	i := insight.New(r.Gate)
	requests, ok := i.Metric("requests")
	require.True(t, ok)
	require.Equal(t, []int64{150, 100}, []int64{requests.Limit, requests.Used})
	size, ok := i.Metric("size")
	require.True(t, ok)
	require.Zero(t, size.Limit, "the limit of all is none of its own")
}

func TestWhatIfSaysWhatALabelCosts(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Rules = []RuleConfig{{Name: "m", GroupBy: []string{"metric"}, MaxSeries: 15_000}}
	})
	for part := range 2 {
		r.consume(exploding(part*10_000, 10_000))
	}
	i := insight.New(r.Gate)
	f := func(want float64, c inspect.Change) {
		t.Helper()
		p, err := i.WhatIf(c)
		require.NoError(t, err)
		near(t, want, p.After)
	}
	p, err := i.WhatIf(inspect.Change{Metric: "requests", Drop: []string{"user"}})
	require.NoError(t, err)
	near(t, 20_000, p.Before)
	near(t, 20, p.After)
	near(t, 20_000, p.Merged)
	f(20_000, inspect.Change{Metric: "requests", Drop: []string{"route"}})
	f(20_000, inspect.Change{Metric: "requests"})
	f(1000, inspect.Change{Metric: "requests", Max: 1000})
	f(20, inspect.Change{Metric: "requests", Keep: []string{"route"}})
	f(1, inspect.Change{Metric: "requests", Drop: []string{"route", "user"}})
	f(20_010, inspect.Change{})
	_, err = i.WhatIf(inspect.Change{Metric: "unknown"})
	require.ErrorContains(t, err, "unknown")
}

// TestStatisticsKnowWhatIsAlive has series that have been known for a long time: they pass without statistics, except
// once in a while.
func TestStatisticsKnowWhatIsAlive(t *testing.T) {
	r := newRig(t, func(*Config) {})
	alive, dead := exploding(0, 300), exploding(1000, 500)
	r.consume(dead)
	for range 4 * moment.IdleEpochs {
		r.consume(alive)
		r.epochs(1)
	}
	top := insight.New(r.Gate).Top(inspect.TopQuery{Of: inspect.TopMetrics, N: 1})
	near(t, 300, top.Rows[0].Series)
	require.Zero(t, top.Rows[0].NewPerMinute.Value)
	require.Equal(t, 310, insight.New(r.Gate).Overview().SampleSize)
}

// Series that ended a moment ago are still in the statistics, so they also count in the totals that these are parts of.
func TestNothingIsMoreThanAllOfIt(t *testing.T) {
	f := newFleet(t, func(*Config) {})
	for n := range 10 {
		clear(f.pods)
		f.begin(10*n, 10*n+10)
		f.clock = f.clock.Add(15 * time.Second)
		f.scrape()
		f.end(10*n, 10*n+10)
	}
	i := insight.New(f.Gate)
	require.Less(t, i.Series(), int64(20))
	for _, of := range []string{inspect.TopMetrics, inspect.TopLabels, inspect.TopPairs} {
		top := i.Top(inspect.TopQuery{Of: of, N: 100})
		require.NotEmpty(t, top.Rows)
		for _, row := range top.Rows {
			require.LessOrEqual(t, row.Series.Value-row.Series.Error, top.Total, "%s %s", of, row.Name)
		}
	}
}

func TestTSDBStatusReadsLikePrometheus(t *testing.T) {
	r := newRig(t, func(*Config) {})
	r.consume(exploding(0, 50))
	body, err := insight.New(r.Gate).TSDBStatus(2)
	require.NoError(t, err)
	var status struct {
		Status string                     `json:"status"`
		Data   map[string]json.RawMessage `json:"data"`
	}
	require.NoError(t, json.Unmarshal(body, &status))
	require.Equal(t, "success", status.Status)
	require.JSONEq(t, `[{"name":"requests","value":50},{"name":"size","value":10}]`, string(status.Data["seriesCountByMetricName"]))
	require.JSONEq(t, `[{"name":"service.name=shop","value":50},{"name":"service.name=db","value":10}]`, string(status.Data["seriesCountByLabelValuePair"]))
	for _, key := range []string{"headStats", "labelValueCountByLabelName", "memoryInBytesByLabelName"} {
		require.Contains(t, status.Data, key)
	}
}

func TestWithoutStatisticsOnlyCountersAreTold(t *testing.T) {
	r := newRig(t, func(c *Config) { limited(c); c.Statistics.Enabled = false })
	r.consume(exploding(0, 200))
	i := insight.New(r.Gate)
	require.Equal(t, int64(110), i.Overview().Series)
	for _, of := range []string{inspect.TopMetrics, inspect.TopLabels, inspect.TopPairs, inspect.TopGroups} {
		require.Empty(t, i.Top(inspect.TopQuery{Of: of, N: 10, Metric: "requests"}).Rows)
	}
	_, err := i.WhatIf(inspect.Change{})
	require.ErrorIs(t, err, insight.ErrNoStatistics)
}

// registering is a host with an extension that displays components.
type registering struct {
	component.Component

	shown map[component.ID]inspect.Source
}

func (r *registering) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{component.MustNewID("console"): r}
}

func (r *registering) RegisterInspection(s inspect.Source) func() {
	r.shown[s.ID] = s
	return func() { delete(r.shown, s.ID) }
}

func TestItIsShownWhileItRuns(t *testing.T) {
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(rules, []byte("rules: []"), 0o600))
	r := newRig(t, func(c *Config) { c.RulesFile = rules })
	host := &registering{shown: map[component.ID]inspect.Source{}}
	require.NoError(t, r.begin(host))
	require.Equal(t, "metrics", host.shown[r.id].Signal)
	require.NoError(t, os.WriteFile(rules, []byte("rules: nonsense"), 0o600))
	r.pollRules()
	o := host.shown[r.id].Cardinality.Overview()
	require.Contains(t, o.RulesFault, rules)
	require.Equal(t, "rules_failed", o.Events[0].Kind)
	require.NoError(t, r.shutdown(t.Context()))
	require.Empty(t, host.shown)
}

// TestRatesOfGoneSeriesAndOfPoints: series that left are counted for groups and estimated for metrics; points are
// extrapolated from some batches.
func TestRatesOfGoneSeriesAndOfPoints(t *testing.T) {
	racetest.Sequential(t)
	r := newRig(t, limited)
	r.Book = stats.NewBook(r.clock, r.Hash.Text)
	i := insight.New(r.Gate)
	all := exploding(0, 150)
	points := 0
	for range 3 * gate.WeighedOneIn * moment.IdleEpochs {
		md := pmetric.NewMetrics()
		all.CopyTo(md)
		points += md.DataPointCount()
		r.consume(md)
		r.clock = r.clock.Add(time.Second)
	}
	before := i.Top(inspect.TopQuery{Of: inspect.TopGroups, N: 10, Match: "service.name=shop"}).Rows[0]
	require.Zero(t, before.GonePerMinute.Value)
	rate := float64(points) / float64(3*gate.WeighedOneIn*moment.IdleEpochs)
	sum, deviation := 0.0, 0.0
	for _, m := range i.Top(inspect.TopQuery{Of: inspect.TopMetrics, N: 10, By: inspect.ByPoints}).Rows {
		sum, deviation = sum+m.PointsPerSecond.Value, deviation+m.PointsPerSecond.Error
	}
	require.InDelta(t, rate, sum, 3*deviation)
	require.Less(t, deviation, rate/4)

	some := exploding(0, 1)
	for range 3 * moment.IdleEpochs / 2 {
		r.epochs(1)
		r.consume(some)
	}
	after := i.Top(inspect.TopQuery{Of: inspect.TopGroups, N: 10, By: inspect.ByGone})
	require.Positive(t, after.Rows[0].GonePerMinute.Value)
	for _, m := range i.Top(inspect.TopQuery{Of: inspect.TopMetrics, N: 10}).Rows {
		require.Positive(t, m.GonePerMinute.Error)
	}
}

// Metrics that are not among the largest are included, too, as far as the sample contains them.
func TestLabelsOfSmallMetricsAreToldFromTheSample(t *testing.T) {
	r := newRig(t, func(*Config) {})
	const metrics = 40
	for m := range metrics {
		for i := range 3 + m%2 {
			r.send(point{name: "m" + strconv.Itoa(m), attrs: attrs{"route": "/", "user": strconv.Itoa(i)}})
		}
	}
	i := insight.New(r.Gate)
	rows := i.Top(inspect.TopQuery{Of: inspect.TopMetrics, N: 100}).Rows
	require.Len(t, rows, metrics)
	for _, row := range rows {
		require.Equal(t, "user", row.WorstLabel, row.Name)
	}
	rows = i.Top(inspect.TopQuery{Of: inspect.TopLabels, N: 10}).Rows
	require.Len(t, rows, 2)
	for _, row := range rows {
		require.Equal(t, metrics, row.Metrics, row.Name)
	}
}
