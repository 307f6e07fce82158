// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"slices"
	"sync/atomic"
)

// shed takes the places of the newest series of groups, as many as the quotas say and as have them, and returns how many
// it took. It goes over the table twice, one shard at a time: to see how old the series are, then to take those that are
// younger than it needs. Series that are made here stay.
func (l *limiter) shed(quotas []quota) (taken int) {
	plans := l.plan(quotas)
	epoch := l.now().epoch()
	for i := range l.series.shards {
		l.series.shards[i].ages(epoch, func(id, age uint32) {
			if p := plans[id]; p != nil {
				p.ages[age]++
			}
		})
	}
	done := map[*shedding]bool{}
	for _, p := range plans {
		if !done[p] {
			done[p] = true
			p.decide()
		}
	}
	for i := range l.series.shards {
		taken += l.shedShard(&l.series.shards[i], epoch, plans)
	}
	return taken
}

// shedding is what one group has to give up.
type shedding struct {
	group *group
	n     int
	ages  [oldAge + 1]int
	below uint32 // all younger ones go
	rest  int    // and so many of this age
}

// decide finds the age below which there are no more than have to go.
func (p *shedding) decide() {
	p.rest = p.n
	for p.below <= oldAge && p.ages[p.below] <= p.rest {
		p.rest -= p.ages[p.below]
		p.below++
	}
}

// takes says whether a series of that age goes.
func (p *shedding) takes(age uint32) bool {
	if age == p.below && p.rest > 0 {
		p.rest--
		return true
	}
	return age < p.below
}

// plan finds the sets that the groups are in. It goes through all of them without the registry's lock: what belongs to a set
// never changes.
func (l *limiter) plan(quotas []quota) map[uint32]*shedding {
	byGroup := map[*group]*shedding{}
	for _, q := range quotas {
		byGroup[q.group] = &shedding{group: q.group, n: q.n}
	}
	plans := map[uint32]*shedding{}
	l.groups.mu.Lock()
	last := l.groups.last
	l.groups.mu.Unlock()
	for id := uint32(1); id <= last; id++ {
		s := l.groups.set(id)
		if s == nil || s.output {
			continue
		}
		if at := slices.IndexFunc(s.groups, func(g *group) bool { return byGroup[g] != nil }); at >= 0 {
			plans[id] = byGroup[s.groups[at]]
		}
	}
	return plans
}

func (l *limiter) shedShard(sh *shard, epoch uint32, plans map[uint32]*shedding) (taken int) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	l.groups.mu.Lock()
	defer l.groups.mu.Unlock()
	s := sh.slots.Load()
	for i := range s.words {
		word := atomic.LoadUint32(&s.words[i])
		p := plans[word>>setShift]
		if word == 0 || p == nil {
			continue
		}
		set := l.groups.set(word >> setShift) // which the id may be of only since the plan was made
		if set.output || !slices.Contains(set.groups, p.group) || !p.takes(age(word, epoch)) {
			continue
		}
		sh.assign(s.fps[i], leftShed)
		l.groups.pass(leftShed, 1)
		l.groups.depart(word>>setShift, epoch/idleEpochs)
		taken++
	}
	return taken
}

// ages calls f with the set and the age of each entry, under the shard's lock.
func (sh *shard) ages(epoch uint32, f func(set, age uint32)) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s := sh.slots.Load()
	for i := range s.words {
		if word := atomic.LoadUint32(&s.words[i]); word != 0 {
			f(word>>setShift, age(word, epoch))
		}
	}
}
