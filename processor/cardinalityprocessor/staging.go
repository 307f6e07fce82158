// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// What is added to the overflow is staged first: noted with the batch that it came in, beside the memory that it will take.
// When the next consumer has accepted the rest of the batch it is committed, else discarded, and then nothing has happened.
// No lock is held in between, however long that takes, and other batches may come first.
//
// So nothing is worked out from the present state until the commit. What an input has grown by is the difference to the
// value that was committed last, and of two batches that are committed in another order than they came in, the earlier one
// has nothing to add any more.

// arrival is a point to be added.
type arrival struct {
	metric pmetric.Metric
	index  int
	fp     uint64
	now    int64
	limit  *limit
	reason reason

	counted bool // it may have been, as a series of its own
	passes  bool // so that its value is counted where it goes
}

// addition is a point that waits to be added to an output.
type addition struct {
	fp     uint64
	output *output
	member *member // of the same fingerprint, if there was one
	limit  *limit
	start  pcommon.Timestamp
	time   pcommon.Timestamp
	number uint64 // its bits, or where in histograms the value is that is no number
	cost   int32  // of the member that it may become, or by what one may grow
	reason reason

	isFloat bool
	noValue bool
	counted bool
	passes  bool
	partial bool // its sum could not be used
}

// staged are the additions of a batch.
type staged struct {
	additions  []addition
	histograms []bucketed
	owned      []uint64 // fingerprints of outputs that are to be marked as made here
}

// bucketed is a value that is no number, with the bounds that it came in.
type bucketed struct {
	value

	bounds *bounds
}

// value is that of an addition, which may be changed.
func (s *staged) value(add *addition, of shape) (value, *bounds) {
	switch {
	case of != shapeNumber:
		h := &s.histograms[add.number]
		return h.value, h.bounds
	case add.isFloat:
		return value{float: math.Float64frombits(add.number), isFloat: true}, nil
	default:
		return value{integer: int64(add.number)}, nil
	}
}

// append notes an addition to an output.
func (s *staged) append(add *addition, out *output, v *bucketed) {
	switch {
	case v.shape != shapeNumber:
		add.number = uint64(len(s.histograms))
		s.histograms = append(s.histograms, *v)
	case v.isFloat:
		add.number, add.isFloat = math.Float64bits(v.float), true
	default:
		add.number = uint64(v.integer)
	}
	add.output = out
	out.pins++
	s.additions = append(s.additions, *add)
}

// What a batch keeps memory for when it is over, a few MiB in all.
const (
	maxStaged           = 1 << 15
	maxStagedHistograms = 1 << 14
)

// reset lets go of all, and keeps some memory.
func (s *staged) reset() {
	if cap(s.additions) > maxStaged {
		s.additions = nil
	}
	if cap(s.histograms) > maxStagedHistograms {
		s.histograms = nil
	}
	clear(s.additions)
	clear(s.histograms)
	s.additions, s.histograms, s.owned = s.additions[:0], s.histograms[:0], s.owned[:0]
}

