// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinality

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/consoletest"
	"github.com/godwit-otel/godwit/internal/inspect"
)

// world is a processor that knows all of its series.
type world struct {
	consoletest.Cardinality

	kinds  map[string]string // by metric
	error  float64           // of the remaining series
	series []worldSeries
}

type worldSeries struct {
	metric string
	labels map[string]string
}

func (w *world) add(kind, metric string, labels ...string) {
	if w.kinds == nil {
		w.kinds = map[string]string{}
	}
	w.kinds[metric] = kind
	s := worldSeries{metric, map[string]string{}}
	for i := 0; i < len(labels); i += 2 {
		s.labels[labels[i]] = labels[i+1]
	}
	w.series = append(w.series, s)
}

func (w *world) without(metric string, drop []string) (n float64) {
	seen := map[string]bool{}
	for _, s := range w.series {
		if s.metric == metric {
			left := maps.Clone(s.labels)
			maps.DeleteFunc(left, func(name, _ string) bool { return slices.Contains(drop, name) })
			seen[fmt.Sprint(left)] = true
		}
	}
	return float64(len(seen))
}

func (w *world) Overview() inspect.CardinalityOverview {
	o := w.Now
	o.Series = int64(len(w.series))
	return o
}

func (w *world) Top(inspect.TopQuery) (top inspect.Top) {
	for _, metric := range slices.Sorted(maps.Keys(w.kinds)) {
		top.Rows = append(top.Rows, inspect.Row{Name: metric, Type: w.kinds[metric], Series: inspect.Estimate{Value: w.without(metric, nil)}})
	}
	return top
}

func (w *world) Metric(name string) (detail inspect.MetricDetail, ok bool) {
	values := map[string]map[string]bool{}
	for _, s := range w.series {
		for label, value := range s.labels {
			if s.metric != name {
				break
			}
			ok = true
			if values[label] == nil {
				values[label] = map[string]bool{}
			}
			values[label][value] = true
		}
	}
	for _, label := range slices.Sorted(maps.Keys(values)) {
		detail.Labels = append(detail.Labels, inspect.Row{Name: label, Values: inspect.Estimate{Value: float64(len(values[label]))}})
	}
	return detail, ok
}

func (w *world) WhatIf(change inspect.Change) (inspect.Projection, error) {
	if w.kinds[change.Metric] == "" {
		return inspect.Projection{}, errors.New("unseen")
	}
	return inspect.Projection{
		Before: inspect.Estimate{Value: w.without(change.Metric, nil)}, After: inspect.Estimate{Value: w.without(change.Metric, change.Drop), Error: w.error},
	}, nil
}

// explosions returns one of each kind.
func explosions() *world {
	w := &world{}
	for i := range 1000 {
		n := fmt.Sprint(i)
		w.add("sum", "requests", "job", "web", "path", "/"+n, "code", "200")
		w.add("sum", "errors", "job", "web", "path", "/"+n, "code", "500")
		w.add("gauge", "temperature", "job", "web", "sensor", n)
		w.add("gauge", "pods", "instance", "node", "uid", "u"+n, "pod", "p"+n)                                 // save only together
		w.add("sum", "targets", "job", "web", "instance", "host"+n)                                            // identifies targets
		w.add("summary", "quantiles", "job", "web", "path", "/"+n)                                             // cannot be added
		w.add("gauge", "build_info", "version", n)                                                             // for joins
		w.add("sum", "few", "job", "web", "instance", "host"+n, "method", []string{"GET", "PUT"}[i%2])         // few values
		w.add("sum", "tenanted", "customer", n)                                                                // tenants, to which limits apply
		w.add("sum", "cut", "a label with a name that was longer than what is kept of any of them at all…", n) // its name is unknown
	}
	w.Now.TenantLabels = []string{"customer"}
	w.Now.Limits = []inspect.Limit{{Rule: "without_path"}}
	return w
}

