// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package aggregate combines many series into few.
package aggregate

import (
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// Aggregator makes few series of many, as rules with `aggregate` want it.
//
// A series that comes in is a feeder, and all that are the same without the labels that go feed one aggregate. What a batch
// says is noted when it is decided about, and added once the next consumer has taken the rest of it, as all effects of a
// batch are. Feeders are divided into shards, by their fingerprints, and each shard adds up what its own have said. A
// flush puts that together: so batches of many senders meet in a shard for a moment at most, and nowhere else. All memory is
// within a budget; a series beyond it passes as it is. docs/design/026 has what first values, late points, resets and
// refusals come to.
type Aggregator struct {
	Budget  int64
	Tenants bool // there are some, who share it
	idle    time.Duration
	Used    atomic.Int64 // and promised to batches on their way

	Instance policy.Instance

	Shards []feederShard
	shift  uint // what is above are the bits of a key that choose its shard
	turn   atomic.Uint32

	flushing sync.Mutex // so that what follows is one flush's
	aged     uint32     // epoch in which feeders were last looked over
	saved    []savedFeeders

	mu       sync.Mutex
	States   []*State
	Made     map[uint64]*Aggregate // by key
	Order    []*Aggregate          // by age, so that what is sent does not depend on a map
	accounts map[string]*account   // by tenant, of those that have something
	numbers  uint32                // of aggregates, the last one
	retired  pcommon.Timestamp     // when the last one that was forgotten ended
	Changed  chan struct{}         // rules, since flushes were last planned
}

// State is what a rule has made. It outlives changes of the rules.
type State struct {
	name     string
	identity uint64
	key      uint64
	before   []uint64          // keys of what other versions of the rule have made, the last one first
	after    []uint64          // keys of what rules of other names have made that were gone when it came
	Since    pcommon.Timestamp // what began later is counted from its beginning

	// What follows is for who has the aggregator's lock.
	Flushed   pcommon.Timestamp
	due       time.Time
	interval  time.Duration
	gone      bool // the rule is
	Rule      *Rule
	aggregate int // series made

	Feeders atomic.Int64
}

// Aggregate is one series made of others, or several of the same ones.
type Aggregate struct {
	key      uint64
	identity uint64
	state    *State
	Rule     *Rule
	Data     pmetric.Metrics // one point, without a value
	Metric   pmetric.Metric  // in data
	Tenant   ident.Tenant
	account  *account // its tenant's
	Keys     ident.Keys
	Class    amount.Class
	form     amount.Shape // of its points
	Outputs  []policy.Operation
	Bounds   atomic.Pointer[amount.Bounds] // that all feeders have
	Cost     int64

	portions []uint32 // by shard, its portion and one more; under the shard's lock
	pins     int      // batches on their way that have feeders for it; under the aggregator's lock

	// What follows is a flush's.
	total   amount.Bucketed
	folded  folded
	Start   pcommon.Timestamp
	points  int // since the last flush
	feeders int
	awake   int
	sent    bool   // and not ended since
	spoke   bool   // it was sent, ever
	number  uint32 // in what is saved
}

// What things cost in bytes, and how much of that there may be.
const (
	maxFeederShardBits = 6
	minFeederShards    = 8

	FeederCost    = 56   // with places that have just become more, and a part of what is made for a batch
	PortionCost   = 96   // at most, as slices grow
	HistogramCost = 400  // of a value less its buckets, twice as the slice grows
	aggregateCost = 1536 // less its strings and buckets
)

// mostRows is how many feeders a shard has room for on average, so that none has more than can be numbered.
const mostRows = 1 << rowBits / 8 * 7

// New returns one with memory for so many bytes, of which nothing is taken.
func New(budget int64, idle time.Duration) *Aggregator {
	n := 1 << min(maxFeederShardBits, bits.Len(uint(max(minFeederShards, 4*runtime.GOMAXPROCS(0))-1)))
	return &Aggregator{
		Budget:   min(budget, int64(n)*mostRows*FeederCost),
		idle:     idle,
		Shards:   newFeederShards(n),
		shift:    uint(64 - bits.TrailingZeros(uint(n))),
		Made:     map[uint64]*Aggregate{},
		accounts: map[string]*account{},
		Changed:  make(chan struct{}, 1),
	}
}

// ShardOf is the number of the shard that a key is in.
func (a *Aggregator) ShardOf(key uint64) int { return int(key >> a.shift) }

// Knows reports whether the series of a point is there, and sees to it that it stays while its batch is on its way.
func (a *Aggregator) Knows(in *Intake, epoch uint32, trail *Trail) bool {
	shard := a.ShardOf(in.Key)
	in.row = a.Shards[shard].knows(in.Key, epoch, trail[shard])
	trail[shard] = in.row + 1
	return in.row != noRow
}

// FeederKey is that of a series under a rule.
func (s *State) FeederKey(fp uint64) uint64 { return ident.Settled(ident.Mix(fp, s.key)) }

// Bind gives the aggregations of rules that come in force their states: what they have made under earlier rules, or new ones.
func (a *Aggregator) Bind(rules []*Rule, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.States {
		s.gone = !slices.ContainsFunc(rules, func(r *Rule) bool { return r.identity == s.identity && r.Limit.Name == s.name }) || s.gone
	}
	for _, r := range rules {
		r.State = a.stateFor(r, now)
		r.State.Rule = r
		if r.State.interval != r.interval {
			r.State.interval, r.State.due = r.interval, next(now, r.interval)
		}
	}
	select {
	case a.Changed <- struct{}{}:
	default: // it is known already
	}
}

func (a *Aggregator) stateFor(r *Rule, now time.Time) *State {
	s := &State{name: r.Limit.Name, identity: r.identity, key: r.identity, Since: pcommon.NewTimestampFromTime(now)}
	s.Flushed = s.Since
	for _, before := range slices.Backward(a.States) {
		if before.name != s.name {
			if before.gone {
				s.after = append(s.after, before.key)
			}
			continue
		}
		if !before.gone && before.identity == s.identity {
			return before
		}
		if before.gone { // its feeders go on from what they said there
			s.before = append(s.before, before.key)
			s.Since = min(s.Since, before.Since)
		}
	}
	for slices.ContainsFunc(a.States, func(other *State) bool { return other.key == s.key }) {
		s.key = ident.Mix(s.key, ident.TagEmpty) // a rule that is back: what its feeders said last has been counted elsewhere meanwhile
	}
	a.States = append(a.States, s)
	return s
}

// next is the next multiple of an interval.
func next(now time.Time, interval time.Duration) time.Time {
	return now.Truncate(interval).Add(interval)
}

// Begun is what a feeder had said elsewhere when it came here.
type Begun struct {
	Start, Time pcommon.Timestamp
	Last        amount.Bucketed
}

// Earlier returns what a series last said to another version of the rule, and whether any has made one of the same identity.
func (a *Aggregator) Earlier(s *State, fp uint64, epoch uint32) (last *Begun, made bool) {
	for _, before := range s.before {
		b, of := a.lastOf(ident.Settled(ident.Mix(fp, before)), epoch)
		if last == nil {
			last = b
		}
		made = made || of != nil && of.identity == fp && slices.Contains(of.names(), of.Metric.Name())
	}
	return last, made
}

// lastOf returns what a feeder said last, and to which aggregate, nil if there is none of the key. It is not forgotten soon.
func (a *Aggregator) lastOf(key uint64, epoch uint32) (*Begun, *Aggregate) {
	sh := &a.Shards[a.ShardOf(key)]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	rows := sh.rows.Load()
	row := rows.find(key)
	if row == noRow || rows.feeder(row).flags&feederBegun == 0 {
		return nil, nil
	}
	rows.row(row).seen.Store(epoch)
	f := rows.feeder(row)
	b := &Begun{Start: f.start, Time: f.time}
	of := sh.portions[f.portion].of
	if of.shape() == amount.ShapeNumber {
		b.Last.Numeric = f.number()
	} else if of.Class == amount.ClassCumulative {
		h := &sh.histograms[f.bits]
		b.Last = amount.Bucketed{Value: h.last, Bounds: h.bounds}
	}
	return b, of
}

func (g *Aggregate) shape() amount.Shape { return g.form }

// KnownBounds are those that the aggregate of a feeder has.
func (a *Aggregator) KnownBounds(key uint64) *amount.Bounds {
	sh := &a.Shards[a.ShardOf(key)]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	rows := sh.rows.Load()
	if row := rows.find(key); row != noRow {
		return sh.portions[rows.feeder(row).portion].of.Bounds.Load()
	}
	return nil
}

// Whole reports whether all of a new feeder's value is its aggregate's: it began while the rule was in force, and so lately that
// it cannot have been counted and forgotten.
func (a *Aggregator) Whole(s *State, start, at pcommon.Timestamp, now int64) bool {
	return start != 0 && start < at && start >= s.Since && time.Duration(at-start) < a.idle && now-int64(start) < int64(a.idle)
}

// Pin returns the aggregate of a key, which is built if there is none, with room for one more feeder. It stays until unpin. Or it says
// why there is none.
func (a *Aggregator) Pin(s *State, identity uint64, cost int64, build func() *Aggregate) (g *Aggregate, reserved int64, lost amount.Loss) {
	key := ident.Mix(s.key, identity)
	a.mu.Lock()
	defer a.mu.Unlock()
	if g = a.Made[key]; g == nil {
		if a.isMadeElsewhere(s, identity) {
			return nil, 0, amount.LossOutput
		}
		g = build()
		g.key, g.identity, g.state, g.portions = key, identity, s, make([]uint32, len(a.Shards))
		g.form = amount.ShapeOf(g.Metric)
		g.account = a.accountOf(g.Tenant.Name)
		if !a.reserve(g.account, g.Cost+cost) {
			return nil, 0, amount.LossState
		}
		g.detach()
		a.open(g)
		a.numbers++
		g.number = a.numbers
		if g.Start == 0 || g.Start > s.Flushed {
			g.Start = s.Flushed
		}
		g.Start = max(g.Start, a.retired)
		a.Made[key] = g
		a.Order = append(a.Order, g)
		s.aggregate++
	} else if !a.reserve(g.account, cost) {
		return nil, 0, amount.LossState
	}
	g.pins++
	return g, cost, amount.LossNone
}

// isMadeElsewhere reports whether another rule makes a series that one would have to make, too, by name and all that identifies it: there would
// be two of it. The lock is held.
func (a *Aggregator) isMadeElsewhere(by *State, identity uint64) bool {
	for _, s := range a.States {
		g := a.Made[ident.Mix(s.key, identity)]
		if g == nil || s == by || s.gone {
			continue
		}
		made := g.names()
		outputs, _ := by.Rule.OperationsOn(g.Metric)
		if slices.ContainsFunc(outputs, func(of policy.Operation) bool {
			return slices.Contains(made, by.Rule.NameOf(g.Metric.Name(), g.Class, of))
		}) {
			return true
		}
	}
	return false
}

// unpin is for when the batch is over.
func (a *Aggregator) unpin(births []Birth) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range births {
		births[i].To.pins--
	}
}

// detach gives an aggregate strings of its own.
func (g *Aggregate) detach() {
	g.Data, g.Metric = amount.Detached(g.Data)
	g.Tenant = g.Tenant.Detached()
}

// Sizes returns the numbers of series made and of feeders, by rule.
func (a *Aggregator) Sizes() (made, feeders map[string]int64) {
	made, feeders = map[string]int64{}, map[string]int64{}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.States {
		made[s.name] += int64(s.aggregate)
		feeders[s.name] += s.Feeders.Load()
	}
	return made, feeders
}

// Weight is the memory of an aggregate whose data is of a size, and of all that its total may become.
func (g *Aggregate) Weight(size, upper int) int64 {
	n := aggregateCost + 2*int64(size) + g.Tenant.Size()
	const copies = 3 // of buckets: the total's, a portion's, and those that were last sent
	switch g.Metric.Type() {
	case pmetric.MetricTypeHistogram:
		n += copies * amount.BucketCost * int64(max(upper, 16))
	case pmetric.MetricTypeExponentialHistogram:
		n += copies * amount.BucketCost * 2 * amount.MaxBuckets
	default:
	}
	return n
}
