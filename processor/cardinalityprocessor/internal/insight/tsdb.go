// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"encoding/json"
	"slices"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/stats"
)

// tsdbStatus is what Prometheus answers to status/tsdb, so that what reads that can read this.
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
	Chunks     int64 `json:"chunkCount"` // there are none here
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
		Head:    tsdbHead{Series: i.Series(), Min: s.Since.UnixMilli(), Max: i.g.Now().UnixMilli()},
		Metrics: counts(limit, s.Metrics, func(m stats.Metric) (string, float64) { return m.Name, m.Series }),
		LabelValues: counts(limit, s.Labels, func(l stats.LabelCount) (string, float64) {
			return l.Name, l.Values
		}),
		LabelMemory: counts(limit, s.Labels, func(l stats.LabelCount) (string, float64) {
			return l.Name, l.ValueBytes
		}),
		SeriesByPair: counts(limit, s.Pairs, func(p stats.Pair) (string, float64) { return p.Key + "=" + p.Value, p.Series }),
	}}
	for _, l := range s.Labels {
		status.Data.Head.LabelPairs += int64(l.Values + 0.5)
	}
	return json.Marshal(status)
}

// counts are the greatest first.
func counts[T any](limit int, of []T, by func(T) (string, float64)) []tsdbCount {
	all := make([]tsdbCount, 0, len(of))
	for _, x := range of {
		name, n := by(x)
		all = append(all, tsdbCount{Name: name, Value: int64(n + 0.5)})
	}
	slices.SortStableFunc(all, func(a, b tsdbCount) int { return int(b.Value - a.Value) })
	return all[:min(limit, len(all))]
}
