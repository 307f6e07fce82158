// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"cmp"
	"encoding/json"

	"github.com/godwit-otel/godwit/internal/inorder"
	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/stats"
)

// tsdbStatus is Prometheus' answer to status/tsdb, for clients of that.
type tsdbStatus struct {
	Status string   `json:"status"`
	Data   tsdbData `json:"data"`
}

type tsdbData struct {
	Head         tsdbHead    `json:"headStats"`
	Metrics      []tsdbCount `json:"seriesCountByMetricName"`
	LabelValues  []tsdbCount `json:"labelValueCountByLabelName"`
	LabelMemory  []tsdbCount `json:"memoryInBytesByLabelName"`
	SeriesByPair []tsdbCount `json:"seriesCountByLabelValuePair"`
}

type tsdbHead struct {
	Series     int64 `json:"numSeries"`
	LabelPairs int64 `json:"numLabelPairs"`
	Chunks     int64 `json:"chunkCount"` // always 0
	Min        int64 `json:"minTime"`    // milliseconds
	Max        int64 `json:"maxTime"`
}

type tsdbCount struct {
	Name  string `json:"name"`
	Value int64  `json:"value"`
}

// TSDBStatus returns the JSON of Prometheus' status/tsdb, with at most limit rows in each list.
func (i inspection) TSDBStatus(limit int) ([]byte, error) {
	s := i.snapshot()
	limit = min(max(limit, 1), maxShown)
	status := tsdbStatus{Status: "success", Data: tsdbData{
		Head: tsdbHead{Series: int64(i.total(&s) + 0.5), Min: s.Since.UnixMilli(), Max: i.g.Now().UnixMilli()},
		Metrics: counts(limit, s.Metrics, func(m stats.Metric) (string, inspect.Estimate) {
			return m.Name, give(m.Series, m.SeriesError)
		}),
		LabelValues: counts(limit, s.Labels, func(l stats.LabelCount) (string, inspect.Estimate) {
			return l.Name, give(l.Values, l.Values*l.Error+l.Missing)
		}),
		LabelMemory: counts(limit, s.Labels, func(l stats.LabelCount) (string, inspect.Estimate) {
			return l.Name, give(l.ValueBytes, l.ValueBytes*(l.Error+l.Missing/max(l.Values, 1)))
		}),
		SeriesByPair: counts(limit, s.Pairs, func(p stats.Pair) (string, inspect.Estimate) {
			return p.Key + "=" + p.Value, sampled(p.Series, s.Factor)
		}),
	}}
	for _, l := range s.Labels {
		status.Data.Head.LabelPairs += int64(l.Values + 0.5)
	}
	return json.Marshal(status)
}

// counts lists the largest first. The format cannot express errors, so unknown numbers are left out.
func counts[T any](limit int, of []T, by func(T) (string, inspect.Estimate)) []tsdbCount {
	all := make([]tsdbCount, 0, len(of))
	for _, x := range of {
		if name, n := by(x); n.Known() {
			all = append(all, tsdbCount{Name: name, Value: int64(n.Value + 0.5)})
		}
	}
	inorder.Sort(all, func(a, b tsdbCount) int { return cmp.Compare(b.Value, a.Value) })
	return all[:min(limit, len(all))]
}
