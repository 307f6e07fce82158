// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"slices"
	"strings"
	"sync"
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
type overflow struct {
	idle time.Duration

	mu      sync.Mutex
	budget  int64
	used    int64
	staged  int64 // memory for members that there will be when their batches are accepted
	outputs map[uint64]*output
	order   []*output // those that anything was added to, by age, so that what is sent does not depend on a map
	members map[uint64]*member
	resting []resting         // the first for the longest time
	rested  int64             // memory of those
	asleep  int               // and how many they are
	granted []uint64          // members that have a place, and begin with the next flush
	owning  int               // members that are awake and have a series of their own
	begin   pcommon.Timestamp // no new cumulative output may begin earlier
	certain pcommon.Timestamp // what began before may have been counted by a process that was killed
}

// output is one series made here.
type output struct {
	fp      uint64
	data    pmetric.Metrics // one point, without a value
	metric  pmetric.Metric  // in data
	tenant  tenant
	rule    string // that had no room for the first point
	keys    outputKeys
	class   class
	gauge   gaugeMode
	bounds  *bounds // that all inputs have
	total   value
	points  int // since the last flush
	sent    bool
	begun   bool // something was added
	start   pcommon.Timestamp
	seen    uint32 // epoch
	owned   uint32 // epoch in which its fingerprint was last marked as one made here, and one more
	members int    // that are not resting
	pins    int    // points that wait to be added
	cost    int64
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

// resting is a member that was silent since an epoch. If it was not, it has come back.
type resting struct {
	fp     uint64
	member *member
	since  uint32
}

func (r *resting) still() bool { return r.member.rests && r.member.seen == r.since }

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

func (out *output) kind() outputKind { return outputKind{shapeOf(out.metric), out.class} }

// fits says whether points of a kind may be added: two series of different kinds might share a fingerprint.
func (out *output) fits(k outputKind) bool { return out.kind() == k }

// taken says whether the point is dealt with all the same, or the rule's next action has its turn.
func (l loss) taken() bool { return l < lossBounds }

const (
	restPart = 4 // one in so many bytes of the budget is for who rests

	outputCost = 1024 // an output less its strings and buckets
	memberCost = 320  // a member less its buckets
	bucketCost = 8
)

func newOverflow(budget int64, idle time.Duration, begin time.Time) *overflow {
	return &overflow{
		idle:    idle,
		budget:  budget,
		begin:   pcommon.NewTimestampFromTime(begin),
		outputs: map[uint64]*output{},
		members: map[uint64]*member{},
	}
}

// held returns the last verdict on a series whose counting cannot simply move elsewhere: it would count twice. It says
// whether it should ask for a place, and whether it had one and says by itself what it grows by.
func (o *overflow) held(fp uint64, m pmetric.Metric, i int, epoch uint32) (v verdict, asks, owns bool) {
	w := whenAt(m, i)
	o.mu.Lock()
	defer o.mu.Unlock()
	of := o.members[fp]
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

func (t tenant) detached() tenant { return tenant{name: strings.Clone(t.name), key: t.key} }

// weight is the memory of an output whose data is of a size, and of all that its total may become.
func (out *output) weight(size int) int64 {
	n := outputCost + 2*int64(size) + int64(len(out.tenant.name)+len(out.tenant.key))
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

// rest is for a member that is silent. What counts up stays counted, so its last value must be known when it comes back;
// what goes up and down is gone with its member.
func (o *overflow) rest(fp uint64, m *member) {
	if m.output.class == classUpDown {
		o.forget(fp, m)
		return
	}
	m.rests = true
	m.output.members--
	if m.own != nil {
		o.owning--
	}
	o.rested += m.cost
	o.asleep++
	o.resting = append(o.resting, resting{fp: fp, member: m, since: m.seen})
	o.forgetOldest(o.rested - o.budget/restPart)
}

func (o *overflow) wake(m *member) {
	m.rests = false
	m.output.members++
	if m.own != nil {
		o.owning++
	}
	o.rested -= m.cost
	o.asleep--
}

// forgetOldest forgets those who rest for the longest time, until so many bytes are free or none is left.
func (o *overflow) forgetOldest(n int64) {
	for n > 0 && len(o.resting) > 0 {
		r := o.resting[0]
		o.resting[0] = resting{}
		if o.resting = o.resting[1:]; r.still() {
			n -= r.member.cost
			o.forget(r.fp, r.member)
		}
	}
}

// forget ends a membership.
func (o *overflow) forget(fp uint64, m *member) {
	if m.rests {
		o.wake(m) // so that the queue does not know it any more
	}
	if m.output.class == classUpDown {
		m.output.total.add(m.last.opposite())
	}
	m.output.members--
	o.disown(m)
	m.gone = true
	o.used -= m.cost
	delete(o.members, fp)
}

// release ends the membership of a series that has a place now.
func (o *overflow) release(fp uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if m := o.members[fp]; m != nil {
		o.forget(fp, m)
	}
}

// expire lets members that are idle rest, and then forgets outputs that have no others. It returns those that have to say
// goodbye.
func (o *overflow) expire(epoch uint32, now pcommon.Timestamp) (ended []*output) {
	var idle []uint64
	for fp, m := range o.members {
		if !m.rests && epoch-m.seen > idleEpochs+1 {
			idle = append(idle, fp)
		}
	}
	slices.Sort(idle) // sums of floats depend on the order
	for _, fp := range idle {
		o.rest(fp, o.members[fp])
	}
	before := len(o.order)
	o.order = slices.DeleteFunc(o.order, func(out *output) bool {
		if out.members > 0 || out.points > 0 || out.pins > 0 || epoch-out.seen <= idleEpochs+1 {
			return false
		}
		if out.class.keeps() {
			o.begin = now // should it come back, then not with the same beginning
		}
		o.used -= out.cost
		delete(o.outputs, out.fp)
		if out.class != classDelta && out.sent {
			ended = append(ended, out)
		}
		return true
	})
	gone := len(o.order) < before
	o.resting = slices.DeleteFunc(o.resting, func(r resting) bool {
		if !r.still() {
			return true
		}
		if gone && o.outputs[r.member.output.fp] != r.member.output { // there is nothing left to go on with
			o.forget(r.fp, r.member)
			return true
		}
		return false
	})
	return ended
}

// sizes returns the number of outputs and of members that add to them now, and the memory accounted for all.
func (o *overflow) sizes() (outputs, members int, used int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.order), len(o.members) - o.asleep - o.owning, o.used
}

// flush takes what there is to send, by tenant and in pieces that are not too large, and begins a new interval.
func (o *overflow) flush(epoch uint32, now time.Time) []shipment {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := pcommon.NewTimestampFromTime(now)
	var all []*shipment
	open := map[tenant]*shipment{}
	shipmentOf := func(t tenant) *shipment {
		if open[t] == nil || open[t].bytes >= shipmentBytes {
			open[t] = newShipment(t)
			all = append(all, open[t])
		}
		return open[t]
	}
	for _, out := range o.expire(epoch, at) { // before the rest: what ends now has nothing else to say
		shipmentOf(out.tenant).end(out, at)
	}
	for _, out := range o.order {
		if out.points == 0 && (out.class == classDelta || out.class == classGauge || out.members == 0) {
			continue
		}
		shipmentOf(out.tenant).put(out, at)
	}
	shipments := make([]shipment, len(all))
	for i, s := range all {
		shipments[i] = *s
	}
	return shipments
}

// restore takes back the sums and farewells that could not be sent: they go with the next. It returns how many cannot,
// because something else has their place by now.
func (o *overflow) restore(s *shipment) (lost int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	back := func(out *output) *output {
		if o.outputs[out.fp] == nil { // idle since
			o.outputs[out.fp] = out
			o.used += out.cost
			out.begun = false
		}
		o.install(o.outputs[out.fp])
		return o.outputs[out.fp]
	}
	for _, out := range s.ended {
		back(out)
	}
	for _, sent := range s.sent {
		out := back(sent.output)
		v := sent.total
		if !out.fits(sent.output.kind()) || !out.agree(&v, sent.bounds) {
			lost++
			continue
		}
		if out.class == classGauge {
			out.resume(v, sent.points)
			continue
		}
		out.total.add(v)
		out.points += sent.points
		out.start = sent.start
	}
	return lost
}

// resume goes on with a gauge that could not be sent: those that came since are newer.
func (out *output) resume(before value, points int) {
	since, n := out.total, out.points
	out.total, out.points = before, points
	switch {
	case n == 0:
	case out.gauge == gaugeMean:
		if out.total.add(since) {
			out.points += n
		}
	default:
		out.blend(since)
	}
}

// install makes an output one that is sent.
func (o *overflow) install(out *output) {
	if !out.begun {
		out.begun = true
		o.order = append(o.order, out)
	}
}
