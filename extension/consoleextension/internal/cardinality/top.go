// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinality

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/answer"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/prose"
	"github.com/godwit-otel/godwit/internal/inorder"
	"github.com/godwit-otel/godwit/internal/inspect"
)

type topJSON struct {
	inspect.Top

	Processor string `json:"processor"`
}

// Top answers with the metrics, labels or groups that have the most, sorted by that.
func (v *View) Top(r *http.Request) (any, error) {
	s, err := v.processor(r)
	if err != nil {
		return nil, err
	}
	query := r.URL.Query()
	ask := inspect.TopQuery{Match: query.Get("match"), Metric: query.Get(wordMetric), Label: query.Get("label")}
	if ask.Of, err = answer.OneOf(r, "of", inspect.TopMetrics, inspect.TopLabels, inspect.TopPairs, inspect.TopGroups); err != nil {
		return nil, err
	}
	ask.By, err = answer.OneOf(r, "by", inspect.BySeries, inspect.ByNew, inspect.ByGone, inspect.ByPoints, inspect.ByRejected, inspect.ByValues)
	if err != nil {
		return nil, err
	}
	format, err := answer.Format(r, answer.FormatJSON, answer.FormatCSV)
	if err != nil {
		return nil, err
	}
	n := 20
	if format == answer.FormatCSV {
		n = answer.MaxRows
	}
	if ask.N, err = answer.Whole(r, "n", n, 1, answer.MaxRows); err != nil {
		return nil, err
	}
	top := s.Cardinality.Top(ask)
	if ask.Of == inspect.TopLabels {
		for i := range top.Rows {
			top.Rows[i].IDLike = top.Rows[i].IDLike && !IsIdentity(top.Rows[i].Name)
		}
	}
	if format == answer.FormatCSV {
		return table(ask.Of, top.Rows)
	}
	top.Rows = rows(top.Rows)
	return topJSON{top, s.Name()}, nil
}

func rows(all []inspect.Row) []inspect.Row {
	for i := range all {
		all[i].Examples = answer.List(all[i].Examples)
	}
	return answer.List(all)
}

func table(of string, all []inspect.Row) (*answer.File, error) {
	out := [][]string{strings.Fields("name value type temporality unit series series_error new_per_minute gone_per_minute points_per_second " +
		"rejected_series limit used worst_label values metrics id_like examples")}
	for i := range all {
		r := &all[i]
		out = append(out, []string{
			r.Name, r.Value, r.Type, r.Temporality, r.Unit, cell(r.Series), answer.Decimal(r.Series.Error), cell(r.NewPerMinute),
			cell(r.GonePerMinute), cell(r.PointsPerSecond), cell(r.Rejected), strconv.FormatInt(r.Limit, 10),
			strconv.FormatInt(r.Used, 10), r.WorstLabel, cell(r.Values), strconv.Itoa(r.Metrics), strconv.FormatBool(r.IDLike),
			strings.Join(r.Examples, " "),
		})
	}
	return answer.Table("cardinality-"+of, out)
}

// cell formats an estimate, "" if it may be nothing but an error.
func cell(e inspect.Estimate) string {
	if !e.Known() {
		return ""
	}
	return answer.Decimal(e.Value)
}

type metricJSON struct {
	inspect.MetricDetail

	Processor string `json:"processor"`
}

// Metric answers with all that is known of a metric.
func (v *View) Metric(r *http.Request) (any, error) {
	s, err := v.processor(r)
	if err != nil {
		return nil, err
	}
	name := r.URL.Query().Get("name")
	if name == "" {
		return nil, answer.BadRequest("`name` must not be empty")
	}
	detail, ok := s.Cardinality.Metric(name)
	if !ok {
		return nil, answer.NotFound("nothing is known of a metric %q: statistics are of the metrics with the most series, and of a sample of the rest", prose.Cut(name, 100))
	}
	detail.Examples, detail.Row.Examples = answer.List(detail.Examples), answer.List(detail.Row.Examples)
	for i := range detail.Examples {
		detail.Examples[i] = answer.List(detail.Examples[i])
	}
	detail.Labels = rows(detail.Labels)
	inorder.Sort(detail.Labels, func(a, b inspect.Row) int { // the label with the most values comes first
		return cmp.Or(cmp.Compare(b.Values.Value, a.Values.Value), strings.Compare(a.Name, b.Name))
	})
	return metricJSON{detail, s.Name()}, nil
}
