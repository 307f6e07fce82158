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

// Aggregator combines many series into few, as rules with `aggregate` ask for.
//
// An incoming series is a feeder, and all series that only differ in the removed labels feed one aggregate. The points
// of a batch are recorded when they are decided about, and added once the next consumer has accepted the rest of it,
// like all effects of a batch. Feeders are divided into shards, by their fingerprints, and each shard adds up the
// values of its own. A flush combines the shards. So batches of many senders contend for a shard only for a moment. All
// memory is within a budget; a series beyond it passes unchanged. docs/design/026 describes how first values, late
// points, resets and refusals are treated.
type Aggregator struct {
	Budget  int64
	Tenants bool // there are several tenants, who share the budget
	idle    time.Duration
	Used    atomic.Int64 // memory used, and promised to batches in flight

	Instance policy.Instance

	Shards []feederShard
	shift  uint // the bits of a key above these choose its shard
	turn   atomic.Uint32

	flushing sync.Mutex // guards the fields below that belong to a flush
	aged     uint32     // epoch in which feeders were last looked over
	saved    []savedFeeders

	mu       sync.Mutex
	States   []*State
	Made     map[uint64]*Aggregate // by key
	Order    []*Aggregate          // by age, so that the order of sending does not depend on a map
	accounts map[string]*account   // by tenant, of those that have any memory
	numbers  uint32                // the last number given to an aggregate
	retired  pcommon.Timestamp     // when the last rule that was forgotten ended
	Changed  chan struct{}         // signals that rules have changed since flushes were last planned
}

// State holds the series a rule has made. It outlives changes of the rules.
type State struct {
	name     string
	identity uint64
	key      uint64
	before   []uint64          // keys of earlier versions of the rule, the latest first
	after    []uint64          // keys of rules of other names that were gone when this one came
	Since    pcommon.Timestamp // series that began later are counted from their beginning

	// The fields below are guarded by the aggregator's lock.
	Flushed   pcommon.Timestamp
	due       time.Time
	interval  time.Duration
	gone      bool // the rule no longer exists
	Rule      *Rule
	aggregate int // series made

	Feeders atomic.Int64
}

// Aggregate is one series made of others, or several of the same series, one for each operation.
type Aggregate struct {
	key      uint64
	identity uint64
	state    *State
	Rule     *Rule
	Data     pmetric.Metrics // one point, without a value
	Metric   pmetric.Metric  // the metric in Data
	Tenant   ident.Tenant
	account  *account // its tenant's account
	Keys     ident.Keys
	Class    amount.Class
	form     amount.Shape // shape of its points
	Outputs  []policy.Operation
	Bounds   atomic.Pointer[amount.Bounds] // bounds common to all feeders
	Cost     int64

	portions []uint32 // by shard, the index of its portion plus one; under the shard's lock
	pins     int      // how many batches in flight have feeders for it; under the aggregator's lock

	// The fields below belong to the flush.
	total   amount.Bucketed
	folded  folded
	Start   pcommon.Timestamp
	points  int // since the last flush
	feeders int
	awake   int
	sent    bool   // and not ended since
	spoke   bool   // it has been sent at some time
	number  uint32 // its number in the saved state
}

// The costs of things in bytes, and the limits on them.
const (
	maxFeederShardBits = 6
	minFeederShards    = 8

	FeederCost    = 56   // with its share of places that have just been enlarged, and of what is made for a batch
	PortionCost   = 96   // at most, as slices grow
	HistogramCost = 224  // of a value without its buckets, twice because the slice grows
	aggregateCost = 1536 // without its strings and buckets
)

// mostRows is how many feeders a shard has room for on average, chosen so that none has more than can be numbered.
const mostRows = 1 << rowBits / 8 * 7

// New returns an aggregator with a budget in bytes, none of which is used yet.
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

// ShardOf returns the number of a key's shard.
func (a *Aggregator) ShardOf(key uint64) int { return int(key >> a.shift) }

// Knows reports whether the feeder of a point exists, and ensures that it stays while its batch is in flight.
func (a *Aggregator) Knows(in *Intake, epoch uint32, trail *Trail) bool {
	shard := a.ShardOf(in.Key)
	in.row = a.Shards[shard].knows(in.Key, epoch, trail[shard])
	trail[shard] = in.row + 1
	return in.row != noRow
}

// FeederKey returns the key of a series under a rule.
func (s *State) FeederKey(fp uint64) uint64 { return ident.Settled(ident.Mix(fp, s.key)) }

