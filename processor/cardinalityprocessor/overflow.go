// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// overflow adds up the points of series that have no place, so that sums over all series stay what they were.
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
type overflow struct {
	idle   time.Duration
	budget int64
	all    purse // of all accounts

	shards  []overflowShard
	shift   uint          // what is above are the bits of a fingerprint that choose its shard
	commits atomic.Uint64 // points that were added, in order
	lost    atomic.Int64  // subtotals that are finite, and not together, since that was last counted

	flushing sync.Mutex // what is a flush's, and what an output is sent as. It goes before the other locks

	mu       sync.Mutex // goes before those of shards
	outputs  map[uint64]*output
	order    []*output // the same, by age, so that what is sent does not depend on a map
	accounts map[payer]*purse
	begin    pcommon.Timestamp // no new cumulative output may begin earlier
	certain  pcommon.Timestamp // what began before may have been counted by a process that was killed
}

// overflowShard has the members of a part of all fingerprints.
type overflowShard struct {
	mu      sync.Mutex
	members map[uint64]*member
	silent  map[*purse]*silent
	rested  int64    // memory of those
	asleep  int      // and how many they are
	granted []uint64 // members that have a place, and begin with the next flush
	owning  int      // members that are awake and have a series of their own
	_       [64]byte
}

// output is one series made here.
type output struct {
	fp        uint64
	tenant    tenant
	rule      string // that had no room for the first point
	account   *purse
	keys      outputKeys
	class     class
	form      shape // of its points
	gauge     gaugeMode
	since     pcommon.Timestamp // what began later is counted from its beginning
	cost      int64
	bounds    atomic.Pointer[bounds] // that all inputs have
	begun     atomic.Bool            // something was added
	summed    atomic.Bool            // a histogram sum, too
	gone      atomic.Bool            // it takes nothing any more; under the locks of all shards
	subtotals []*subtotal            // by shard, under its lock

	// What follows is a flush's.
	data   pmetric.Metrics // one point, without a value
	metric pmetric.Metric  // in data
	start  pcommon.Timestamp
	sent   bool
	sum    summed
	lost   int // of what was last summed up
}

// subtotal is what the inputs of one shard have said.
type subtotal struct {
	total   value
	bounds  *bounds // of total
	stamp   uint64  // of the last point
	points  int     // since the last flush
	members int     // that are not resting
	pins    int     // points that wait to be added
	seen    uint32  // epoch
	owned   uint32  // epoch in which its fingerprint was last marked as one made here, and one more
}

// outputKeys say which outputs share a resource and scope, and which a metric.
type outputKeys struct{ scope, metric uint64 }

// member is a cumulative input of an output.
type member struct {
	output *output
	limit  *limit
	reason reason
	start  pcommon.Timestamp
	time   pcommon.Timestamp
	last   value
	bounds *bounds // of last
	seen   uint32
	rests  bool
	gone   bool
	cost   int64

	exact   bool   // last has all that the input says: no bounds of it are missing
	tried   uint32 // epoch in which it last asked for a place, and one more
	granted bool   // it has one
	pins    int    // points that wait to be added
	own     *own   // since it says by itself what it grows by
}

// loss says why a point's value is not in its output.
type loss uint8

const (
	lossNone      loss = iota
	lossBaseline       // of unknown beginning: only its increments from here on count
	lossOld            // not newer than the last
	lossNoValue        // a stale marker
	lossNotFinite      // NaN, or infinite, or it would make the sum so
	lossNoSum          // a histogram without a sum, where others have one
	lossBounds         // its bounds are in disorder, or none is one of the output's
	lossGauge          // gauges are dropped
	lossState          // no memory for it in the budget
	lossKind           // another kind of data than that of the output or member of its fingerprint
	lossOutput         // nothing that the rule makes is made of this type
	lossSummary        // quantiles cannot be added
	losses
)

var lossNames = [losses]string{
	"", nameBaseline, nameOutOfOrder, nameNoValue, nameNotFinite, nameNoSum, "bounds", "gauge", "state_full", "kind", "output",
	"summary",
}

const (
	nameBaseline   = "baseline"
	nameNoSum      = "no_sum"
	nameNoValue    = "no_value"
	nameOutOfOrder = "out_of_order"
	nameNotFinite  = "not_finite"
)

// outputKind is what the points of an output have in common.
type outputKind struct {
	shape shape
	class class
}

func kindFrom(m pmetric.Metric) outputKind { return outputKind{shapeOf(m), classOf(m)} }

func (out *output) kind() outputKind { return outputKind{out.form, out.class} }

// fits says whether points of a kind may be added: two series of different kinds might share a fingerprint.
func (out *output) fits(k outputKind) bool { return out.kind() == k }

// taken says whether the point is dealt with all the same, or the rule's next action has its turn.
func (l loss) taken() bool { return l < lossBounds }

const (
	restPart = 4 // one in so many bytes of the budget is for who rests

	outputCost   = 1024 // an output less its strings and buckets
	subtotalSize = 256  // of it, in each shard
	memberCost   = 320  // a member less its buckets
	bucketCost   = 8

	maxOverflowShardBits = 4
)

func newOverflow(budget int64, idle time.Duration, begin time.Time) *overflow {
	n := 1 << min(maxOverflowShardBits, bits.Len(uint(2*runtime.GOMAXPROCS(0)-1)))
	o := &overflow{
		idle:     idle,
		budget:   budget,
		begin:    pcommon.NewTimestampFromTime(begin),
		shards:   make([]overflowShard, n),
		shift:    uint(64 - bits.TrailingZeros(uint(n))),
		outputs:  map[uint64]*output{},
		accounts: map[payer]*purse{},
	}
	for i := range o.shards {
		o.shards[i].members = map[uint64]*member{}
		o.shards[i].silent = map[*purse]*silent{}
	}
	return o
}

