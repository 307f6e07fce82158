// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"fmt"
	"math"
	rand "math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/insight"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
)

// crowd is a world with more names of metrics and of labels than statistics list, so that names replace each other.
type crowd struct {
	*rig

	t      *testing.T
	seed   uint64
	random *rand.Rand
	names  []*crowdMetric
	epoch  int

	checked, far int
}

// crowdMetric is one name, with the exact counts of its series.
type crowdMetric struct {
	name   string
	label  string // of its own, which several have
	spread int    // distinct values of user
	all    []point
	born   int            // number of series so far
	ended  bool           // some of its series
	placed map[string]int // the epoch in which each series found its place, and one
	points []int          // by epoch
}

// Numbers of metrics and labels are no worse than they say although others had replaced them in the list meanwhile, and
// metrics with rejected series stay in the list.
func TestManyNamesAreShownNoWorseThanTheySay(t *testing.T) {
	racetest.Sequential(t)
	checked, far := 0, 0
	for seed := range seeds(t, 3) {
		w := crowdOf(t, seed)
		for range 3 {
			w.pass(1 + w.random.IntN(9))
			w.look()
		}
		checked, far = checked+w.checked, far+w.far
	}
	require.Greater(t, checked, 2000)
	require.Less(t, far, checked/100, "of %d estimates, so many are three errors and more from the truth", checked)
}

func crowdOf(t *testing.T, seed uint64) *crowd {
	w := &crowd{t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 67))}
	limit := []int{0, 30, 300}[w.random.IntN(3)]
	w.rig = newRig(t, func(c *Config) {
		c.Rules = []RuleConfig{{Name: "some", Match: MatchConfig{Metric: "*7"}, GroupBy: []string{"metric"}, MaxSeries: limit}}
	})
	largest := 50 + w.random.IntN(700)
	for i := range 170 + w.random.IntN(200) {
		m := &crowdMetric{
			name: fmt.Sprint("m", i), label: fmt.Sprint("l", w.random.IntN(90)), placed: map[string]int{},
			spread: 1 + w.random.IntN(40),
		}
		w.names = append(w.names, m)
		w.grow(m, 1+w.random.IntN(1+largest/(1+i/8)))
	}
	w.send1()
	return w
}

// grow adds series to a metric.
func (w *crowd) grow(m *crowdMetric, n int) {
	for range n {
		m.all = append(m.all, point{name: m.name, attrs: attrs{m.label: int64(m.born / m.spread), "user": int64(m.born % m.spread)}})
		m.born++
	}
}

// send1 sends a point of each series, in random order.
func (w *crowd) send1() {
	var all []point
	of := map[string]*crowdMetric{}
	for _, m := range w.names {
		all = append(all, m.all...)
		of[m.name] = m
		m.points = append(m.points, len(m.all))
	}
	w.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for len(all) > 0 {
		n := min(len(all), 1000)
		metric := map[string]*crowdMetric{}
		for i := range all[:n] {
			metric[all[i].identity()] = of[all[i].name]
		}
		for _, id := range w.send(all[:n]...) {
			if m := metric[id]; m.placed[id] == 0 {
				m.placed[id] = 1 + w.epoch
			}
		}
		all = all[n:]
	}
}

// pass lets epochs pass, in which some metrics grow, and few shrink.
func (w *crowd) pass(epochs int) {
	for range epochs {
		w.epochs(1)
		w.epoch++
		for range w.random.IntN(4) {
			m := w.names[w.random.IntN(len(w.names))]
			if w.grow(m, w.random.IntN(20)); w.random.IntN(6) == 0 {
				m.all, m.ended = m.all[len(m.all)/2:], true
			}
		}
		w.send1()
	}
}

func (w *crowd) look() {
	i := insight.New(w.Gate)
	since := w.Book.Snapshot(1).Since
	minutes := max(w.Now().Sub(since).Minutes(), 1.0/60)
	first := max(0, (w.epoch/moment.IdleEpochs-1)*moment.IdleEpochs) // epoch of since
	rows := map[string]inspect.Row{}
	for _, row := range i.Top(inspect.TopQuery{Of: inspect.TopMetrics, N: 1000}).Rows {
		rows[row.Name] = row
	}
	carrying, values := map[string]int{}, map[string]map[any]bool{}
	gone := map[string]bool{}
	for _, m := range w.names {
		gone[m.label] = gone[m.label] || m.ended
		for _, p := range m.all {
			carrying[m.label]++
			if values[m.label] == nil {
				values[m.label] = map[any]bool{}
			}
			values[m.label][p.attrs[m.label]] = true
		}
		row, listed := rows[m.name]
		if len(m.all) > len(m.placed) {
			require.True(w.t, listed, "seed %d: %s has rejected series", w.seed, m.name)
		}
		if !listed || m.ended {
			continue
		}
		births, points := 0, 0
		for _, at := range m.placed {
			if at > first {
				births++
			}
		}
		for _, n := range m.points[first:] {
			points += n
		}
		w.check(m.name+" series", float64(len(m.placed)), row.Series)
		w.check(m.name+" rejected", float64(len(m.all)-len(m.placed)), row.Rejected)
		w.check(m.name+" new", float64(births), times(row.NewPerMinute, minutes))
		if row.PointsPerSecond.Value > 0 && minutes > 5 {
			w.check(m.name+" points", float64(points), times(row.PointsPerSecond, 60*minutes))
		}
		if w.random.IntN(8) == 0 { // it takes a while
			w.lookInto(i, m)
		}
	}
	for _, row := range i.Top(inspect.TopQuery{Of: inspect.TopLabels, N: 1000}).Rows {
		if row.Name != "user" && !gone[row.Name] {
			w.check("series with "+row.Name, float64(carrying[row.Name]), row.Series)
			w.check("values of "+row.Name, float64(len(values[row.Name])), row.Values)
		}
	}
}

func (w *crowd) lookInto(i inspect.Cardinality, m *crowdMetric) {
	detail, ok := i.Metric(m.name)
	require.True(w.t, ok)
	all, without := map[string]map[any]bool{m.label: {}, "user": {}}, map[string]map[any]bool{m.label: {}, "user": {}}
	for _, p := range m.all {
		for name, other := range map[string]string{m.label: "user", "user": m.label} {
			all[name][p.attrs[name]], without[name][p.attrs[other]] = true, true
		}
	}
	for _, l := range detail.Labels {
		if len(m.all) == len(m.placed) { // those of smaller metrics are of series with a place
			w.check(m.name+" values of "+l.Name, float64(len(all[l.Name])), l.Values)
		}
	}
	for name := range all {
		p, err := i.WhatIf(inspect.Change{Metric: m.name, Drop: []string{name}})
		require.NoError(w.t, err)
		w.check(m.name+" without "+name, float64(len(without[name])), p.After)
	}
}

func times(e inspect.Estimate, n float64) inspect.Estimate {
	return inspect.Estimate{Value: e.Value * n, Error: e.Error * n}
}

func (w *crowd) check(what string, want float64, got inspect.Estimate) {
	w.t.Helper()
	w.checked++
	if math.Abs(want-got.Value) > 3*max(got.Error, 2) {
		w.far++
		w.t.Logf("seed %d, epoch %d: %s is %v, and said to be %v", w.seed, w.epoch, what, want, got)
	}
}
