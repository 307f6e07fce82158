// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"encoding/json"
	"fmt"
	rand "math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/insight"
)

// world is the exact count of what was sent.
type world struct {
	series map[string]map[string][]string // by metric and series, the values of its labels a, b and c: "" is none
	placed map[string]int                 // by metric
}

// For any input, what is displayed is as precise as it says, no number is displayed that may be entirely error, and
// parts do not exceed the whole.
func TestWhatIsShownIsNoWorseThanItSays(t *testing.T) {
	racetest.Sequential(t)
	checked, far := 0, 0
	for seed := range seeds(t, 25) {
		n, wrong := showing(t, seed)
		checked, far = checked+n, far+wrong
	}
	require.Greater(t, checked, 500)
	require.Less(t, far, checked/100, "of %d estimates, so many are three errors and more from the truth", checked)
}

func showing(t *testing.T, seed uint64) (checked, far int) {
	random := rand.New(rand.NewPCG(seed, 31))
	r := newRig(t, func(c *Config) {
		c.Defaults.MaxSeriesPerMetric = 200 + random.IntN(6000)
		c.Memory.MaxSeries = 20_000
	})
	w := world{series: map[string]map[string][]string{}, placed: map[string]int{}}
	metrics := 1 + random.IntN(30)
	for m := range metrics {
		name, n := fmt.Sprint("m", m), 1+random.IntN(1+random.IntN(8000)/(1+m))
		w.series[name] = map[string][]string{}
		spread, lacking := 1+random.IntN(n), random.IntN(3)*random.IntN(60)
		var all []point
		for i := range n {
			values := []string{fmt.Sprint(i), fmt.Sprint(i % spread), fmt.Sprint(i % 7)}
			if random.IntN(100) < lacking {
				values[0] = ""
			}
			if random.IntN(100) < lacking {
				values[2] = ""
			}
			a := attrs{}
			for j, v := range values {
				if v != "" {
					a[string(rune('a'+j))] = v
				}
			}
			if w.series[name][fmt.Sprint(values)] != nil {
				continue
			}
			w.series[name][fmt.Sprint(values)] = values
			all = append(all, point{name: name, attrs: a})
		}
		w.placed[name] = len(r.send(all...))
	}
	i := insight.New(r.Gate)
	check := func(what string, want float64, got inspect.Estimate) {
		t.Helper()
		checked++
		if d := want - got.Value; d > 3*max(got.Error, 2) || d < -3*max(got.Error, 2) {
			far++
			t.Logf("seed %d: %s is %v, and said to be %v", seed, what, want, got)
		}
		text, err := json.Marshal(got)
		require.NoError(t, err)
		var shown struct {
			Value float64 `json:"value"`
			Error float64 `json:"error"`
		}
		require.NoError(t, json.Unmarshal(text, &shown))
		require.LessOrEqual(t, shown.Error, shown.Value, "%s: %s", what, text)
	}
	top := i.Top(inspect.TopQuery{Of: inspect.TopMetrics, N: 1000})
	sum := 0.0
	for _, row := range top.Rows {
		sum += row.Series.Value
		placed := w.placed[row.Name]
		check(row.Name+" series", float64(placed), row.Series)
		check(row.Name+" rejected", float64(len(w.series[row.Name])-placed), row.Rejected)
		detail, ok := i.Metric(row.Name)
		require.True(t, ok)
		for _, l := range detail.Labels {
			require.LessOrEqual(t, l.Series.Value, top.Total+i.Overview().Rejected.Value+3*row.Rejected.Error+3*l.Series.Error)
		}
		if len(w.series[row.Name]) > w.placed[row.Name] {
			for _, drop := range []string{"a", "b", "c", "ab", "ac", "bc", "abc"} {
				p, err := i.WhatIf(inspect.Change{Metric: row.Name, Drop: strings.Split(drop, "")})
				require.NoError(t, err)
				check(row.Name+" without "+drop, float64(w.without(row.Name, drop)), p.After)
				merged, err := json.Marshal(p.Merged)
				require.NoError(t, err)
				require.NotContains(t, string(merged), "-")
			}
		}
	}
	require.LessOrEqual(t, sum, top.Total, "seed %d", seed)
	for _, of := range []string{inspect.TopLabels, inspect.TopPairs, inspect.TopGroups} {
		top := i.Top(inspect.TopQuery{Of: of, N: 1000})
		for _, row := range top.Rows {
			require.LessOrEqual(t, row.Series.Value, top.Total, "seed %d: %s", seed, of)
		}
	}
	w.status(t, i)
	return checked, far
}

// status checks the response of Prometheus' API: it has no errors, so each number must be known.
func (w *world) status(t *testing.T, i interface {
	TSDBStatus(limit int) ([]byte, error)
},
) {
	type row struct {
		Name  string  `json:"name"`
		Value float64 `json:"value"`
	}
	body, err := i.TSDBStatus(1000)
	require.NoError(t, err)
	var status struct {
		Data struct {
			Head struct {
				Series float64 `json:"numSeries"`
			} `json:"headStats"`
			Metrics []row `json:"seriesCountByMetricName"`
			Pairs   []row `json:"seriesCountByLabelValuePair"`
		} `json:"data"`
	}
	require.NoError(t, json.Unmarshal(body, &status))
	sum := 0.0
	for _, m := range status.Data.Metrics {
		sum += m.Value
	}
	require.LessOrEqual(t, sum, status.Data.Head.Series)
	total := 0
	for _, n := range w.placed {
		total += n
	}
	if total > 2048 {
		for _, p := range status.Data.Pairs {
			require.Greater(t, p.Value, float64(total)/2048, "one series of a sample says nothing: %s", p.Name)
		}
	}
}

// without returns how many series a metric would have without some labels.
func (w *world) without(metric, labels string) int {
	left := map[string]bool{}
	for _, values := range w.series[metric] {
		rest := append([]string{}, values...)
		for _, label := range labels {
			rest[label-'a'] = ""
		}
		left[fmt.Sprint(rest)] = true
	}
	return len(left)
}
