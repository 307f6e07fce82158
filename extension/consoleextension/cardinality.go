// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v2"

	"github.com/godwit-otel/godwit/internal/inorder"
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

	topJSON struct {
		inspect.Top

		Processor string `json:"processor"`
	}

	metricJSON struct {
		inspect.MetricDetail

		Processor string `json:"processor"`
	}

	whatIfJSON struct {
		inspect.Projection

		Processor string `json:"processor"`
		Rule      string `json:"rule"`
	}
)

func (c *console) cardinality(*http.Request) (any, error) {
	out := []cardinalityJSON{}
	at, now := c.now(), map[*source]inspect.CardinalityOverview{}
	for _, s := range c.all() {
		if s.Cardinality != nil {
			now[s] = s.Cardinality.Overview()
		}
	}
	before, age := c.overviews.since(at, churnOf(now))
	for _, s := range c.all() {
		o, ok := now[s]
		if !ok {
			continue
		}
		one := cardinalityJSON{Processor: s.name(), CardinalityOverview: o, SampleSince: moment(o.SampleSince), Limits: []limitJSON{}}
		one.Rejects, one.Overflow, one.Events = some(o.Rejects), some(o.Overflow), some(o.Events)
		for i := range one.Rejects {
			one.Rejects[i].Labels = some(one.Rejects[i].Labels)
		}
		for i := range one.Overflow {
			one.Overflow[i].Labels = some(one.Overflow[i].Labels)
		}
		for _, l := range o.Limits {
			l.Fullest = some(l.Fullest)
			for i := range l.Fullest {
				l.Fullest[i].Group = some(l.Fullest[i].Group)
			}
			one.Limits = append(one.Limits, limitJSON{Limit: l, Last: moment(l.Last)})
		}
		if a, known := before[s]; known {
			one.Over = number(age.Seconds())
			one.New = number(max(0, float64(o.Admitted-a.admitted)) / age.Minutes())
			one.Gone = number(max(0, float64(o.Expired-a.expired)) / age.Minutes())
		}
		out = append(out, one)
	}
	return map[string]any{"processors": out}, nil
}

// churn is how many series a processor ever let in, and how many of them have gone.
type churn struct{ admitted, expired int64 }

func churnOf(all map[*source]inspect.CardinalityOverview) map[*source]churn {
	out := make(map[*source]churn, len(all))
	for s, o := range all {
		out[s] = churn{o.Admitted, o.Expired}
	}
	return out
}