// stage finds out whether a point can be added to the output of a fingerprint, and notes it if so. When there is no output
// yet it is built; without build the point finds none.
func (o *overflow) stage(s *staged, fp uint64, a *arrival, build func() *output) loss {
	kind, w := kindFrom(a.metric), whenAt(a.metric, a.index)
	add := addition{
		fp: a.fp, limit: a.limit, reason: a.reason, start: w.start, time: w.time,
		noValue: w.noValue, counted: a.counted, passes: a.passes,
	}
	var v bucketed
	if !w.noValue {
		v.value = valueAt(a.metric, a.index)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	out := o.outputs[fp]
	if kind.class.keeps() {
		if add.member = o.members[a.fp]; add.member != nil {
			out = add.member.output
		}
	}
	if out == nil && build == nil {
		return lossState
	}
	if lost := check(&add, &v, out, kind, a); lost != lossNone {
		return lost
	}
	if kind.class.keeps() && !w.noValue {
		add.cost = int32(max(0, add.member.growth(&v.value)))
	}
	fresh := out == nil
	cost := int64(add.cost)
	if fresh {
		out = build()
		out.fp, out.class, out.gauge, out.start, out.rule = fp, kind.class, a.limit.exceed.gauge, o.begin, a.limit.name
		if kind.class == classDelta {
			out.start = pcommon.Timestamp(a.now)
		}
		out.setBounds(v.bounds)
		cost += out.cost
	}
	if cost > 0 && o.used+o.staged+cost-o.rested > o.budget { // who rests is forgotten for it, but not before the commit
		return lossState
	}
	if fresh {
		out.detach()
		o.outputs[fp] = out
		o.used += out.cost
	}
	o.staged += int64(add.cost)
	s.append(&add, out, &v)
	return lossNone
}

// check says what of a point cannot be added, whatever there is room for.
func check(add *addition, v *bucketed, out *output, kind outputKind, a *arrival) loss {
	mode := a.limit.exceed.gauge
	if out != nil {
		if mode = out.gauge; !out.fits(kind) {
			return lossKind
		}
	}
	switch {
	case kind.class == classGauge && mode == gaugeDrop:
		return lossGauge
	case add.noValue && add.member == nil:
		return lossNoValue
	case add.noValue:
		return lossNone
	}
	switch kind.shape {
	case shapeNumber:
		if !usable(v.number(), kind.class, mode) {
			return lossNotFinite
		}
	case shapeHistogram:
		var known *bounds
		if out != nil {
			known = out.bounds
		}
		of, ok := boundsOf(a.metric.Histogram().DataPoints().At(a.index), known)
		if !ok || known != nil && known.common(of) == nil {
			return lossBounds
		}
		v.bounds = of
	case shapeExponential:
		if !finite(v.zeroThreshold) || v.zeroThreshold < 0 {
			return lossNotFinite
		}
		if v.scale < minScale || v.scale > maxScale {
			return lossBounds
		}
	default:
	}
	if v.hasSum && !finite(v.sum) {
		v.sum, v.hasSum, add.partial = 0, false, true
	}
	return lossNone
}

// At scales below, all that there is lies in the two buckets around 1; above, buckets are closer together than numbers.
const minScale, maxScale = -32, 64

// usable says whether a number can be part of a sum. A gauge may be any number where numbers are not added up.
func usable(n float64, c class, mode gaugeMode) bool {
	switch {
	case c != classGauge || mode == gaugeMean:
		return finite(n)
	case mode == gaugeLast:
		return true
	default:
		return !math.IsNaN(n) // which is neither more nor less
	}
}

// settlement is what a commit knows beside the overflow.
type settlement struct {
	*staged

	epoch  uint32
	now    time.Time
	placed func(fp uint64) bool // whether a series has a place by now, and says all by itself
	lost   *[losses]int64
}

// mostAhead is by how much the clock of an input may be ahead. A point from later than that, by mistake, must not make all
// that come after it too old.
const mostAhead = time.Hour

func (c *settlement) latest() pcommon.Timestamp {
	return pcommon.NewTimestampFromTime(c.now.Add(mostAhead))
}

// committedAtOnce is how many points are added while others wait.
const committedAtOnce = 256

// commit adds what was staged.
func (o *overflow) commit(c *settlement) {
	for some := range slices.Chunk(c.additions, committedAtOnce) {
		o.commitSome(c, some)
	}
}

func (o *overflow) commitSome(c *settlement, some []addition) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range some {
		add := &some[i]
		o.staged -= int64(add.cost)
		var lost loss
		if add.output.class.keeps() {
			lost = o.settleMember(c, add)
		} else {
			lost = o.settlePlain(c, add)
		}
		c.lost[lost]++
		if out := add.output; lost.taken() && out.owned != c.epoch+1 {
			out.owned = c.epoch + 1
			c.owned = append(c.owned, out.fp)
		}
		o.unpin(add.output)
	}
}

// discard forgets what was staged.
func (o *overflow) discard(s *staged) {
	if len(s.additions) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range s.additions {
		o.staged -= int64(s.additions[i].cost)
		o.unpin(s.additions[i].output)
	}
}

// unpin forgets an output that nothing was ever added to, when nobody is left who would.
func (o *overflow) unpin(out *output) {
	if out.pins--; out.pins == 0 && !out.begun {
		o.used -= out.cost
		delete(o.outputs, out.fp)
	}
}

// grew notes that a point was added to an output, without a sum if it is bare.
func (o *overflow) grew(out *output, c *settlement, add *addition, bare bool) {
	o.install(out)
	out.points++
	out.seen = c.epoch
	switch {
	case add.partial:
		c.lost[lossNotFinite]++
	case bare && out.total.hasSum:
		c.lost[lossNoSum]++
	}
}

// settlePlain adds a delta, or a gauge.
func (o *overflow) settlePlain(c *settlement, add *addition) loss {
	out := add.output
	v, of := c.value(add, shapeOf(out.metric))
	if !out.agree(&v, of) {
		return lossBounds
	}
	o.grew(out, c, add, !v.hasSum)
	switch {
	case out.class == classGauge && out.points == 1:
		out.total = v
	case out.class == classGauge && out.gauge != gaugeMean:
		out.blend(v)
	case !out.total.add(v):
		return lossNotFinite
	}
	return lossNone
}

// blend is for gauges that are not added up.
func (out *output) blend(v value) {
	if out.gauge == gaugeLast ||
		out.gauge == gaugeMin && v.number() < out.total.number() ||
		out.gauge == gaugeMax && v.number() > out.total.number() {
		out.total = v
	}
}

