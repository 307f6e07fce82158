// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package overflow adds up the points of series without a place.
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
// Many series come together in one output, which is sent on at each flush. A point is noted with its batch when it is
// decided about, and added once the next consumer has taken the batch: see staging.go. Of deltas nothing but the sum since
// the last flush is kept. Of what is cumulative each input's last value is, because only its increments may be added: those inputs
// are the members of an output, and stay so until they begin anew. All memory is within a budget. Members that are silent
// have what others leave of a part of it: when they come back with the beginning that they had they go on, while one that
// had to be forgotten might count once more.
//
// Inputs are divided into shards, by their fingerprints. Each shard adds up what its own have said, in a subtotal of the output,
// and a flush puts the subtotals together: so batches of many senders meet in a shard for a moment at most.
type Overflow struct {
	Idle   time.Duration
	Budget int64
	All    purse // of all accounts

	Shards  []overflowShard
	shift   uint          // what is above are the bits of a fingerprint that choose its shard
	commits atomic.Uint64 // points that were added, in order
	Lost    atomic.Int64  // subtotals that are finite, and not together, since that was last counted

	flushing sync.Mutex        // what is a flush's, and what an output is sent as. It goes before the other locks
	flushed  pcommon.Timestamp // when that was, last

	Mu       sync.Mutex // goes before those of shards
	Outputs  map[uint64]*Output
	Order    []*Output // the same, by age, so that what is sent does not depend on a map
	Accounts map[payer]*purse
	Begin    pcommon.Timestamp          // no new cumulative output may begin earlier
	Certain  pcommon.Timestamp          // what began before may have been counted by a process that was killed, or whose notes are not whole
	ahead    map[pcommon.Timestamp]bool // beginnings in the future that may have been, by another process
}

// overflowShard has the members of a part of all fingerprints.
type overflowShard struct {
	Mu      sync.Mutex
	Members map[uint64]*Member
	members atomic.Int64 // how many they are, for who has no lock
	Silent  map[*purse]*silent
	Rested  int64    // memory of those
	Asleep  int      // and how many they are
	granted []uint64 // members that have a place, and begin with the next flush
	owning  int      // members that are awake and have a series of their own
	_       [48]byte // of 128, likewise
}

// Output is one series made here.
type Output struct {
	FP        uint64
	Tenant    ident.Tenant
	Rule      string // that had no room for the first point
	account   *purse
	Keys      ident.Keys
	Class     amount.Class
	form      amount.Shape // of its points
	gauge     amount.GaugeMode
	since     pcommon.Timestamp // what began later is counted from its beginning
	Cost      int64
	Bounds    atomic.Pointer[amount.Bounds] // that all inputs have
	begun     atomic.Bool                   // something was added
	summed    atomic.Bool                   // a histogram sum, too
	gone      atomic.Bool                   // it takes nothing any more; under the locks of all shards
	over      atomic.Bool                   // it has said its end, and stays for members that rest; a flush's
	Subtotals []*subtotal                   // by shard, under its lock

	// What follows is a flush's.
	Data   pmetric.Metrics // one point, without a value
	Metric pmetric.Metric  // in data
	Start  pcommon.Timestamp
	sent   bool
	Sum    summed
	lost   int // of what was last summed up

	pins atomic.Int64 // batches that may have something for it. One that is forgotten has none; who has a shard's lock may add his
}

// subtotal is what the inputs of one shard have said.
type subtotal struct {
	total   amount.Value
	bounds  *amount.Bounds      // of total
	stamp   uint64              // of the last point
	points  int                 // since the last flush
	Members int                 // that are not resting
	resting int                 // that are
	seen    uint32              // epoch
	owned   uint32              // epoch in which its fingerprint was last marked as one made here, and one more
	certain pcommon.Timestamp   // what began before may be a member that was forgotten because memory was short
	ahead   []pcommon.Timestamp // beginnings of such whose clock was ahead of the one here
	_       [8]byte             // of 256: no two shards write to one cache line
}

// Member is a cumulative input of an output.
type Member struct {
	Output *Output
	Limit  *policy.Limit
	Reason policy.Reason
	Start  pcommon.Timestamp
	Time   pcommon.Timestamp
	Last   amount.Value   // its counts are written in place: nobody else has them
	bounds *amount.Bounds // of last
	Seen   uint32
	rests  bool
	gone   bool
	Cost   int64

	ahead   bool   // it began in the future, by the clock here
	exact   bool   // last has all that the input says: no bounds of it are missing
	tried   uint32 // epoch in which it last asked for a place, and one more
	granted bool   // it has one
	pins    int    // points that wait to be added
	own     *Own   // since it says by itself what it grows by
}

// outputKind is what the points of an output have in common.
type outputKind struct {
	shape amount.Shape
	class amount.Class
}

