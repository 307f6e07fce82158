// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import "github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"

// The labels of a few metrics are counted. A metric may be chosen when it already has series that were reported before,
// for example because a limit now rejects others. While there are few series in all, the reported ones are still known.
// Otherwise they must be reported once more, or only the labels of later series would be counted.

// choice is a metric that was chosen in this window, after series of it had come.
type choice struct {
	name uint64 // hash
	at   moment.Moment
}

// maxChoices is the maximum number of choices that are known in a window.
const maxChoices = 2 * maxDetailed

// detail starts to count the labels of a metric.
func (b *Book) detail(r *ranked[metric]) {
	m := &r.of
	m.earlier = 0
	m.detailed, m.noted, m.seen, m.labels = true, [2]int{}, [2]int{m.seen[0] + m.seen[1], 0}, nil
	if b.OnChoice == nil || m.seen[0] == 0 && r.late == 0 || b.recount(r) {
		return
	}
	m.earlier = m.seen[0]
	at := max(b.Now(), 1)
	if m.marked != 0 {
		at = max(at, m.marked+apart)
	}
	all := make([]choice, 1, maxChoices)
	if before := b.chosen.Load(); before != nil {
		for _, c := range *before {
			switch {
			case c.name == r.hash: // its row may have been another metric's meanwhile
				at = max(at, c.at+apart)
			case len(all) < maxChoices:
				all = append(all, c)
			}
		}
	}
	m.chosen, m.marked, all[0] = at, at, choice{r.hash, at}
	b.chosen.Store(&all)
	b.OnChoice()
}

// apart is the minimum time between two choices of a metric, an epoch: a series that was reported since the first
// choice is recorded as seen in the epoch after it. So the second choice may be in the future, and what is seen until
// then is reported after it.
const apart moment.Moment = 1 << 32

// recount counts the labels of a metric in all of its reported series, if they are known.
func (b *Book) recount(r *ranked[metric]) bool {
	m, all := &r.of, b.sample.all(r.hash)
	if r.late > 0 && b.sample.mask == 0 { // what came before it was ranked, too
		m.seen[0] = len(all)
	}
	if len(all) != m.seen[0] { // not all are known, or some were reported twice
		return false
	}
	for _, t := range all {
		s := Series{Base: t.base, Labels: make([]Label, len(t.labels))}
		for i, l := range t.labels {
			s.Labels[i] = Label{Name: l.name, Hash: l.hash}
		}
		id, twice := b.identify(&s)
		m.series.add(id)
		for i, l := range t.labels {
			row := b.labels.byName[l.name]
			if row == nil { // it was replaced by another
				continue
			}
			if c := m.label(i, &row.of); c != nil {
				c.count(id, markOf(fold(l.hash, 1)), markOf(b.without[i]), twice && s.hasBefore(i))
			}
		}
	}
	m.noted[0] = len(all)
	return true
}

// see counts how often series of a metric were observed. When all series from before the choice have been reported
// again, that is the number of observations since then.
func (m *metric) see(s *Series) {
	switch {
	case m.chosen != 0 && !s.Rejected && s.Moment.SeenSince(s.Chosen, s.Fingerprint) <= m.chosen.EpochOf(s.Fingerprint):
		m.seen[0]++ // it is reported again: it may have come before the choice
		if s.New {
			m.seen[0]++
		}
	case !s.Again:
		m.seen[0]++
	}
}

// Chosen returns the moment from which on the labels of a metric are counted, if that is in this window; it may be in
// the future. Observe must be called for each of its series that was last seen before that, as
// [moment.Moment.SeenSince] defines it. Chosen returns 0 if that is not necessary.
func (b *Book) Chosen(metric string) moment.Moment {
	all := b.chosen.Load()
	if all == nil { // fast path
		return 0
	}
	name := b.hash(metric)
	for _, c := range *all {
		if c.name == name {
			return c.at
		}
	}
	return 0
}
