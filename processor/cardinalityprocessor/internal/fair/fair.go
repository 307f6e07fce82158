// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package fair estimates demand that was denied, and computes fair shares.
package fair

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
)

// A limit may be shared: the series of each of its groups are then divided among parties. A party's demand is what it
// has and an estimate of what was rejected of it lately. When the demand exceeds the limit, a level is computed up to
// which each party may fill its share, such that the limit is used up and nobody could get more except from a party
// that has less: max-min fairness. Parties at the level get no new series; what those below it lack is taken from those
// above, the newest series first.
//
// This happens in rounds, since estimates need time. The level falls at once, and rises when several rounds in a row
// agree, so that series do not move back and forth. Between rounds a party below its share may find no room. Its
// cumulative series are then withheld instead of added up elsewhere: there they would have to stay, and nothing is lost
// if they come late.

// Durations in rounds, and the number of priorities.
const (
	RoundEpochs = 4 // per round
	agreeing    = 3 // rounds that must agree on a higher level
	Patience    = 3 // rounds that a party without success is waited for

	MaxPriorities = 8
)

// Pool is what parties share.
type Pool struct {
	Hit    bool    // a series was rejected in this round
	level  float64 // series per unit of a party's weight
	recent [agreeing]float64
}

// NewPool returns a pool with enough for all.
func NewPool() Pool { return Pool{level: math.Inf(1), recent: allLevels()} }

// Scarce reports whether shares are in force.
func (pl *Pool) Scarce() bool { return !math.IsInf(pl.level, 1) }

func allLevels() (all [agreeing]float64) {
	for i := range all {
		all[i] = math.Inf(1)
	}
	return all
}

// Party is the state of one party.
type Party struct {
	Pool    *Pool // nil if it does not share
	Weight  int
	unmet   *Unmet // what was rejected in this round
	before  int    // series at the end of the last round
	Waiting int    // rounds without success
}

// Cap is how many series a party may have.
func (p *Party) Cap() int {
	if share := p.Pool.level * float64(p.Weight); share < math.MaxInt32 {
		return max(1, int(share))
	}
	return math.MaxInt32
}

// Starve counts a series that a party was denied, and reports whether it should wait, since the party has less than its
// share.
func (p *Party) Starve(fp uint64) (waits bool) {
	if p.unmet == nil {
		p.unmet = new(Unmet)
	}
	p.unmet.Add(fp)
	p.Pool.Hit = true
	return p.Waiting < Patience
}

// Next begins a round.
func (p *Party) Next(used int) {
	switch {
	case p.unmet == nil, used >= p.Cap():
		p.Waiting = 0
	case used > p.before:
		p.Waiting = 1
	default:
		p.Waiting++
	}
	p.unmet, p.before = nil, used
}

// Seat is a party with its number of series.
type Seat struct {
	*Party

	Used int
}

// Settle computes the level, and how many series must be taken from each seat. Some of the used series may not be in a
// party yet.
func (pl *Pool) Settle(all []Seat, limit, used int) (quotas []int) {
	has, wants, weights := make([]int, len(all)), make([]int, len(all)), make([]int, len(all))
	own := 0
	for i, s := range all {
		own += s.Used
		has[i], wants[i], weights[i] = s.Used, s.Used+s.unmet.Estimate(), s.Weight
	}
	copy(pl.recent[1:], pl.recent[:])
	pl.recent[0] = Level(wants, weights, limit-(used-own))
	pl.level = slices.Min(pl.recent[:])

	quotas = make([]int, len(all))
	short := used - limit
	for i, s := range all {
		short += max(0, min(wants[i], s.Cap())-has[i])
	}
	if short <= 0 {
		return quotas
	}
	low, taken := Level(has, weights, own-short), 0
	for i := range all {
		if n := has[i] - max(1, int(min(low*float64(weights[i]), math.MaxInt32))); n > 0 {
			quotas[i] = n
			taken += n
		}
	}
	for i, n := range quotas { // remainders of rounding
		if n > 0 && taken > short {
			quotas[i]--
			taken--
		}
	}
	return quotas
}

// Level returns how much each unit of weight may have so that the demand, up to that level, fills the room.
func Level(wants, weights []int, room int) float64 {
	order := make([]int, len(wants))
	weight := 0
	for i := range order {
		order[i] = i
		weight += weights[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(wants[a]*weights[b], wants[b]*weights[a]) })
	for _, i := range order {
		fair := float64(max(room, 0)) / float64(weight)
		if float64(wants[i]) > fair*float64(weights[i]) {
			return fair
		}
		room -= wants[i]
		weight -= weights[i]
	}
	return math.Inf(1)
}

// Unmet estimates how many distinct series a party was denied, to about 6 %, and exactly for a few.
type Unmet [256]uint8

// Add counts a series that was denied.
func (u *Unmet) Add(fp uint64) {
	hash := ident.Mix(fp, ident.TagMap)
	cell := &u[hash>>56]
	*cell = max(*cell, uint8(bits.LeadingZeros64(hash<<8|1<<7))+1)
}

// Estimate returns the estimated number of series.
func (u *Unmet) Estimate() int {
	if u == nil {
		return 0
	}
	return max(1, int(estimate(u[:])+0.5))
}

// leftToOthers: one in this many of what is left, together with what one already has, is reserved for others. So there
// is always room for those who come later.
const leftToOthers = 8

// Most returns the most that one may have when that much is left.
func Most[N int | int64](left N) N { return left * (leftToOthers - 1) }
