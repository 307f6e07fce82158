// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
)

// A Run is a sequence of points of one metric on a large page.
type Run struct {
	Metric, Points int32
	Ends           bool // the round ends with it
}

// order decides the order in which the points of a large page are handed on: the report's come last. Such a page lists
// one metric after another, each for all pods, say. A consumer of its parts would meet the texts of each pod again with
// every metric, long after they have left the CPU's caches. So points about the same pods are kept together: a round
// has, of every metric, the points about the same few pods. Points of a metric stay in their order.
func (b *Book) order(l *Layout) {
	var (
		about = make([]int32, len(l.Points)) // what each point is about, numbered by first occurrence
		known = map[string]int32{}
		sizes []int
	)
	for m := range l.Metrics {
		reports := l.Metrics[m].isReport(b.Rules)
		for i := l.Metrics[m].First; i < l.Metrics[m].First+l.Metrics[m].Points; i++ {
			if reports {
				about[i] = aboutNothing
				continue
			}
			s := b.About(l.Points[i].Line)
			at, ok := known[s]
			if !ok {
				at = int32(len(sizes))
				known[s] = at
				sizes = append(sizes, 0)
			}
			about[i] = at
			sizes[at]++
		}
	}
	round := make([]int32, len(sizes))
	last, room := int32(0), b.cfg.Round
	for i, n := range sizes {
		if n > room && room < b.cfg.Round {
			last++
			room = b.cfg.Round
		}
		round[i] = last
		room -= n
	}
	rounds := make([][]Run, last+1) // filled metric by metric; most rounds lack most metrics
	for i := range l.Metrics {
		m := &l.Metrics[i]
		if m.isReport(b.Rules) {
			continue
		}
		var (
			at  *Run
			now int32
		)
		for _, a := range about[m.First : m.First+m.Points] {
			if at == nil || round[a] > now {
				now = round[a]
				rounds[now] = append(rounds[now], Run{Metric: int32(i)})
				at = &rounds[now][len(rounds[now])-1]
			}
			at.Points++
		}
	}
	for _, runs := range rounds[:last] {
		if n := len(runs); n > 0 {
			runs[n-1].Ends = true
		}
	}
	l.Runs = slices.Clip(l.reported(b.Rules, slices.Concat(rounds...)))
}

// aboutNothing is what the report's points are about.
const aboutNothing = -1

// InTurn returns the order of the page, with the report last.
func (l *Layout) InTurn(r *catalog.Rules) []Run {
	runs := make([]Run, 0, len(l.Metrics))
	for i := range l.Metrics {
		if m := &l.Metrics[i]; !m.isReport(r) {
			runs = append(runs, Run{Metric: int32(i), Points: m.Points})
		}
	}
	return l.reported(r, runs)
}

func (l *Layout) reported(r *catalog.Rules, runs []Run) []Run {
	for i := range l.Metrics {
		if m := &l.Metrics[i]; m.isReport(r) {
			runs = append(runs, Run{Metric: int32(i), Points: m.Points})
		}
	}
	return runs
}

// isReport reports whether a metric is one of the report.
func (m *PlacedMetric) isReport(r *catalog.Rules) bool {
	return slices.Contains(r.Report, m.Family.Base.Name)
}
