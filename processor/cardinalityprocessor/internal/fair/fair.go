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

// A limit may be shared: the series of each of its groups are then divided into parties. What a party wants is what it
// has and an estimate of what was rejected of it lately. When that is too much for all together, the level is worked out
// up to which each may fill its share, such that the limit is used up and nobody could get more but from one who has
// less: max-min fairness. Parties at the level get no new series; what those below are short of is taken from those
// above, the newest series first.
//
// This happens in rounds, for estimates need time. The level falls at once, and rises when several rounds in a row agree,
// so that what is taken from one and given to another does not go to and fro. Between rounds a party below its share may
// find no room. Its cumulative series are then withheld instead of added up elsewhere: there they would have to stay, and
// nothing is lost as long as they come late.

// Times of shares, in rounds, and how many priorities there are.
const (
	RoundEpochs = 4 // in a round
	agreeing    = 3 // rounds that must agree on a higher level
	Patience    = 3 // rounds that a party without success is waited for

	MaxPriorities = 8
)

// Pool is what parties share.
type Pool struct {
	Hit    bool    // somebody was rejected in this round
	level  float64 // series for each weight that a party may have
	recent [agreeing]float64
}

// NewPool returns one in which there is enough for all.
func NewPool() Pool { return Pool{level: math.Inf(1), recent: allLevels()} }

// Scarce says whether shares are in force.
func (pl *Pool) Scarce() bool { return !math.IsInf(pl.level, 1) }

func allLevels() (all [agreeing]float64) {
	for i := range all {
		all[i] = math.Inf(1)
	}
	return all
}

// Party is what is known of one.
type Party struct {
	Pool    *Pool // nil unless it shares
	Weight  int
	unmet   *Unmet // what was rejected in this round
	before  int    // used at the end of the last
	Waiting int    // rounds without success
}

// Cap is how many series a party may have.
func (p *Party) Cap() int {
	if share := p.Pool.level * float64(p.Weight); share < math.MaxInt32 {
		return max(1, int(share))
	}
	return math.MaxInt32
}

// Starve notes that a party was denied a series, and says whether one that has less than its share should wait.
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

// Seat is a party with the series that it has.
type Seat struct {
	*Party

	Used int
}

// Settle works the level out, and how many series have to be taken from each seat. Of what is used, some may be in no party yet.
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
	for i, n := range quotas { // what was rounded
		if n > 0 && taken > short {
			quotas[i]--
			taken--
		}
	}
	return quotas
}

// Level is what each weight may have so that all that they want, up to that, fills the room.
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

// Unmet estimates how many distinct series a party was denied, to about 6 %, and exactly as long as they are few.
type Unmet [256]uint8

// Add notes a series that was denied.
func (u *Unmet) Add(fp uint64) {
	hash := ident.Mix(fp, ident.TagMap)
	cell := &u[hash>>56]
	*cell = max(*cell, uint8(bits.LeadingZeros64(hash<<8|1<<7))+1)
}

// Estimate is how many there were.
func (u *Unmet) Estimate() int {
	if u == nil {
		return 0
	}
	return max(1, int(estimate(u[:])+0.5))
}

// leftToOthers: of what is left, and what somebody has, so great a part is left to others. Whoever comes later finds room, even
// if one has all that there is to have.
const leftToOthers = 8

// Most is how much somebody may have, at most, who is to leave that part of it all when so much is left.
func Most[N int | int64](left N) N { return left * (leftToOthers - 1) }
