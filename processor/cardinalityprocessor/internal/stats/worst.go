// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import "slices"

const (
	fewValues  = 20   // of a label, which are no reason to do without them
	reconsider = 1024 // calls of Worst between two looks at the counts
	retry      = 16   // the same, as long as there is no answer
)

// Worst says which label of a metric has most values, if that is one of those given: in that metric, or in all if its
// labels are not counted by themselves. It stays the one until another has twice as many values, so that what is made of
// the answer does not change to and fro. There is none while all have few.
func (b *Book) Worst(name string, labels []string) (label string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := &b.rest
	if row := b.metrics.byName[b.hash(name)]; row != nil {
		m = &row.of
	}
	m.asked++
	if m.worst == "" && m.asked%retry == 1 || m.asked%reconsider == 1 {
		most := max(fewValues, 2*b.values(m, m.worst))
		for _, l := range labels {
			if n := b.values(m, l); n > most && l != m.worst {
				most, m.worst = n, short(l)
			}
		}
	}
	return m.worst, m.worst != "" && slices.Contains(labels, m.worst)
}

// values is how many a label has, as well as is known.
func (b *Book) values(m *metric, label string) float64 {
	hash := b.hash(label)
	if m.detailed {
		for i := range m.labels {
			if m.labels[i].hash == hash {
				return m.labels[i].values.estimate()
			}
		}
	}
	if row := b.labels.byName[hash]; row != nil {
		return row.of.values.estimate()
	}
	return 0
}
