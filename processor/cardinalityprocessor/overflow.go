// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// overflow adds up the points of series that have no place, so that sums over all series stay what they were.
//
// Many series come together in one output, which is sent on at each flush. Of deltas nothing but the sum since the last
// flush is kept. Of what is cumulative each input's last value is, because only its increments may be added: those inputs
// are the members of an output, and stay so until they begin anew. All memory is within a budget. Members that are silent
// have what others leave of a part of it: when they come back with the beginning that they had they go on, while one that
// had to be forgotten might count once more.
type overflow struct {
	idle time.Duration

	mu      sync.Mutex
	budget  int64
	used    int64
	outputs map[uint64]*output
	order   []*output // by age, so that what is sent does not depend on a map
	members map[uint64]*member
	resting []resting         // the first for the longest time
	rested  int64             // memory of those
	asleep  int               // and how many they are
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
	bounds  []float64
	total   value
	points  int // since the last flush
	sent    bool
	start   pcommon.Timestamp
	seen    uint32 // epoch
	members int    // that are not resting
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
	seen   uint32
	rests  bool
	cost   int64
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
	lossNone     loss = iota
	lossBaseline      // of unknown beginning: only its increments from here on count
	lossOld           // not newer than the last
	lossNoValue       // a stale marker
	lossBounds        // of other bounds than the output
	lossGauge         // gauges are dropped
	lossState         // no memory for it in the budget
	losses
)

var lossNames = [losses]string{"", nameBaseline, "out_of_order", "no_value", "bounds", "gauge", "state_full"}

const nameBaseline = "baseline"

// taken says whether the point is dealt with all the same, or the rule's next action has its turn.
func (l loss) taken() bool { return l < lossBounds }

