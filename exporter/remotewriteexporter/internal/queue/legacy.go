// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"cmp"
	"slices"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

// Legacy is what a queue in memory held when it was closed.
type Legacy struct {
	destinations []string
	entries      []*entry
}

// Header sums up what is in it.
func (l *Legacy) Header() (h block.Header, blocks int) {
	for _, e := range l.entries {
		h.Samples += int(e.samples)
		h.Histograms += int(e.histograms)
		h.Exemplars += int(e.exemplars)
	}
	return h, len(l.entries)
}

// Destinations are those that it was for.
func (l *Legacy) Destinations() []string { return l.destinations }

// Leave drops what a queue in memory holds, and returns it for one that is opened later. Call it between Stop and Close, when
// all leases have ended. What somebody waits for, and will bring again, is not left. It is nil if there is nothing.
func (q *Queue) Leave() *Legacy {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.disk != nil {
		return nil
	}
	l := &Legacy{destinations: q.cfg.Destinations}
	seen := map[*entry]bool{}
	for i, d := range q.destinations {
		for e := d.dropOldest(anyBlock); e != nil; e = d.dropOldest(anyBlock) {
			q.cfg.Dropped(i, ReasonShutdown, e.known().Header)
			if !seen[e] {
				seen[e] = true
				if f := e.fate(); f == nil || !f.Awaited {
					l.entries = append(l.entries, e)
				}
			}
			q.abandon(e)
		}
	}
	q.roomChanged()
	if len(l.entries) == 0 {
		return nil
	}
	slices.SortFunc(l.entries, func(a, b *entry) int { return cmp.Compare(a.seq, b.seq) })
	return l
}

// inherit takes up what another queue left, for the destinations that are still there. Nobody else uses the queue yet. What
// was left may be for several queues, so it is copied.
func (q *Queue) inherit(l *Legacy) {
	var epoch uint32
	for _, d := range q.destinations {
		for _, g := range d.fresh.groups { // nothing is late yet
			epoch = max(epoch, g.epoch+1)
		}
	}
	for _, old := range l.entries {
		e := *old
		e.seq, e.waiting = q.nextSeq, 0
		e.done = slices.Clone(old.done)
		if old.only != 0 {
			e.only = 0
			q.adopt(&e, l.destinations[old.only-1])
		}
		adopted := old.only != 0 && e.only == 0
		e.block = &held{Block: old.block.Block}
		e.block.Hold() // as the queue before still does, so that its memory is for none but these
		e.epoch += epoch
		e.tenant = q.number(e.block.Tenant)
		for i, d := range q.destinations {
			name := q.cfg.Destinations[i]
			switch {
			case !q.isFor(&e, i):
			case adopted || slices.Contains(l.destinations, name):
				e.waiting++
				d.push(&e)
			default: // it is new
				e.done = append(e.done, name)
			}
		}
		if e.waiting > 0 {
			q.nextSeq++
		}
	}
}
