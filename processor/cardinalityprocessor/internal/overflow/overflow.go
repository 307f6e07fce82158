// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package overflow adds up the points of series that were not admitted.
package overflow

import (
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// Overflow adds up the points of series that have no place, so that sums over all series stay what they were.
//
// Many series are combined in one output, which is sent at each flush. A point is recorded with its batch when it is
// decided about, and added once the next consumer has accepted the batch: see staging.go. For deltas, only the sum
// since the last flush is kept. For cumulative series, the last value of each input is kept, because only its
// increments may be added: these inputs are the members of an output until they restart. All memory is within a budget.
// Silent members get a part of it that others do not need: if they come back without a restart, they continue, while a
// forgotten one could count twice.
//
// Inputs are divided into shards, by their fingerprints. Each shard adds up its inputs in a subtotal of the output, and
// a flush combines the subtotals. So batches of many senders contend for a shard only for a moment.
type Overflow struct {
	memory

	Idle time.Duration

	Shards  []overflowShard
	shift   uint          // the bits of a fingerprint above these choose its shard
	commits atomic.Uint64 // how many points were added; orders them
	Lost    atomic.Int64  // subtotals that are finite, though their sum is not, since this was last read

	flushing sync.Mutex        // guards the fields of a flush, and the data an output is sent as. It is taken before the other locks
	flushed  pcommon.Timestamp // time of the last flush

	Mu      sync.Mutex // taken before the locks of shards
	Outputs map[uint64]*Output
	Order   []*Output                  // the same, by age, so that the order of sending does not depend on a map
	Begin   pcommon.Timestamp          // no new cumulative output may begin earlier
	Certain pcommon.Timestamp          // series that began before may have been counted by a process that was killed, or whose ledger is incomplete
	ahead   map[pcommon.Timestamp]bool // beginnings in the future that another process may have counted
}

// overflowShard has the members of a part of all fingerprints, and adds up their points. What is read without its lock
// is in a cache line of its own, since the lock's is written to again and again.
type overflowShard struct {
	Mu      sync.Mutex
	Members map[uint64]*Member
	Silent  map[*usage]*silent
	Rested  int64    // memory of resting members
	Asleep  int      // and how many of them there are
	granted []uint64 // members that were granted a place, and begin anew with the next flush

	members atomic.Int64 // how many there are, for readers without the lock
	owning  int          // members that are awake and have a series of their own

	number    int
	restPart  int64         // one in this many bytes of the budget is for its resting members
	idleAfter time.Duration // how long an admitted series must be silent to be forgotten
	memory    *memory       // of all shards
	_         [16]byte      // to 128 bytes: no two shards share a cache line
}

// Output is one series made here.
type Output struct {
	FP        uint64
	Tenant    ident.Tenant
	Rule      string // the rule that had no room for the first point
	account   *usage
	Keys      ident.Keys
	Class     amount.Class
	form      amount.Shape // shape of its points
	gauge     amount.GaugeMode
	since     pcommon.Timestamp // series that began later are counted from their beginning
	Cost      int64
	Bounds    atomic.Pointer[amount.Bounds] // bounds common to all inputs
	begun     atomic.Bool                   // something was added
	summed    atomic.Bool                   // so was a histogram's sum
	gone      atomic.Bool                   // it accepts nothing any more; under the locks of all shards
	over      atomic.Bool                   // its end was sent, and it stays for its resting members; belongs to the flush
	Subtotals []*subtotal                   // by shard, under its lock

	// The fields below belong to the flush.
	Data   pmetric.Metrics // one point, without a value
	Metric pmetric.Metric  // the metric in Data
	Start  pcommon.Timestamp
	sent   bool
	Sum    summed
	lost   int // as of the last time it was summed up

	pins atomic.Int64 // how many batches may refer to it. An output that is forgotten has none; with a shard's lock one may be added
}

// subtotal is what the inputs of one shard have added.
type subtotal struct {
	total   amount.Value
	bounds  *amount.Bounds      // bounds of total
	stamp   uint64              // of the last point
	points  int                 // since the last flush
	Members int                 // how many are not resting
	resting int                 // how many are
	seen    uint32              // epoch
	owned   uint32              // epoch plus one in which its fingerprint was last marked as made here
	certain pcommon.Timestamp   // series that began before may be members that were forgotten because memory was short
	ahead   []pcommon.Timestamp // beginnings of such members whose clock was ahead of the one here
	_       [24]byte            // to 192 bytes: no two shards write to one cache line
}

// Member is a cumulative input of an output.
type Member struct {
	Output *Output
	Limit  *policy.Limit
	Reason policy.Reason
	Start  pcommon.Timestamp
	Time   pcommon.Timestamp
	Last   amount.Value   // its counts are written in place: nothing else refers to them
	bounds *amount.Bounds // bounds of Last
	Seen   uint32
	rests  bool
	gone   bool
	Cost   int64

	ahead   bool   // it began in the future, by the clock here
	exact   bool   // Last is exactly the input's value: no bounds of it are missing
	tried   uint32 // epoch plus one in which it last asked for a place
	granted bool   // it was granted a place
	pins    int    // how many of its points wait to be added
	own     *Own   // set once it reports its growth by itself
}

func (m *Member) when() amount.When { return amount.When{Start: m.Start, Time: m.Time} }

// outputKind is what the points of an output have in common.
type outputKind struct {
	shape amount.Shape
	class amount.Class
}

func kindFrom(m pmetric.Metric) outputKind { return outputKind{amount.ShapeOf(m), amount.ClassOf(m)} }

func (out *Output) kind() outputKind { return outputKind{out.form, out.Class} }

// fits reports whether points of a kind may be added: two series of different kinds might share a fingerprint.
func (out *Output) fits(k outputKind) bool { return out.kind() == k }

// The costs of things in bytes, and the limits on them.
const (
	RestPart = 4 // one in this many bytes of the budget is for resting members

	OutputCost   = 1024 // an output without its strings and buckets
	subtotalSize = 192  // its part in each shard
	MemberCost   = 224  // a member without its buckets

	maxOverflowShardBits = 4
)

// New returns an overflow with a budget in bytes. No output begins earlier than it.
func New(budget int64, idle time.Duration, begin time.Time) *Overflow {
	n := 1 << min(maxOverflowShardBits, bits.Len(uint(4*runtime.GOMAXPROCS(0)-1)))
	o := &Overflow{
		memory:  memory{Budget: budget, Accounts: map[accountKey]*usage{}},
		Idle:    idle,
		Begin:   pcommon.NewTimestampFromTime(begin),
		Shards:  make([]overflowShard, n),
		shift:   uint(64 - bits.TrailingZeros(uint(n))),
		Outputs: map[uint64]*Output{},
	}
	for i := range o.Shards {
		sh := &o.Shards[i]
		sh.Members, sh.Silent = map[uint64]*Member{}, map[*usage]*silent{}
		sh.number, sh.restPart, sh.idleAfter, sh.memory = i, int64(RestPart*n), idle, &o.memory
	}
	return o
}

// shardOf returns the number of an input's shard.
func (o *Overflow) shardOf(fp uint64) int { return int(ident.Mix(fp, ident.TagSlice) >> o.shift) } // the fingerprint's own bits choose the places in tables

// lock locks an input's shard.
func (o *Overflow) lock(fp uint64) *overflowShard {
	sh := &o.Shards[o.shardOf(fp)]
	sh.Mu.Lock()
	return sh
}

// admit makes an input a member. The lock is held, here and below.
func (sh *overflowShard) admit(fp uint64, m *Member) {
	sh.Members[fp] = m
	sh.members.Store(int64(len(sh.Members)))
}

// remove ends a membership.
func (sh *overflowShard) remove(fp uint64) {
	delete(sh.Members, fp)
	sh.members.Store(int64(len(sh.Members)))
}

// LockAll locks all shards, for work during which none may change.
func (o *Overflow) LockAll() {
	for i := range o.Shards {
		o.Shards[i].Mu.Lock()
	}
}

// UnlockAll undoes LockAll.
func (o *Overflow) UnlockAll() {
	for i := range o.Shards {
		o.Shards[i].Mu.Unlock()
	}
}

// subtotal returns a shard's part of an output. The shard's lock is held.
func (out *Output) subtotal(shard int) *subtotal {
	if out.Subtotals[shard] == nil {
		out.Subtotals[shard] = &subtotal{bounds: out.Bounds.Load()}
	}
	return out.Subtotals[shard]
}

// detach gives an output its own copies of its strings: those of the data that it was made of may each be a part of
// something large.
func (out *Output) detach() {
	out.Data, out.Metric = amount.Detached(out.Data)
	out.Tenant = out.Tenant.Detached()
}

// Weight returns the memory of an output whose data has a given size, with the largest size its total may reach.
func (out *Output) Weight(size int) int64 {
	n := OutputCost + 2*int64(size) + out.Tenant.Size()
	const copies = 2 // copies of the buckets: the total's, and those that were last sent
	switch out.Metric.Type() {
	case pmetric.MetricTypeHistogram:
		n += copies * amount.BucketCost * int64(out.Metric.Histogram().DataPoints().At(0).ExplicitBounds().Len()+1)
	case pmetric.MetricTypeExponentialHistogram:
		n += copies * amount.BucketCost * 2 * amount.MaxBuckets
	default:
	}
	return n
}

// costOf returns the memory of a member with a last value.
func costOf(last *amount.Value) int64 { return MemberCost + last.Cost() }

// find returns the output of a fingerprint.
func (o *Overflow) find(fp uint64) *Output {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	return o.Outputs[fp]
}

// found makes an output available to others, unless there is one of its fingerprint by now. It returns nil if there is
// no memory.
func (o *Overflow) found(out *Output, now int64) *Output {
	out.Subtotals = make([]*subtotal, len(o.Shards))
	out.form = amount.ShapeOf(out.Metric)
	out.detach()
	o.Mu.Lock()
	defer o.Mu.Unlock()
	if other := o.Outputs[out.FP]; other != nil {
		return other
	}
	out.account = o.accountOf(out.Rule, out.Tenant.Name)
	if !o.reserve(out.account, out.Cost) {
		if out.account.empty() {
			delete(o.Accounts, accountKey{out.Rule, out.Tenant.Name})
		}
		return nil
	}
	o.unreserve(out.account, out.Cost)
	o.All.Used.Add(out.Cost) // some of it may be held by resting members: they go when the batch is accepted
	out.account.Used.Add(out.Cost)
	out.since = o.Begin
	if out.Class == amount.ClassDelta {
		out.since = pcommon.Timestamp(now)
	}
	out.Start = out.since
	o.install(out)
	return out
}

// install puts an output among those that are sent as soon as anything was added. The lock is held.
func (o *Overflow) install(out *Output) {
	o.Outputs[out.FP] = out
	o.Order = append(o.Order, out)
}

// Release ends the membership of a series that has been admitted.
func (o *Overflow) Release(fp uint64) {
	sh := o.lock(fp)
	defer sh.Mu.Unlock()
	if m := sh.Members[fp]; m != nil {
		sh.forget(fp, m)
	}
}

// Outgrown ends the membership of a series that has been admitted, and reports its whole value by itself since it began
// anew.
func (o *Overflow) Outgrown(fp uint64, since pcommon.Timestamp) {
	sh := o.lock(fp)
	defer sh.Mu.Unlock()
	if m := sh.Members[fp]; m != nil && m.Start != since {
		sh.forget(fp, m)
	}
}

// Sizes returns the number of outputs and of members that add to them now, and the memory accounted for all.
func (o *Overflow) Sizes() (outputs, members int, used int64) {
	for i := range o.Shards {
		sh := &o.Shards[i]
		sh.Mu.Lock()
		members += len(sh.Members) - sh.Asleep - sh.owning
		sh.Mu.Unlock()
	}
	o.Mu.Lock()
	defer o.Mu.Unlock()
	for _, out := range o.Order {
		if out.begun.Load() && !out.over.Load() {
			outputs++
		}
	}
	return outputs, members, o.All.Used.Load()
}