// shardOf is the number of the shard that an input is in.
func (o *overflow) shardOf(fp uint64) int { return int(mix(fp, tagSlice) >> o.shift) } // its own bits choose those of tables

// lock locks an input's shard.
func (o *overflow) lock(fp uint64) *overflowShard {
	sh := &o.shards[o.shardOf(fp)]
	sh.mu.Lock()
	return sh
}

// lockAll locks all shards, for what must not change in any.
func (o *overflow) lockAll() {
	for i := range o.shards {
		o.shards[i].mu.Lock()
	}
}

func (o *overflow) unlockAll() {
	for i := range o.shards {
		o.shards[i].mu.Unlock()
	}
}

// subtotal returns the part of an output that a shard has. The shard's lock is held.
func (out *output) subtotal(shard int) *subtotal {
	if out.subtotals[shard] == nil {
		out.subtotals[shard] = &subtotal{bounds: out.bounds.Load()}
	}
	return out.subtotals[shard]
}

// held returns the last verdict on a series whose counting cannot simply move elsewhere: it would count twice. It says
// whether it should ask for a place, and whether it had one and says by itself what it grows by.
func (o *overflow) held(fp uint64, m pmetric.Metric, i int, epoch uint32) (v verdict, asks, owns bool) {
	w := whenAt(m, i)
	sh := o.lock(fp)
	defer sh.mu.Unlock()
	of := sh.members[fp]
	if of == nil || w.start != of.start && !w.noValue { // the end may come without a beginning
		return verdict{}, false, false
	}
	v = verdict{limit: of.limit, reason: of.reason, held: of.output}
	if of.own != nil {
		return v, true, true
	}
	asks = of.exact && of.time != 0 && !w.noValue && of.tried != epoch+1
	if asks {
		of.tried = epoch + 1
	}
	return v, asks, false
}

// detach gives an output strings of its own: those of the data that it was made of may each be a part of something large.
func (out *output) detach() {
	out.data, out.metric = detached(out.data)
	out.tenant = out.tenant.detached()
}

// detached returns a copy of data with one metric, and that, with strings of its own.
func detached(data pmetric.Metrics) (pmetric.Metrics, pmetric.Metric) {
	var to pmetric.ProtoMarshaler
	var from pmetric.ProtoUnmarshaler
	raw, _ := to.MarshalMetrics(data)
	data, _ = from.UnmarshalMetrics(raw) // it was just made of the same
	return data, data.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
}

// weight is the memory of an output whose data is of a size, and of all that its total may become.
func (out *output) weight(size int) int64 {
	n := outputCost + 2*int64(size) + out.tenant.size()
	const copies = 2 // of buckets: the total's, and those that were last sent
	switch out.metric.Type() {
	case pmetric.MetricTypeHistogram:
		n += copies * bucketCost * int64(out.metric.Histogram().DataPoints().At(0).ExplicitBounds().Len()+1)
	case pmetric.MetricTypeExponentialHistogram:
		n += copies * bucketCost * 2 * maxBuckets
	default:
	}
	return n
}

func (v *value) memberCost() int64 {
	return memberCost + bucketCost*int64(len(v.cells)+len(v.positive.counts)+len(v.negative.counts))
}

// find returns the output of a fingerprint.
func (o *overflow) find(fp uint64) *output {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.outputs[fp]
}

// found makes an output one that others find, unless there is one of its fingerprint by now. It is nil if there is no memory.
func (o *overflow) found(out *output, now int64) *output {
	out.subtotals = make([]*subtotal, len(o.shards))
	out.form = shapeOf(out.metric)
	out.detach()
	o.mu.Lock()
	defer o.mu.Unlock()
	if other := o.outputs[out.fp]; other != nil {
		return other
	}
	out.account = o.accountOf(out.rule, out.tenant.name)
	if !o.reserve(out.account, out.cost) {
		if out.account.empty() {
			delete(o.accounts, payer{out.rule, out.tenant.name})
		}
		return nil
	}
	o.unreserve(out.account, out.cost)
	o.all.used.Add(out.cost) // some of it may be that of members who rest: they go when the batch is accepted
	out.account.used.Add(out.cost)
	out.since = o.begin
	if out.class == classDelta {
		out.since = pcommon.Timestamp(now)
	}
	out.start = out.since
	o.install(out)
	return out
}

// install makes an output one that is sent as soon as anything was added. The lock is held.
func (o *overflow) install(out *output) {
	o.outputs[out.fp] = out
	o.order = append(o.order, out)
}

// release ends the membership of a series that has a place now.
func (o *overflow) release(fp uint64) {
	sh := o.lock(fp)
	defer sh.mu.Unlock()
	if m := sh.members[fp]; m != nil {
		o.forget(sh, fp, m)
	}
}

// sizes returns the number of outputs and of members that add to them now, and the memory accounted for all.
func (o *overflow) sizes() (outputs, members int, used int64) {
	for i := range o.shards {
		sh := &o.shards[i]
		sh.mu.Lock()
		members += len(sh.members) - sh.asleep - sh.owning
		sh.mu.Unlock()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, out := range o.order {
		if out.begun.Load() {
			outputs++
		}
	}
	return outputs, members, o.all.used.Load()
}
