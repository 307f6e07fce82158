// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// aggregator makes few series of many, as rules with `aggregate` want it.
//
// A series that comes in is a feeder, and all that are the same without the labels that go feed one aggregate. What a batch
// says is noted when it is decided about, and added once the next consumer has taken the rest of it, as all effects of a
// batch are. Feeders are divided into shards, by their fingerprints, and each shard adds up what its own have said. A
// flush puts that together: so batches of many senders meet in a shard for a moment at most, and nowhere else. All memory is
// within a budget; a series beyond it passes as it is. docs/design/026 has what first values, late points, resets and
// refusals come to.
type aggregator struct {
	budget int64
	idle   time.Duration
	used   atomic.Int64 // and promised to batches on their way
	short  atomic.Bool  // there was no room since feeders were last looked over

	shards []feederShard
	shift  uint // what is above are the bits of a key that choose its shard
	turn   atomic.Uint32

	flushing sync.Mutex // so that what follows is one flush's
	aged     uint32     // epoch in which feeders were last looked over
	saved    []savedFeeders

	mu      sync.Mutex
	states  []*aggregationState
	made    map[uint64]*aggregate // by key
	order   []*aggregate          // by age, so that what is sent does not depend on a map
	numbers uint32                // of aggregates, the last one
	retired pcommon.Timestamp     // when the last one that was forgotten ended
	changed chan struct{}         // rules, since flushes were last planned
}

// aggregationState is what a rule has made. It outlives changes of the rules.
type aggregationState struct {
	name     string
	identity uint64
	key      uint64
	before   []uint64          // keys of what other versions of the rule have made, the last one first
	since    pcommon.Timestamp // what began later is counted from its beginning

	// What follows is for who has the aggregator's lock.
	flushed   pcommon.Timestamp
	due       time.Time
	interval  time.Duration
	gone      bool // the rule is
	rule      *aggregation
	aggregate int // series made

	feeders atomic.Int64
}

// aggregate is one series made of others, or several of the same ones.
type aggregate struct {
	key      uint64
	identity uint64
	state    *aggregationState
	rule     *aggregation
	data     pmetric.Metrics // one point, without a value
	metric   pmetric.Metric  // in data
	tenant   tenant
	keys     outputKeys
	class    class
	form     shape // of its points
	outputs  []operation
	bounds   atomic.Pointer[bounds] // that all feeders have
	cost     int64

	portions []uint32 // by shard, its portion and one more; under the shard's lock
	pins     int      // batches on their way that have feeders for it; under the aggregator's lock

	// What follows is a flush's.
	total   bucketed
	folded  folded
	start   pcommon.Timestamp
	points  int // since the last flush
	feeders int
	awake   int
	sent    bool   // and not ended since
	spoke   bool   // it was sent, ever
	number  uint32 // in what is saved
}

const (
	maxFeederShardBits = 6
	minFeederShards    = 8

	feederCost    = 96   // of a table that has just grown, and a part of what is made for a batch
	portionCost   = 96   // at most, as slices grow
	histogramCost = 400  // of a value less its buckets, twice as the slice grows
	aggregateCost = 1536 // less its strings and buckets
)

func newAggregator(budget int64, idle time.Duration) *aggregator {
	n := 1 << min(maxFeederShardBits, bits.Len(uint(max(minFeederShards, 4*runtime.GOMAXPROCS(0))-1)))
	return &aggregator{
		budget:  budget,
		idle:    idle,
		shards:  newFeederShards(n),
		shift:   uint(64 - bits.TrailingZeros(uint(n))),
		made:    map[uint64]*aggregate{},
		changed: make(chan struct{}, 1),
	}
}

func (a *aggregator) shardOf(key uint64) int { return int(key >> a.shift) }

// feederKey is that of a series under a rule.
func (s *aggregationState) feederKey(fp uint64) uint64 { return settled(mix(fp, s.key)) }

// reserve takes memory from the budget, if there is so much.
func (a *aggregator) reserve(n int64) bool {
	if a.used.Add(n) <= a.budget {
		return true
	}
	a.used.Add(-n)
	a.short.Store(true)
	return false
}

// bind gives the aggregations of rules that come in force their states: what they have made under earlier rules, or new ones.
func (a *aggregator) bind(rules []*aggregation, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.states {
		s.gone = !slices.ContainsFunc(rules, func(r *aggregation) bool { return r.identity == s.identity && r.limit.name == s.name }) || s.gone
	}
	for _, r := range rules {
		r.state = a.stateFor(r, now)
		r.state.rule = r
		if r.state.interval != r.interval {
			r.state.interval, r.state.due = r.interval, next(now, r.interval)
		}
	}
	select {
	case a.changed <- struct{}{}:
	default: // it is known already
	}
}

