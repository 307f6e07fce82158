// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"slices"
	"strings"
)

// A run is points of a metric that follow each other on a large page.
type run struct {
	metric, points int32
	ends           bool // and with it the round
}

// order decides in which order the points of a large page are handed on: the report's last. Such a page says one thing
// after the other about all pods, say. Who takes its parts would meet the texts of each pod again with every metric, long
// after they were last seen. So what is said of a pod goes together: a round has, of every metric, the points about the same
// few of them. Points of a metric stay in their order.
func (c *cohort) order(l *layout) {
	var (
		about = make([]int32, len(l.points)) // numbers, as they come first
		known = map[string]int32{}
		sizes []int
	)
	for m := range l.metrics {
		reports := c.reports(&l.metrics[m])
		for i := l.metrics[m].first; i < l.metrics[m].first+l.metrics[m].points; i++ {
			if reports {
				about[i] = aboutNothing
				continue
			}
			s := c.about(l.points[i].line)
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
	last, room := int32(0), c.job.round
	for i, n := range sizes {
		if n > room && room < c.job.round {
			last++
			room = c.job.round
		}
		round[i] = last
		room -= n
	}
	rounds := make([][]run, last+1) // filled metric by metric: most of many metrics have nothing to say in most of many rounds
	for i := range l.metrics {
		m := &l.metrics[i]
		if c.reports(m) {
			continue
		}
		var (
			at  *run
			now int32
		)
		for _, a := range about[m.first : m.first+m.points] {
			if at == nil || round[a] > now {
				now = round[a]
				rounds[now] = append(rounds[now], run{metric: int32(i)})
				at = &rounds[now][len(rounds[now])-1]
			}
			at.points++
		}
	}
	for _, runs := range rounds[:last] {
		if n := len(runs); n > 0 {
			runs[n-1].ends = true
		}
	}
	l.runs, l.about = slices.Clip(c.reported(l, slices.Concat(rounds...))), about
}

// aboutNothing is what the report's points are about.
const aboutNothing = -1

// inTurn is the order of the page, but for the report.
func (c *cohort) inTurn(l *layout) []run {
	runs := make([]run, 0, len(l.metrics))
	for i := range l.metrics {
		if m := &l.metrics[i]; !c.reports(m) {
			runs = append(runs, run{metric: int32(i), points: m.points})
		}
	}
	return c.reported(l, runs)
}

func (c *cohort) reported(l *layout, runs []run) []run {
	for i := range l.metrics {
		if m := &l.metrics[i]; c.reports(m) {
			runs = append(runs, run{metric: int32(i), points: m.points})
		}
	}
	return runs
}

// reports tells whether a metric is the report's.
func (c *cohort) reports(m *placedMetric) bool {
	return slices.Contains(c.job.report, m.family.base.name)
}

// about returns the labels that tell what a line is about: the first few.
func (c *cohort) about(l *line) string {
	s := string(*l.body)
	if !l.isWhole() {
		return strings.TrimRight(s, "}")
	}
	if e, ok := c.reread.line(l, slotMarks); ok {
		if cuts := c.cut(e); len(cuts) > 1 {
			s = s[cuts[0]:cuts[1]]
		} else if len(cuts) > 0 {
			s = s[cuts[0]:]
		}
	}
	return strings.TrimRight(s, "}")
}
