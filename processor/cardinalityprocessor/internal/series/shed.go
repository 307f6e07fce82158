// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"slices"
	"sync/atomic"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
)

// shed removes the newest series of groups, as many as the quotas demand, and returns how many it removed. It goes over
// the table twice, one shard at a time: to see how old the series are, then to remove those that are younger than
// needed. Series that are made here stay.
func (l *Limiter) shed(quotas []quota) (taken int) {
	plans := l.plan(quotas)
	epoch := l.Now().Epoch()
	for i := range l.Series.Shards {
		l.Series.Shards[i].ages(epoch, func(id, age uint32) {
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
	for i := range l.Series.Shards {
		taken += l.shedShard(&l.Series.Shards[i], epoch, plans)
	}
	return taken
}

// shedding is what one group has to give up.
type shedding struct {
	group *Group
	n     int
	ages  [oldAge + 1]int
	below uint32 // all younger ones are removed
	rest  int    // and this many of this age
}

// decide finds the age below which all series have to go.
func (p *shedding) decide() {
	p.rest = p.n
	for p.below <= oldAge && p.ages[p.below] <= p.rest {
		p.rest -= p.ages[p.below]
		p.below++
	}
}

// takes reports whether a series of that age is removed.
func (p *shedding) takes(age uint32) bool {
	if age == p.below && p.rest > 0 {
		p.rest--
		return true
	}
	return age < p.below
}

// plan finds the sets with the groups. It goes through all sets without the registry's lock: the groups of a set never
// change.
func (l *Limiter) plan(quotas []quota) map[uint32]*shedding {
	byGroup := map[*Group]*shedding{}
	for _, q := range quotas {
		byGroup[q.group] = &shedding{group: q.group, n: q.n}
	}
	plans := map[uint32]*shedding{}
	l.Groups.Mu.Lock()
	last := l.Groups.last
	l.Groups.Mu.Unlock()
	for id := uint32(1); id <= last; id++ {
		s := l.Groups.Set(id)
		if s == nil || s.Output {
			continue
		}
		if at := slices.IndexFunc(s.Groups, func(g *Group) bool { return byGroup[g] != nil }); at >= 0 {
			plans[id] = byGroup[s.Groups[at]]
		}
	}
	return plans
}

func (l *Limiter) shedShard(sh *shard, epoch uint32, plans map[uint32]*shedding) (taken int) {
	sh.Mu.Lock()
	defer sh.Mu.Unlock()
	l.Groups.Mu.Lock()
	defer l.Groups.Mu.Unlock()
	s := sh.Slots.Load()
	for i := range s.Words {
		word := atomic.LoadUint32(&s.Words[i])
		p := plans[word>>setShift]
		if word == 0 || p == nil {
			continue
		}
		set := l.Groups.Set(word >> setShift) // the id may be a newer set's
		if set.Output || !slices.Contains(set.Groups, p.group) || !p.takes(age(word, epoch)) {
			continue
		}
		sh.assign(s.Fps[i], leftShed)
		l.Groups.pass(leftShed, 1)
		l.Groups.depart(word>>setShift, epoch/moment.IdleEpochs)
		l.Losses.Add(1)
		taken++
	}
	return taken
}

// ages calls f with the set and the age of each entry, under the shard's lock.
func (sh *shard) ages(epoch uint32, f func(set, age uint32)) {
	sh.Mu.Lock()
	defer sh.Mu.Unlock()
	s := sh.Slots.Load()
	for i := range s.Words {
		if word := atomic.LoadUint32(&s.Words[i]); word != 0 {
			f(word>>setShift, age(word, epoch))
		}
	}
}
