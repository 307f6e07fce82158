// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"math"

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

	kind    additionKind
	own     *own
	demoted bool
}

// additionKind tells what is added to an output from what a series of its own has said.
type additionKind uint8

const (
	additionPlain additionKind = iota
	additionOwn
)

// staged are the additions of a batch.
type staged struct {
	additions  []addition
	histograms []bucketed
	owned      []uint64  // fingerprints of outputs that are to be marked as made here
	byShard    []uint32  // additions, when they are settled
	last       *output   // that something is for; it stays until the batch is over
	orphans    []*output // that nothing may be for
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
		return value{numeric: numeric{float: math.Float64frombits(add.number), isFloat: true}}, nil
	default:
		return value{numeric: numeric{integer: int64(add.number)}}, nil
	}
}

// append notes an addition to an output, under the lock of its shard.
func (s *staged) append(add *addition, of *subtotal, v *bucketed) {
	switch {
	case v.shape != shapeNumber:
		add.number = uint64(len(s.histograms))
		s.histograms = append(s.histograms, *v)
	case v.isFloat:
		add.number, add.isFloat = math.Float64bits(v.float), true
	default:
		add.number = uint64(v.integer)
	}
	of.pins++
	if add.member != nil {
		add.member.pins++
	}
	s.last = add.output
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
		s.additions, s.byShard = nil, nil
	}
	if cap(s.histograms) > maxStagedHistograms {
		s.histograms = nil
	}
	clear(s.additions)
	clear(s.histograms)
	s.additions, s.histograms, s.owned, s.last = s.additions[:0], s.histograms[:0], s.owned[:0], nil
	s.orphans = nil
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
	out := s.last // fast path: the last one that it had something for is there
	if out != nil && out.fp != fp {
		out = nil
	}
	for {
		lost, again := o.stageTo(s, out, kind, &add, &v, a)
		if !again {
			return lost
		}
		if out = o.find(fp); out != nil {
			continue
		}
		if build == nil {
			return lossState
		}
		if lost = check(&add, &v, nil, kind, a); lost != lossNone {
			return lost
		}
		out = build()
		out.fp, out.class, out.gauge, out.rule = fp, kind.class, a.limit.exceed.gauge, a.limit.name
		out.bounds.Store(v.bounds)
		out.cost += subtotalSize * int64(len(o.shards))
		if out = o.found(out, a.now); out == nil {
			return lossState
		}
	}
}

// stageTo notes a point for an output: that which its input is a member of, or else the one given. It says again when there is none,
// or none any more.
func (o *overflow) stageTo(s *staged, out *output, kind outputKind, add *addition, v *bucketed, a *arrival) (lost loss, again bool) {
	i := o.shardOf(add.fp)
	sh := &o.shards[i]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if add.member = nil; kind.class.keeps() {
		add.member = sh.members[add.fp]
	}
	if m := add.member; m != nil {
		switch {
		case m.output.gone.Load(): // it rests, and has nothing to go on with
			o.forget(sh, add.fp, m)
			add.member = nil
		case m.own != nil && add.start == m.start: // just now: it says so by itself
			return lossOld, false
		default:
			out = m.output
		}
	}
	if out == nil || out.gone.Load() {
		return lossNone, true
	}
	fresh := !out.begun.Load()
	if lost = check(add, v, out, kind, a); lost != lossNone {
		return lost, false
	}
	if kind.class.keeps() && !add.noValue {
		add.cost = int32(max(0, add.member.growth(&v.value)))
	}
	if add.cost > 0 && !o.reserve(out.account, int64(add.cost)) {
		if fresh {
			s.orphans = append(s.orphans, out)
		}
		return lossState, false
	}
	add.output = out
	s.append(add, out.subtotal(i), v)
	return lossNone, false
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
	if kind.shape == shapeNumber && !usable(v.number(), kind.class, mode) {
		return lossNotFinite
	}
	var known *bounds
	if out != nil {
		known = out.bounds.Load()
	}
	partial, lost := v.read(a.metric, a.index, known)
	add.partial = add.partial || partial // it may be looked at twice
	return lost
}

// read finds out in which bounds a value came, and whether it can be added to others that have known ones. It says whether
// its sum cannot be used.
func (v *bucketed) read(m pmetric.Metric, i int, known *bounds) (partial bool, lost loss) {
	switch v.shape {
	case shapeHistogram:
		of, ok := boundsOf(m.Histogram().DataPoints().At(i), known)
		if !ok || known != nil && known.common(of) == nil {
			return false, lossBounds
		}
		v.bounds = of
	case shapeExponential:
		if !finite(v.zeroThreshold) || v.zeroThreshold < 0 {
			return false, lossNotFinite
		}
		if v.scale < minScale || v.scale > maxScale {
			return false, lossBounds
		}
	default:
	}
	if v.hasSum && !finite(v.sum) {
		v.sum, v.hasSum, partial = 0, false, true
	}
	return partial, lossNone
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
