// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"slices"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
)

// A feeder that is silent for the idle timeout rests: it keeps no aggregate alive, and is not counted among the present
// ones. It is remembered for as long again, so that a counter that comes back with the same beginning continues where
// it was; not so if its tenant's memory is short. A feeder that came within an idle timeout is never forgotten, or it
// might count twice.
const (
	RestsAfter   = moment.IdleEpochs + 1
	ForgetsAfter = 2 * RestsAfter

	forgottenAtOnce = 4096 // how many feeders are forgotten while others wait for their shard
)

// age lets feeders rest, or forgets them.
func (a *Aggregator) age(epoch uint32) {
	a.noteShortages()
	for i := range a.Shards {
		for a.ageShard(&a.Shards[i], epoch) {
		}
	}
}

// ageShard reports whether there are more to forget.
func (a *Aggregator) ageShard(s *feederShard, epoch uint32) (more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := s.rows.Load()
	var gone []uint32
	for row := range s.used {
		of := rows.row(row)
		if of.key.Load() == 0 {
			continue
		}
		silent := moment.Silence(epoch, of.seen.Load())
		if silent <= RestsAfter {
			continue
		}
		f := rows.feeder(row)
		p := &s.portions[f.portion]
		p.rest(&f)
		rows.put(row, f)
		if silent > ForgetsAfter || p.of.account.wasShort {
			if len(gone) == forgottenAtOnce {
				more = true
				break
			}
			gone = append(gone, row)
		}
	}
	for _, row := range slices.Backward(gone) { // the next new feeder gets the first of the rows
		a.forgetFeeder(s, row)
	}
	if !more {
		s.shrink()
	}
	return more
}

func (a *Aggregator) forgetFeeder(s *feederShard, row uint32) {
	f := s.rows.Load().feeder(row)
	p := &s.portions[f.portion]
	a.release(p.of.account, FeederCost)
	if p.of.shape() != amount.ShapeNumber && p.of.Class == amount.ClassCumulative {
		a.release(p.of.account, s.histograms[f.bits].cost)
		s.histograms[f.bits] = histogramFeeder{}
		s.spares = append(s.spares, uint32(f.bits))
	}
	p.feeders--
	p.of.state.Feeders.Add(-1)
	s.remove(row)
}

// forget forgets aggregates that have no feeders and nothing left to send, and rules that no longer exist with all that
// they made.
func (a *Aggregator) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Order = slices.DeleteFunc(a.Order, func(g *Aggregate) bool {
		if g.feeders > 0 || g.points > 0 || g.sent || g.pins > 0 || a.fed(g) {
			return false
		}
		a.release(g.account, g.Cost)
		a.close(g)
		a.retired = max(a.retired, g.state.Flushed)
		g.state.aggregate--
		delete(a.Made, g.key)
		return true
	})
	a.States = slices.DeleteFunc(a.States, func(s *State) bool { return s.gone && s.aggregate == 0 })
}

// fed reports whether a batch has fed an aggregate in the meantime.
func (a *Aggregator) fed(g *Aggregate) bool {
	for i := range a.Shards {
		if a.feeds(i, g) {
			return true
		}
	}
	return false
}

func (a *Aggregator) feeds(shard int, g *Aggregate) bool {
	s := &a.Shards[shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	return g.portions[shard] > 0
}