func kindFrom(m pmetric.Metric) outputKind { return outputKind{amount.ShapeOf(m), amount.ClassOf(m)} }

func (out *Output) kind() outputKind { return outputKind{out.form, out.Class} }

// fits reports whether points of a kind may be added: two series of different kinds might share a fingerprint.
func (out *Output) fits(k outputKind) bool { return out.kind() == k }

// What things cost in bytes, and how much of that there may be.
const (
	RestPart = 4 // one in so many bytes of the budget is for who rests

	OutputCost   = 1024 // an output less its strings and buckets
	subtotalSize = 256  // of it, in each shard
	MemberCost   = 320  // a member less its buckets

	maxOverflowShardBits = 4
)

// New returns one with memory for so many bytes. No output begins earlier than it did.
func New(budget int64, idle time.Duration, begin time.Time) *Overflow {
	n := 1 << min(maxOverflowShardBits, bits.Len(uint(4*runtime.GOMAXPROCS(0)-1)))
	o := &Overflow{
		Idle:     idle,
		Budget:   budget,
		Begin:    pcommon.NewTimestampFromTime(begin),
		Shards:   make([]overflowShard, n),
		shift:    uint(64 - bits.TrailingZeros(uint(n))),
		Outputs:  map[uint64]*Output{},
		Accounts: map[payer]*purse{},
	}
	for i := range o.Shards {
		o.Shards[i].Members = map[uint64]*Member{}
		o.Shards[i].Silent = map[*purse]*silent{}
	}
	return o
}

// shardOf is the number of the shard that an input is in.
func (o *Overflow) shardOf(fp uint64) int { return int(ident.Mix(fp, ident.TagSlice) >> o.shift) } // its own bits choose those of tables

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

// remove ends that.
func (sh *overflowShard) remove(fp uint64) {
	delete(sh.Members, fp)
	sh.members.Store(int64(len(sh.Members)))
}

// LockAll locks all shards, for what must not change in any.
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

// subtotal returns the part of an output that a shard has. The shard's lock is held.
func (out *Output) subtotal(shard int) *subtotal {
	if out.Subtotals[shard] == nil {
		out.Subtotals[shard] = &subtotal{bounds: out.Bounds.Load()}
	}
	return out.Subtotals[shard]
}

// detach gives an output strings of its own: those of the data that it was made of may each be a part of something large.
func (out *Output) detach() {
	out.Data, out.Metric = amount.Detached(out.Data)
	out.Tenant = out.Tenant.Detached()
}

// Weight is the memory of an output whose data is of a size, and of all that its total may become.
func (out *Output) Weight(size int) int64 {
	n := OutputCost + 2*int64(size) + out.Tenant.Size()
	const copies = 2 // of buckets: the total's, and those that were last sent
	switch out.Metric.Type() {
	case pmetric.MetricTypeHistogram:
		n += copies * amount.BucketCost * int64(out.Metric.Histogram().DataPoints().At(0).ExplicitBounds().Len()+1)
	case pmetric.MetricTypeExponentialHistogram:
		n += copies * amount.BucketCost * 2 * amount.MaxBuckets
	default:
	}
	return n
}

// costOf is the memory of a member that said a value last.
func costOf(last *amount.Value) int64 { return MemberCost + last.Cost() }

// find returns the output of a fingerprint.
func (o *Overflow) find(fp uint64) *Output {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	return o.Outputs[fp]
}

// found makes an output one that others find, unless there is one of its fingerprint by now. It returns nil if there is no memory.
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
			delete(o.Accounts, payer{out.Rule, out.Tenant.Name})
		}
		return nil
	}
	o.unreserve(out.account, out.Cost)
	o.All.Used.Add(out.Cost) // some of it may be that of members who rest: they go when the batch is accepted
	out.account.Used.Add(out.Cost)
	out.since = o.Begin
	if out.Class == amount.ClassDelta {
		out.since = pcommon.Timestamp(now)
	}
	out.Start = out.since
	o.install(out)
	return out
}

// install makes an output one that is sent as soon as anything was added. The lock is held.
func (o *Overflow) install(out *Output) {
	o.Outputs[out.FP] = out
	o.Order = append(o.Order, out)
}

// Release ends the membership of a series that has a place now.
func (o *Overflow) Release(fp uint64) {
	sh := o.lock(fp)
	defer sh.Mu.Unlock()
	if m := sh.Members[fp]; m != nil {
		o.forget(sh, fp, m)
	}
}

// Outgrown ends the membership of a series that has a place, and says all by itself since it began anew.
func (o *Overflow) Outgrown(fp uint64, since pcommon.Timestamp) {
	sh := o.lock(fp)
	defer sh.Mu.Unlock()
	if m := sh.Members[fp]; m != nil && m.Start != since {
		o.forget(sh, fp, m)
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
