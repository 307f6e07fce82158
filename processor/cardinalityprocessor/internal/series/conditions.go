// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// A Condition is the state of a group on which a refusal depends. A series that was refused at once is refused again, by
// the same limit for the same reason, as long as the group without room is still full, nobody has joined it since, and
// the groups that were looked at before it still have room.
type Condition struct {
	key    uint64
	since  uint32 // see policy.Bound
	full   bool
	room   int
	joined uint64 // who joined a full group last
}

// maxConditions is the maximum number of conditions of a page.
const maxConditions = 1 << 10

// AppendConditions appends the conditions of the refusal of the current series, which was refused at once, to those of others.
// It returns false if the refusal may not stand.
func (l *Limiter) AppendConditions(all []Condition, fp uint64, x *Sighting) (_ []Condition, ok bool) {
	full := false
	for i := 0; i < len(x.Values)+len(x.Places) && !full; i++ {
		var b *policy.Bound
		var c Condition
		if j := i - len(x.Values); j < 0 {
			v := &x.Values[i]
			b, c = &v.limit.Labels[v.label].Values, Condition{key: v.place.Key, room: v.place.Terms.Labels[v.label]}
		} else {
			p := &x.Places[j]
			b, c = &p.Limit.Series, Condition{key: p.Key, room: x.room(p.Terms)}
			if p.Terms.Max == 0 {
				continue
			}
		}
		c.since = b.Since
		if l.observe(&c); l.Groups.dates.Load() < b.Since || len(all) == maxConditions {
			return all, false
		}
		full = c.full
		at := len(all) - 1
		for at >= 0 && (all[at].key != c.key || all[at].room != c.room) { // the last ones are likely the same
			at--
		}
		if at < 0 {
			all = append(all, c)
		} else if all[at] != c {
			return all, false
		}
		if i < len(x.Values) && full && !l.Values.absent(x.Values[i].fp) {
			return all, false
		}
	}
	return all, full && len(x.Values) <= 1 && l.Series.absent(fp) // looked for after its conditions
}

// observe sets what changes of a condition.
func (l *Limiter) observe(c *Condition) {
	used, joined := 0, uint64(0)
	if g := l.Groups.open.find(c.key); g != nil {
		joined = g.joined.Load()
		used = int(g.Count.Load())
	}
	if c.full, c.joined = used >= c.room, 0; c.full {
		c.joined = joined
	}
}

// Hold reports whether all conditions still hold.
func (l *Limiter) Hold(all []Condition) bool {
	dates := l.Groups.dates.Load()
	for i := range all {
		now := all[i]
		if l.observe(&now); now != all[i] || dates < now.since {
			return false
		}
	}
	return true
}