// settleMember adds what a cumulative input has grown by.
func (o *overflow) settleMember(c *settlement, add *addition) loss {
	out, m := add.output, add.member
	if m == nil || m.gone { // another batch may have come first
		m = o.members[add.fp]
	}
	if m != nil {
		out = m.output
	}
	switch {
	case !out.fits(add.output.kind()):
		return lossKind
	case add.noValue:
		if m != nil && !m.rests { // it may come back: a scrape that failed says so of all that it had
			o.rest(add.fp, m)
		}
		return lossNoValue
	case m != nil && add.time <= m.time, m == nil && c.placed(add.fp):
		return lossOld
	}
	v, of := c.value(add, shapeOf(out.metric))
	if !out.agree(&v, of) {
		return lossBounds
	}
	if !o.afford(m, m.growth(&v)) {
		return lossState
	}
	var lost loss
	bare := !v.hasSum
	if m == nil {
		if lost = out.begins(&v, add, o); lost == lossNotFinite {
			return lost
		}
		m = &member{output: out}
		o.members[add.fp] = m
		out.members++
	} else {
		if lost = out.goesOn(&v, add, o, m); lost == lossNotFinite {
			return lost
		}
		if m.rests {
			o.wake(m)
		}
	}
	o.used += m.growth(&v)
	m.limit, m.reason, m.cost = add.limit, add.reason, v.memberCost()
	m.start, m.time, m.last, m.bounds, m.seen = add.start, min(add.time, c.latest()), v, out.bounds, c.epoch
	o.grew(out, c, add, bare)
	return lost
}

// growth is by how much more memory a member takes with a new value. Without a member it is that of a new one.
func (m *member) growth(v *value) int64 {
	if m == nil {
		return v.memberCost()
	}
	return v.memberCost() - m.cost
}

// afford says whether there is memory for a member to grow by so much, and makes room for it.
func (o *overflow) afford(m *member, growth int64) bool {
	if growth <= 0 {
		return true
	}
	if m != nil && m.rests { // it has come back, and is not to be forgotten for its own sake
		o.wake(m)
	}
	o.forgetOldest(o.used + o.staged + growth - o.budget)
	return o.used+growth <= o.budget
}

// begins adds what a new member has said so far, unless that was counted elsewhere.
func (out *output) begins(v *value, add *addition, o *overflow) loss {
	switch {
	case add.passes:
		return lossNone
	case out.class == classUpDown || !add.counted && o.whole(out, add.start, add.time):
		return out.addAll(v, add)
	default:
		return lossBaseline
	}
}

// goesOn adds what a member has grown by.
func (out *output) goesOn(v *value, add *addition, o *overflow, m *member) loss {
	if add.passes { // a place of its own has said it
		return lossNone
	}
	last := m.last
	last.cells = m.bounds.coarsen(last.cells, out.bounds)
	if out.class == classUpDown {
		lost := out.sum(*v, add)
		if lost == lossNone {
			out.total.add(last.opposite())
		}
		return lost
	}
	grown, ok := v.minus(last)
	switch {
	case ok && add.start == m.start:
		if !v.hasSum { // the next one may have it again
			v.sum, v.hasSum = last.sum, last.hasSum
		}
		return out.sum(grown, add)
	case add.start != m.start && (add.start == add.time || add.start < o.certain): // begun anew, and may be known elsewhere
		return lossBaseline
	default:
		return out.addAll(v, add)
	}
}

// addAll adds all of an input's value. If it has no sum yet then all of that is to be added later.
func (out *output) addAll(v *value, add *addition) loss {
	lost := out.sum(v.clone(), add)
	if v.shape != shapeNumber {
		v.hasSum = true
	}
	return lost
}

// sum adds to the total. A number that would make it infinite is left out as a whole, of a histogram only its sum is.
func (out *output) sum(v value, add *addition) loss {
	if out.total.add(v) {
		return lossNone
	}
	if v.shape == shapeNumber {
		return lossNotFinite
	}
	add.partial = true // as if it had none
	return lossNone
}

// whole says whether all of a new member's value is its output's: it began after the output did, and so lately that it
// cannot have been counted elsewhere, as an admitted series or a member, and been forgotten for being idle, or by a process
// that was killed.
func (o *overflow) whole(out *output, start, at pcommon.Timestamp) bool {
	return start != 0 && start < at && start >= max(out.start, o.certain) && time.Duration(at-start) < o.idle
}

// agree brings a value, and the output if it needs be, to the bounds that both have.
func (out *output) agree(v *value, of *bounds) bool {
	if v.shape != shapeHistogram || of == out.bounds {
		return true
	}
	both := out.bounds.common(of)
	if both == nil && out.bounds != nil {
		return false
	}
	if both != out.bounds {
		out.total.cells = out.bounds.coarsen(out.total.cells, both)
		out.setBounds(both)
	}
	v.cells = of.coarsen(v.cells, both)
	return true
}

func (out *output) setBounds(b *bounds) {
	out.bounds = b
	if b != nil {
		out.metric.Histogram().DataPoints().At(0).ExplicitBounds().FromRaw(b.upper)
	}
}