// some is the list, never nil.
func some[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// processor returns the one that is asked about.
func (c *console) processor(r *http.Request) (*source, error) {
	asked := r.URL.Query().Get(wordProcessor)
	for _, s := range c.all() {
		if s.Cardinality != nil && (asked == "" || asked == s.name()) {
			return s, nil
		}
	}
	if asked == "" {
		return nil, notFound("there is no cardinality processor in the pipelines")
	}
	return nil, notFound("there is no cardinality processor %q", cut(asked, 100))
}

func (c *console) top(r *http.Request) (any, error) {
	s, err := c.processor(r)
	if err != nil {
		return nil, err
	}
	query := r.URL.Query()
	ask := inspect.TopQuery{Match: query.Get("match"), Metric: query.Get(wordMetric), Label: query.Get("label")}
	if ask.Of, err = oneOf(r, "of", inspect.TopMetrics, inspect.TopLabels, inspect.TopPairs, inspect.TopGroups); err != nil {
		return nil, err
	}
	ask.By, err = oneOf(r, "by", inspect.BySeries, inspect.ByNew, inspect.ByGone, inspect.ByPoints, inspect.ByRejected, inspect.ByValues)
	if err != nil {
		return nil, err
	}
	format, err := oneOf(r, "format", formatJSON, formatCSV)
	if err != nil {
		return nil, err
	}
	n := 20
	if format == formatCSV {
		n = maxPage
	}
	if ask.N, err = whole(r, "n", n, 1, maxPage); err != nil {
		return nil, err
	}
	top := s.Cardinality.Top(ask)
	if ask.Of == inspect.TopLabels {
		for i := range top.Rows {
			top.Rows[i].IDLike = top.Rows[i].IDLike && !isIdentity(top.Rows[i].Name)
		}
	}
	if format == formatCSV {
		return rowTable(ask.Of, top.Rows)
	}
	top.Rows = rows(top.Rows)
	return topJSON{top, s.name()}, nil
}

func rows(all []inspect.Row) []inspect.Row {
	for i := range all {
		all[i].Examples = some(all[i].Examples)
	}
	return some(all)
}

func rowTable(of string, all []inspect.Row) (*file, error) {
	out := [][]string{strings.Fields("name value type temporality unit series series_error new_per_minute gone_per_minute points_per_second " +
		"rejected_series limit used worst_label values metrics id_like examples")}
	for i := range all {
		r := &all[i]
		out = append(out, []string{
			r.Name, r.Value, r.Type, r.Temporality, r.Unit, known(r.Series), decimal(r.Series.Error), known(r.NewPerMinute),
			known(r.GonePerMinute), known(r.PointsPerSecond), known(r.Rejected), strconv.FormatInt(r.Limit, 10),
			strconv.FormatInt(r.Used, 10), r.WorstLabel, known(r.Values), strconv.Itoa(r.Metrics), strconv.FormatBool(r.IDLike),
			strings.Join(r.Examples, " "),
		})
	}
	return table("cardinality-"+of, out)
}

// known is a number, and nothing if all of it may be an error.
func known(e inspect.Estimate) string {
	if !e.Known() {
		return ""
	}
	return decimal(e.Value)
}

func (c *console) metric(r *http.Request) (any, error) {
	s, err := c.processor(r)
	if err != nil {
		return nil, err
	}
	name := r.URL.Query().Get("name")
	if name == "" {
		return nil, badRequest("`name` must not be empty")
	}
	detail, ok := s.Cardinality.Metric(name)
	if !ok {
		return nil, notFound("nothing is known of a metric %q: statistics are of the metrics with the most series, and of a sample of the rest", cut(name, 100))
	}
	detail.Examples, detail.Row.Examples = some(detail.Examples), some(detail.Row.Examples)
	for i := range detail.Examples {
		detail.Examples[i] = some(detail.Examples[i])
	}
	detail.Labels = rows(detail.Labels)
	inorder.Sort(detail.Labels, func(a, b inspect.Row) int { // what explodes comes first
		return cmp.Or(cmp.Compare(b.Values.Value, a.Values.Value), strings.Compare(a.Name, b.Name))
	})
	return metricJSON{detail, s.name()}, nil
}

func (c *console) whatIf(r *http.Request) (any, error) {
	s, err := c.processor(r)
	if err != nil {
		return nil, err
	}
	query := r.URL.Query()
	change := inspect.Change{Metric: query.Get(wordMetric), Drop: query["drop"], Keep: query["keep"]}
	if len(change.Drop)+len(change.Keep) > maxLabels {
		return nil, badRequest("`drop` and `keep` must not be more than %d", maxLabels)
	}
	limit, err := whole(r, "max", 0, 0, 1<<31-1)
	if err != nil {
		return nil, err
	}
	change.Max = int64(limit)
	if len(change.Drop)+len(change.Keep) == 0 && change.Max == 0 {
		return nil, badRequest("there is nothing to change: give `drop`, `keep` or `max`")
	}
	projection, err := s.Cardinality.WhatIf(change)
	if err != nil {
		return nil, badRequest("%v", err)
	}
	rule, err := ruleFor(change)
	if err != nil {
		return nil, err
	}
	return whatIfJSON{projection, s.name(), rule}, nil
}

// ruleFor is a change as rules of the processor; empty if it has none that do it. For dropping a label that is to let it
// have no values of its own.
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

// A statusTeller answers as Prometheus' status/tsdb does, in JSON.
type statusTeller interface {
	TSDBStatus(limit int) ([]byte, error)
}

// tsdb answers as Prometheus does: all of it is of one moment, and worked out once.
func (c *console) tsdb(r *http.Request) (any, error) {
	s, err := c.processor(r)
	if err != nil {
		return nil, err
	}
	n, err := whole(r, "topN", 10, 1, maxPage)
	if err != nil {
		return nil, err
	}
	if n, err = whole(r, "limit", n, 1, maxPage); err != nil {
		return nil, err
	}
	teller, ok := s.Cardinality.(statusTeller)
	if !ok {
		return nil, notFound("%s does not answer as Prometheus does", s.name())
	}
	data, err := teller.TSDBStatus(n)
	if err != nil {
		return nil, err
	}
	return encoded(data), nil
}
