// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"maps"
	"slices"
)

// A series that says its end, with a stale marker, needs its place no longer: others have it as soon as the batch with the
// marker is accepted. So the pods of a new version find the places of the old one. Should the series come back, because only a scrape
// had failed, it asks for a place as others do, and as one of which it is known what it has said.

// end finds out which series of the metric at hand end with the batch. A value that comes after a marker means that
// they go on.
func (b *batch) end(dropped bool) {
	at := 0
	class := classOf(b.at.m)
	for i, fp := range b.fps {
		if at == len(b.marks) || b.marks[at] != i {
			delete(b.ending, fp)
			continue
		}
		at++
		if dropped && b.drop[i] {
			continue
		}
		if b.ending == nil {
			b.ending = map[uint64]uint32{}
		}
		b.ending[fp] = 0
		if class == classCumulative {
			b.ending[fp] = leftIdle // what it has said must not be counted again
		}
	}
}

// endAll takes their places from those who ended.
func (p *cardinalityProcessor) endAll(ending map[uint64]uint32, now moment) {
	for _, fp := range slices.Sorted(maps.Keys(ending)) {
		if p.limiter.end(fp, ending[fp], now) {
			p.limiter.ended.Add(1)
		}
	}
}

// end takes its place from a series, and says whether it had one. It is remembered among those who left, or not at all.
func (l *limiter) end(fp uint64, to uint32, now moment) bool {
	sh := l.series.lock(fp)
	defer sh.mu.Unlock()
	l.groups.mu.Lock()
	defer l.groups.mu.Unlock()
	id, _ := sh.touch(fp, now)
	if id <= leftLast || l.groups.set(id).output {
		return false
	}
	if to != 0 && l.groups.remembers() <= 0 { // it keeps its place instead: what it has said must be known when it comes back
		return false
	}
	l.groups.depart(id, now.epoch()/idleEpochs)
	if to == 0 {
		sh.remove(fp)
		return true
	}
	sh.assign(fp, to)
	l.groups.pass(to, 1)
	return true
}
