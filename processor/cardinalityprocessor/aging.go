// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import "slices"

// A feeder that is silent for the idle timeout rests: it keeps nothing alive, and is no part of what there is now. It is
// remembered for as long again, so that a counter that comes back with the beginning that it had goes on where it was. If
// memory is short it is not. Nothing that came within an idle timeout is forgotten, or it might count twice.
const (
	restsAfter   = idleEpochs + 1
	forgetsAfter = 2 * restsAfter

	forgottenAtOnce = 4096 // feeders, while others wait for their shard
)

// age lets feeders rest, or forgets them.
func (a *aggregator) age(epoch uint32) {
	keep := uint32(forgetsAfter)
	if a.short.Swap(false) {
		keep = restsAfter
	}
	for i := range a.shards {
		for a.ageShard(&a.shards[i], epoch, keep) {
		}
	}
}

// ageShard says whether there are more to be forgotten.
func (a *aggregator) ageShard(s *feederShard, epoch, keep uint32) (more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slots := s.slots.Load()
	var gone []uint64
	for at := range slots.heads {
		key := slots.heads[at].key.Load()
		if key == 0 {
			continue
		}
		silent := epoch - slots.heads[at].seen.Load()
		if silent > restsAfter {
			f := &slots.feeders[at]
			s.portions[f.portion].rest(f)
		}
		if silent > keep {
			if len(gone) == forgottenAtOnce {
				more = true
				break
			}
			gone = append(gone, key)
		}
	}
	for _, key := range gone {
		a.forgetFeeder(s, key)
	}
	if !more {
		s.shrink()
	}
	return more
}

func (a *aggregator) forgetFeeder(s *feederShard, key uint64) {
	at := s.slots.Load().find(key)
	f := &s.slots.Load().feeders[at]
	p := &s.portions[f.portion]
	a.used.Add(-feederCost)
	if p.of.shape() != shapeNumber && p.of.class == classCumulative {
		a.used.Add(-s.histograms[f.bits].cost)
		s.histograms[f.bits] = histogramFeeder{}
		s.spares = append(s.spares, uint32(f.bits))
	}
	p.feeders--
	p.of.state.feeders.Add(-1)
	s.remove(at)
}

// forget forgets aggregates that nobody feeds and that have nothing left to say, and rules that are gone with all that they
// made.
func (a *aggregator) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.order = slices.DeleteFunc(a.order, func(g *aggregate) bool {
		if g.feeders > 0 || g.points > 0 || g.sent || g.pins > 0 || a.fed(g) {
			return false
		}
		a.used.Add(-g.cost)
		a.retired = max(a.retired, g.state.flushed)
		g.state.aggregate--
		delete(a.made, g.key)
		return true
	})
	a.states = slices.DeleteFunc(a.states, func(s *aggregationState) bool { return s.gone && s.aggregate == 0 })
}

// fed says whether a batch has come in between.
func (a *aggregator) fed(g *aggregate) bool {
	for i := range a.shards {
		if a.feeds(i, g) {
			return true
		}
	}
	return false
}

func (a *aggregator) feeds(shard int, g *aggregate) bool {
	s := &a.shards[shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	return g.portions[shard] > 0
}