// Bind gives the aggregations of rules that come into force their states: those of the earlier rules they continue, or
// new ones.
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
		if before.gone { // its feeders continue from the values they had there
			s.before = append(s.before, before.key)
			s.Since = min(s.Since, before.Since)
		}
	}
	for slices.ContainsFunc(a.States, func(other *State) bool { return other.key == s.key }) {
		s.key = ident.Mix(s.key, ident.TagEmpty) // a rule that has come back: its feeders' last values have been counted elsewhere meanwhile
	}
	a.States = append(a.States, s)
	return s
}

// next returns the next multiple of an interval.
func next(now time.Time, interval time.Duration) time.Time {
	return now.Truncate(interval).Add(interval)
}

// Begun is the value up to which a feeder was counted elsewhere before it came here.
type Begun struct {
	Start, Time pcommon.Timestamp
	Last        amount.Bucketed
}

// Earlier returns the last value of a series under another version of the rule, and whether any version has made a
// series of the same identity.
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

// lastOf returns a feeder's last value and its aggregate, nil if there is no such key. The feeder is kept from being
// forgotten soon.
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

// KnownBounds returns the bounds of a feeder's aggregate.
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

// Whole reports whether all of a new feeder's value belongs to its aggregate: it began while the rule was in force, and
// so recently that it cannot have been counted and forgotten.
func (a *Aggregator) Whole(s *State, start, at pcommon.Timestamp, now int64) bool {
	return start != 0 && start < at && start >= s.Since && time.Duration(at-start) < a.idle && now-int64(start) < int64(a.idle)
}

// Wanted is an aggregate that a feeder is to feed.
type Wanted struct {
	Identity uint64
	From     pmetric.Metric  // the feeder's
	Twins    func() []uint64 // identities it would have if that were of another type
}

// Pin returns an aggregate, building it if there is none, with room for one more feeder. It stays until unpin. If there
// can be none, it returns why.
func (a *Aggregator) Pin(s *State, w Wanted, cost int64, build func() *Aggregate) (g *Aggregate, reserved int64, lost amount.Loss) {
	identity := w.Identity
	key := ident.Mix(s.key, identity)
	a.mu.Lock()
	defer a.mu.Unlock()
	if g = a.Made[key]; g == nil {
		if a.isMadeElsewhere(s, identity) || a.hasTwin(s, w) {
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

// isMadeElsewhere reports whether another rule makes the same series, by name and all that identifies it, as this one
// would have to: there would be two of it. The lock is held.
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

// hasTwin reports whether a series of the same name is made of numbers of another type: all results but sums are
// gauges, whatever they are made of, so there would be two of it. The lock is held.
func (a *Aggregator) hasTwin(by *State, w Wanted) bool {
	outputs, _ := by.Rule.OperationsOn(w.From)
	gauges := by.Rule.gaugesOf(w.From, outputs)
	if len(gauges) == 0 {
		return false
	}
	for _, identity := range w.Twins() {
		for _, s := range a.States {
			g := a.Made[ident.Mix(s.key, identity)]
			if g == nil || s.gone {
				continue
			}
			for _, name := range g.Rule.gaugesOf(g.Metric, g.Outputs) {
				if slices.Contains(gauges, name) {
					return true
				}
			}
		}
	}
	return false
}

// gaugesOf returns the names of results that are gauges, of a metric with numbers.
func (a *Rule) gaugesOf(m pmetric.Metric, outputs []policy.Operation) (all []string) {
	for _, of := range outputs {
		if amount.ShapeOf(m) == amount.ShapeNumber && (of != policy.OperationSum || m.Type() == pmetric.MetricTypeGauge) {
			all = append(all, a.NameOf(m.Name(), amount.ClassOf(m), of))
		}
	}
	return all
}

// unpin is called when the batch is done.
func (a *Aggregator) unpin(births []Birth) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range births {
		births[i].To.pins--
	}
}

// detach gives an aggregate its own copies of its strings.
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

// Weight returns the memory of an aggregate whose data has a given size, with the largest size its total may reach.
func (g *Aggregate) Weight(size, upper int) int64 {
	n := aggregateCost + 2*int64(size) + g.Tenant.Size()
	const copies = 3 // copies of the buckets: the total's, a portion's, and those that were last sent
	switch g.Metric.Type() {
	case pmetric.MetricTypeHistogram:
		n += copies * amount.BucketCost * int64(max(upper, 16))
	case pmetric.MetricTypeExponentialHistogram:
		n += copies * amount.BucketCost * 2 * amount.MaxBuckets
	default:
	}
	return n
}