func TestRulesThatSaveMostAreRecommended(t *testing.T) {
	s, w := open(t), explosions()
	s.processor("cardinality", w)
	got := consoletest.Get[recommendationsJSON](t, s.view.Recommend, "?n=20")
	type rule struct{ Name, Metrics, Labels string }
	var rules []rule
	for _, r := range got.Rules {
		rules = append(rules, rule{r.Name, strings.Join(r.Metrics, " "), strings.Join(r.Labels, " ")})
	}
	require.ElementsMatch(t, []rule{
		{"without_path_2", "errors requests", "path"}, // the name is taken
		{"without_sensor", "temperature", "sensor"},
		{"without_pod_uid", "pods", "pod uid"},
	}, rules)
	require.Equal(t, "without_path_2", got.Rules[0].Name, "what saves most is first")
	require.Equal(t, inspect.Estimate{Value: 2000}, got.Rules[0].Before)
	require.Equal(t, inspect.Estimate{Value: 2}, got.Rules[0].After)
	require.InDelta(t, 6004, got.After.Value, 0)
	require.InDelta(t, 0.4, got.Ratio, 0.001)

	first := consoletest.Get[recommendationsJSON](t, s.view.Recommend, "?n=1")
	require.Len(t, first.Rules, 1)
	require.InDelta(t, 0.2, first.Ratio, 0.001)
	status, _, message := consoletest.Fault(t, s.view.Recommend, "?n=0", "")
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, message, "`n`")
}

// The savings are known, with their error, when the remaining series are too few for an estimate.
func TestWhatIsSavedSaysHowFarItMayBeOff(t *testing.T) {
	s, w := open(t), &world{error: 15}
	for i := range 1000 {
		w.add("sum", "requests", "path", fmt.Sprint(i))
	}
	w.add("sum", "uptime")
	s.processor("cardinality", w)
	got := consoletest.Get[recommendationsJSON](t, s.view.Recommend, "")
	require.Len(t, got.Rules, 1)
	require.Equal(t, inspect.Estimate{Value: 999, Error: 15}, got.Saved)
	require.Equal(t, got.Saved, got.Rules[0].Saved)
	require.InDelta(t, 999.0/1001, got.Ratio, 1e-9)
	require.InDelta(t, 15.0/1001, got.RatioError, 1e-9)
	require.Contains(t, got.YAML, "This rule saves about 100 % ± 1 % of the 1k series")
	require.Contains(t, got.YAML, "requests by path: about 999 ± 15 fewer of 1k series")
}

// Copied rules explain themselves in comments, whatever the names of metrics and labels are.
func TestRecommendationsArePasted(t *testing.T) {
	s, w := open(t), &world{}
	for i := range 500 {
		w.add("gauge", "a\n- name: evil*", "x\ny", fmt.Sprint(i))
		w.add("sum", "b.c", "path", fmt.Sprint(i))
		w.add("sum", "b_c", "path", fmt.Sprint(i))
	}
	w.Now.Mode = "dry_run"
	w.Now.IdleTimeout = 20 * time.Second
	s.processor("cardinality", w)
	text := consoletest.Get[recommendationsJSON](t, s.view.Recommend, "").YAML
	var pasted struct {
		Rules []struct {
			Name      string
			Match     struct{ Metric string }
			Aggregate struct {
				Without  []string
				Interval string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(text), &pasted), text)
	require.Contains(t, text, "rules:\n  - name: ", "indented as in all examples, below whose rules it may be pasted")
	require.Len(t, pasted.Rules, 2)
	require.Equal(t, `regex:b\.c|b_c`, pasted.Rules[0].Match.Metric)
	require.Equal(t, "20s", pasted.Rules[0].Aggregate.Interval, "the default is longer than idle_timeout")
	require.Equal(t, "regex:a\n- name: evil\\*", pasted.Rules[1].Match.Metric)
	require.Equal(t, []string{"x\ny"}, pasted.Rules[1].Aggregate.Without)
	for _, want := range []string{"These 2 rules save about 100 % of the 1.5k series", "b.c, b_c by path: about 998 fewer of 1k series", "Gauges become sums", "dry run"} {
		require.Contains(t, text, want)
	}
}

func TestNothingToRecommend(t *testing.T) {
	s, w := open(t), &world{}
	w.add("sum", "m", "job", "web")
	s.processor("cardinality", w)
	got := consoletest.Get[recommendationsJSON](t, s.view.Recommend, "")
	require.NotNil(t, got.Rules)
	require.Empty(t, got.Rules)
	require.Contains(t, got.YAML, "# No rule")
}