const (
	restPart = 4 // one in so many bytes of the budget is for who rests

	outputCost = 1024 // an output less its strings
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

// arrival is a point to be added.
type arrival struct {
	metric pmetric.Metric
	index  int
	fp     uint64
	epoch  uint32
	now    int64
	limit  *limit
	reason reason

	counted bool // it may have been, as a series of its own
	passes  bool // so that its value is counted where it goes
}

// held returns the last verdict on a series whose counting cannot simply move elsewhere: it would count twice.
func (o *overflow) held(a arrival) verdict {
	o.mu.Lock()
	defer o.mu.Unlock()
	if m := o.members[a.fp]; m != nil {
		if w := whenAt(a.metric, a.index); w.start == m.start || w.noValue { // the end may come without a beginning
			return verdict{limit: m.limit, reason: m.reason, held: m.output}
		}
	}
	return verdict{}
}

// add adds a point to the output of a fingerprint. When there is none yet it is built, or nothing is added without build.
func (o *overflow) add(fp uint64, a arrival, build func() *output) loss {
	o.mu.Lock()
	defer o.mu.Unlock()
	class := classOf(a.metric)
	out := o.outputs[fp]
	m := o.members[a.fp]
	if m != nil {
		out = m.output
	}
	cost := int64(0)
	fresh := out == nil
	if fresh && build == nil {
		return lossState
	}
	if fresh {
		if class == classGauge && a.limit.exceed.gauge == gaugeDrop {
			return lossGauge
		}
		out = build()
		out.fp, out.class, out.gauge, out.start = fp, class, a.limit.exceed.gauge, o.begin
		out.rule = a.limit.name
		if class == classDelta {
			out.start = pcommon.Timestamp(a.now)
		}
		cost += out.cost
	}
	if out.gauge == gaugeDrop && class == classGauge {
		return lossGauge
	}
	if a.metric.Type() == pmetric.MetricTypeHistogram && !sameBounds(out.bounds, a.metric.Histogram().DataPoints().At(a.index)) {
		return lossBounds
	}
	v := valueAt(a.metric, a.index)
	keeps := class == classCumulative || class == classUpDown
	if keeps && m == nil {
		cost += v.memberCost()
	}
	if m == nil { // or it might be its own memory
		o.forgetOldest(o.used + cost - o.budget)
	}
	if o.used+cost > o.budget {
		return lossState
	}
	if fresh {
		o.used += out.cost
		o.outputs[fp] = out
		o.order = append(o.order, out)
	}
	out.seen = a.epoch
	if keeps {
		return o.addCumulative(out, m, v, a)
	}
	return out.addPlain(v, whenAt(a.metric, a.index))
}

func (v *value) memberCost() int64 {
	return memberCost + bucketCost*int64(len(v.cells)+len(v.positive.counts)+len(v.negative.counts))
}

// sameBounds also wants as many counts as the bounds need, or none for both.
func sameBounds(bounds []float64, dp pmetric.HistogramDataPoint) bool {
	n := dp.ExplicitBounds().Len()
	if n != len(bounds) || dp.BucketCounts().Len() != n+1 && (n > 0 || dp.BucketCounts().Len() > 1) {
		return false
	}
	for i, b := range bounds {
		if dp.ExplicitBounds().At(i) != b {
			return false
		}
	}
	return true
}

func (out *output) addPlain(v value, w when) loss {
	if w.noValue {
		return lossNoValue
	}
	out.points++
	switch {
	case out.class == classDelta, out.points == 1, out.gauge == gaugeMean:
		out.total.add(v)
	case out.gauge == gaugeLast,
		out.gauge == gaugeMin && v.number() < out.total.number(),
		out.gauge == gaugeMax && v.number() > out.total.number():
		out.total = v
	}
	return lossNone
}

// addCumulative adds what a member has grown by.
func (o *overflow) addCumulative(out *output, m *member, v value, a arrival) loss {
	w := whenAt(a.metric, a.index)
	if w.noValue {
		if m != nil && !m.rests { // it may come back: a scrape that failed says so of all that it had
			o.rest(a.fp, m)
		}
		return lossNoValue
	}
	if m != nil && w.time <= m.time {
		return lossOld
	}
	if m != nil && m.rests {
		o.wake(m)
	}
	out.points++
	lost := lossNone
	if m == nil {
		m = &member{output: out, cost: v.memberCost()}
		o.used += m.cost
		o.members[a.fp] = m
		out.members++
		switch {
		case a.passes:
		case out.class == classUpDown || !a.counted && o.whole(out, w):
			out.total.add(v.clone())
		default:
			lost = lossBaseline
		}
	} else {
		grown, ok := v.minus(m.last)
		switch {
		case out.class == classUpDown || ok && w.start == m.start:
			out.total.add(grown)
		case w.start != m.start && (w.start == w.time || w.start < o.certain): // begun anew, and may be known elsewhere
			lost = lossBaseline
		default:
			out.total.add(v.clone())
		}
	}
	m.limit, m.reason = a.limit, a.reason
	m.start, m.time, m.last, m.seen = w.start, w.time, v, a.epoch
	return lost
}

// whole says whether all of a new member's value is its output's: it began after the output did, and so lately that it
// cannot have been counted elsewhere, as an admitted series or a member, and been forgotten for being idle, or by a process
// that was killed.
func (o *overflow) whole(out *output, w when) bool {
	return w.start != 0 && w.start < w.time && w.start >= max(out.start, o.certain) && time.Duration(w.time-w.start) < o.idle
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
	o.rested += m.cost
	o.asleep++
	o.resting = append(o.resting, resting{fp: fp, member: m, since: m.seen})
	o.forgetOldest(o.rested - o.budget/restPart)
}

func (o *overflow) wake(m *member) {
	m.rests = false
	m.output.members++
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
		m.output.total, _ = m.output.total.minus(m.last)
	}
	m.output.members--
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
	before := len(o.outputs)
	o.order = slices.DeleteFunc(o.order, func(out *output) bool {
		if out.members > 0 || out.points > 0 || epoch-out.seen <= idleEpochs+1 {
			return false
		}
		if out.class == classCumulative || out.class == classUpDown {
			o.begin = now // should it come back, then not with the same beginning
		}
		o.used -= out.cost
		delete(o.outputs, out.fp)
		if out.class != classDelta && out.sent {
			ended = append(ended, out)
		}
		return true
	})
	gone := len(o.outputs) < before
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

// sizes returns the number of outputs and of members that are not resting, and the memory accounted for all.
func (o *overflow) sizes() (outputs, members int, used int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.outputs), len(o.members) - o.asleep, o.used
}

// flush takes what there is to send, by tenant, and begins a new interval.
func (o *overflow) flush(epoch uint32, now time.Time) []shipment {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := pcommon.NewTimestampFromTime(now)
	shipments := map[tenant]*shipment{}
	var all []tenant
	shipmentOf := func(t tenant) *shipment {
		if shipments[t] == nil {
			shipments[t] = newShipment(t)
			all = append(all, t)
		}
		return shipments[t]
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
	var sorted []shipment
	for _, t := range all {
		sorted = append(sorted, *shipments[t])
	}
	return sorted
}

// restore takes back the sums and farewells that could not be sent: they go with the next.
func (o *overflow) restore(s *shipment) {
	o.mu.Lock()
	defer o.mu.Unlock()
	back := func(out *output) *output {
		if o.outputs[out.fp] == nil { // idle since
			o.outputs[out.fp] = out
			o.order = append(o.order, out)
			o.used += out.cost
		}
		return o.outputs[out.fp]
	}
	for _, out := range s.ended {
		back(out)
	}
	for _, sent := range s.sent {
		out := back(sent.output)
		out.total.add(sent.total)
		out.points += sent.points
		out.start = sent.start
	}
}