func (a *aggregator) stateFor(r *aggregation, now time.Time) *aggregationState {
	s := &aggregationState{name: r.limit.name, identity: r.identity, key: r.identity, since: pcommon.NewTimestampFromTime(now)}
	s.flushed = s.since
	for _, before := range slices.Backward(a.states) {
		if before.name != s.name {
			continue
		}
		if !before.gone && before.identity == s.identity {
			return before
		}
		if before.gone { // its feeders go on from what they said there
			s.before = append(s.before, before.key)
			s.since = min(s.since, before.since)
		}
	}
	for slices.ContainsFunc(a.states, func(other *aggregationState) bool { return other.key == s.key }) {
		s.key = mix(s.key, tagEmpty) // a rule that is back: what its feeders said last has been counted elsewhere meanwhile
	}
	a.states = append(a.states, s)
	return s
}

// next is the next multiple of an interval.
func next(now time.Time, interval time.Duration) time.Time {
	return now.Truncate(interval).Add(interval)
}

// begun is what a feeder had said elsewhere when it came here.
type begun struct {
	start, time pcommon.Timestamp
	last        bucketed
}

// earlier returns what a series last said to another version of the rule.
func (a *aggregator) earlier(s *aggregationState, fp uint64, epoch uint32) *begun {
	for _, before := range s.before {
		if b := a.lastOf(settled(mix(fp, before)), epoch); b != nil {
			return b
		}
	}
	return nil
}

// lastOf returns what a feeder said last, nil if there is none of the key. It is not forgotten soon.
func (a *aggregator) lastOf(key uint64, epoch uint32) *begun {
	sh := &a.shards[a.shardOf(key)]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	slots := sh.slots.Load()
	i := slots.find(key)
	if i < 0 || slots.feeders[i].flags&feederBegun == 0 {
		return nil
	}
	slots.heads[i].seen.Store(epoch)
	f := &slots.feeders[i]
	b := &begun{start: f.start, time: f.time}
	if of := sh.portions[f.portion].of; of.shape() == shapeNumber {
		b.last.numeric = f.number()
	} else if of.class == classCumulative {
		h := &sh.histograms[f.bits]
		b.last = bucketed{h.last, h.bounds}
	}
	return b
}

func (g *aggregate) shape() shape { return g.form }

// knownBounds are those that the aggregate of a feeder has.
func (a *aggregator) knownBounds(key uint64) *bounds {
	sh := &a.shards[a.shardOf(key)]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	slots := sh.slots.Load()
	if i := slots.find(key); i >= 0 {
		return sh.portions[slots.feeders[i].portion].of.bounds.Load()
	}
	return nil
}

// whole says whether all of a new feeder's value is its aggregate's: it began while the rule was in force, and so lately that
// it cannot have been counted and forgotten.
func (a *aggregator) whole(s *aggregationState, start, at pcommon.Timestamp, now int64) bool {
	return start != 0 && start < at && start >= s.since && time.Duration(at-start) < a.idle && now-int64(start) < int64(a.idle)
}

// pin returns the aggregate of a key, which is built if there is none, with room for one more feeder. It stays until unpin.
func (a *aggregator) pin(s *aggregationState, identity uint64, cost int64, build func() *aggregate) (g *aggregate, reserved int64) {
	key := mix(s.key, identity)
	a.mu.Lock()
	defer a.mu.Unlock()
	if g = a.made[key]; g == nil {
		g = build()
		g.key, g.identity, g.state, g.portions = key, identity, s, make([]uint32, len(a.shards))
		g.form = shapeOf(g.metric)
		if !a.reserve(g.cost) {
			return nil, 0
		}
		if !a.reserve(cost) {
			a.used.Add(-g.cost)
			return nil, 0
		}
		g.detach()
		a.numbers++
		g.number = a.numbers
		if g.start == 0 || g.start > s.flushed {
			g.start = s.flushed
		}
		g.start = max(g.start, a.retired)
		a.made[key] = g
		a.order = append(a.order, g)
		s.aggregate++
	} else if !a.reserve(cost) {
		return nil, 0
	}
	g.pins++
	return g, cost
}

// unpin is for when the batch is over.
func (a *aggregator) unpin(births []birth) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range births {
		births[i].to.pins--
	}
}

// detach gives an aggregate strings of its own.
func (g *aggregate) detach() {
	g.data, g.metric = detached(g.data)
	g.tenant = g.tenant.detached()
}

// sizes returns the numbers of series made and of feeders, by rule.
func (a *aggregator) sizes() (made, feeders map[string]int64) {
	made, feeders = map[string]int64{}, map[string]int64{}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.states {
		made[s.name] += int64(s.aggregate)
		feeders[s.name] += s.feeders.Load()
	}
	return made, feeders
}
