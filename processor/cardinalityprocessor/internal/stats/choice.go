// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import "github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"

// Labels are counted of a few metrics. One that is chosen may have series that were told of before, as where a limit rejects
// others of it. While there are few series in all, what was told of these is still known. Else they are to be told of once more, or
// its labels would be counted in those alone that came later.

// choice is a metric that was chosen in this window, after series of it had come.
type choice struct {
	name uint64 // hash
	at   moment.Moment
}

// maxChoices is how many are known of in a window.
const maxChoices = 2 * maxDetailed

// detail begins to count the labels of a metric.
func (b *Book) detail(r *ranked[metric]) {
	m := &r.of
	m.detailed, m.noted, m.seen, m.labels = true, [2]int{}, [2]int{m.seen[0] + m.seen[1], 0}, nil
	if b.OnChoice == nil || m.seen[0] == 0 || b.recount(r) {
		return
	}
	at := max(b.Now(), 1)
	if m.marked != 0 {
		at = max(at, m.marked+apart)
	}
	all := make([]choice, 1, maxChoices)
	if before := b.chosen.Load(); before != nil {
		for _, c := range *before {
			switch {
			case c.name == r.hash: // its row may have been another's meanwhile
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

// apart is what is between two choices of a metric at least, an epoch: a series that was told of since the first is noted to be seen in the
// one after that. So the second may be in the future, and what is seen until then is told of once it has come.
const apart moment.Moment = 1 << 32

// recount counts the labels of a metric in all that was told of it, if it is known.
func (b *Book) recount(r *ranked[metric]) bool {
	m, all := &r.of, b.sample.all(r.hash)
	if len(all) != m.seen[0] { // each once
		return false
	}
	for _, t := range all {
		s := Series{Base: t.base, Labels: make([]Label, len(t.labels))}
		for i, l := range t.labels {
			s.Labels[i] = Label{Name: l.name, Hash: l.hash}
		}
		id, twice := b.identify(&s)
		for i, l := range t.labels {
			row := b.labels.byName[l.name]
			if row == nil { // it has given way to others
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

// see counts how often a metric was told of a series. When all that came before it was chosen have been told of again, that is as
// often as since then.
func (m *metric) see(s *Series) {
	switch {
	case m.chosen != 0 && !s.Rejected && s.Moment.SeenSince(s.Chosen, s.Fingerprint) <= m.chosen.EpochOf(s.Fingerprint):
		m.seen[0]++ // it is told of again: by what is noted of it, it may have come before the choice
		if s.New {
			m.seen[0]++
		}
	case !s.Again:
		m.seen[0]++
	}
}

// Chosen returns since when the labels of a metric are counted, if that began in this window; it may be in the future. Observe is to be told of
// each of its series that was seen last before that, as [moment.Moment.SeenSince] has it. It is 0 if there is no such need.
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
