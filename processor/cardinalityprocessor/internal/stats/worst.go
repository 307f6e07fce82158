// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"cmp"
	"slices"

	"github.com/godwit-otel/godwit/internal/inorder"
)

const (
	fewValues  = 20   // of a label: not worth removing it
	maxWorst   = 8    // labels of a metric with most values
	reconsider = 1024 // calls of Worst between two looks at the counts
	retry      = 16   // the same while there is no answer
)

// worst is a label of a metric with more values than others.
type worst struct {
	name     string
	together bool // together with the one before it: without only one of them there would be hardly fewer series
}

// Worst returns which of the given labels has most values, in a metric, or in all metrics if the labels of that are not
// counted. It also returns labels with nearly as many values if removing the first one alone would have no effect, such
// as a pod's name beside its uid. A label only replaces another with half as many values, so that the answer is stable.
// Worst returns none while all labels have few values.
func (b *Book) Worst(name string, labels []string) (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := &b.rest
	if row := b.metrics.byName[b.hash(name)]; row != nil {
		m = &row.of
	}
	m.asked++
	if len(m.worst) == 0 && m.asked%retry == 1 || m.asked%reconsider == 1 {
		b.rankWorst(m, labels)
	}
	for _, w := range m.worst {
		if len(all) > 0 && !w.together {
			break
		}
		if slices.Contains(labels, w.name) {
			all = append(all, w.name)
		}
	}
	return all
}

// weighed is a label with its counts.
type weighed struct {
	worst

	of     *counted
	values float64
}

// rankWorst ranks labels by their current counts.
func (b *Book) rankWorst(m *metric, labels []string) {
	var all []weighed
	for _, w := range m.worst {
		of := b.countedOf(m, w.name)
		all = append(all, weighed{w, of, of.values.estimate()})
	}
	known := len(all)
	for _, name := range labels {
		if len(name) > maxText || slices.ContainsFunc(all, func(w weighed) bool { return w.name == name }) {
			continue
		}
		of := b.countedOf(m, name)
		if n := of.values.estimate(); n > fewValues {
			all = append(all, weighed{worst{name: name}, of, n})
		}
	}
	inorder.Sort(all[known:], func(a, b weighed) int { return cmp.Compare(b.values, a.values) })
	for i := 1; i < len(all); i++ {
		for j := i; j > 0 && all[j].values > 2*all[j-1].values; j-- {
			all[j], all[j-1] = all[j-1], all[j]
			all[j].together, all[j-1].together = false, false
		}
	}
	m.worst = m.worst[:0]
	for i, w := range all[:min(len(all), maxWorst)] {
		first := &all[0]
		hardlyFewer := first.of.without.estimate() > first.of.series.estimate()/2
		together := i == 1 || i > 1 && m.worst[i-1].together // they are adjacent
		w.together = together && (w.together || hardlyFewer && 2*w.values >= first.values)
		m.worst = append(m.worst, worst{short(w.name), w.together})
	}
}

// countedOf returns the most specific counts of a label that are known.
func (b *Book) countedOf(m *metric, label string) *counted {
	hash := b.hash(label)
	if m.detailed {
		for i := range m.labels {
			if m.labels[i].hash == hash {
				return &m.labels[i]
			}
		}
	}
	if row := b.labels.byName[hash]; row != nil {
		return &row.of.counted
	}
	return &counted{}
}
