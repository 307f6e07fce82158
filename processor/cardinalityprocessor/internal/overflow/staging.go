// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package overflow

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// What is added to the overflow is staged first: it is recorded with its batch, and the memory that it will take is
// reserved. When the next consumer has accepted the rest of the batch, it is committed; otherwise it is discarded, and
// nothing has happened. No lock is held in between, however long that takes, and other batches may be committed first.
//
// So nothing is computed from the present state before the commit. The growth of an input is the difference to the
// value committed last. If two batches are committed in another order than they came in, the earlier one has nothing to
// add.

// Arrival is a point to be added.
type Arrival struct {
	Metric pmetric.Metric
	Index  int
	FP     uint64
	Now    int64
	Limit  *policy.Limit
	Reason policy.Reason

	Counted bool // it may have been counted, as a series of its own
	Passes  bool // so that its value is counted in that series
}

// Addition is a point that waits to be added to an output.
type Addition struct {
	FP     uint64
	output *Output
	member *Member // of the same fingerprint, if there was one
	limit  *policy.Limit
	Start  pcommon.Timestamp
	Time   pcommon.Timestamp
	number uint64 // its bits, or the index in histograms of a value that is not a number
	cost   int32  // cost of the member that it may create, or growth of the existing one
	reason policy.Reason
	shard  uint8 // set when it is settled

	isFloat bool
	NoValue bool
	counted bool
	passes  bool
	partial bool // its sum could not be used

	Kind    additionKind
	Own     *Own
	Demoted bool
}

func (add *Addition) when() amount.When { return amount.When{Start: add.Start, Time: add.Time} }

// additionKind distinguishes points added to an output from points of a member's own series.
type additionKind uint8

// The kinds.
const (
	additionPlain additionKind = iota
	AdditionOwn
)

// Staged are the additions of a batch.
type Staged struct {
	Additions  []Addition
	histograms []amount.Bucketed
	arena      amount.Arena       // buffer for the values of histograms
	difference amount.Arena       // buffer for a growth
	Owned      []uint64           // fingerprints of outputs that are to be marked as made here
	byShard    []uint32           // indices of additions, while they are settled
	last       *Output            // the last output that an addition is for; it stays until the batch is done
	outputs    map[uint64]*Output // all of those, by fingerprint
	pinned     []*Output          // the same
	holding    holding
}

// value returns the value of an addition, which may be changed. Its counts are the batch's.
func (s *Staged) value(add *Addition, of amount.Shape) (amount.Value, *amount.Bounds) {
	if of != amount.ShapeNumber {
		h := &s.histograms[add.number]
		return h.Value, h.Bounds
	}
	return amount.Value{Numeric: amount.NumberOf(add.number, add.isFloat)}, nil
}

// append records an addition to an output that stays.
func (s *Staged) append(add *Addition, v *amount.Bucketed) {
	switch {
	case v.Shape != amount.ShapeNumber:
		add.number = uint64(len(s.histograms))
		s.histograms = append(s.histograms, *v)
	case v.IsFloat:
		add.number, add.isFloat = math.Float64bits(v.Float), true
	default:
		add.number = uint64(v.Integer)
	}
	s.Additions = append(s.Additions, *add)
}

// Empty reports whether there is nothing to settle.
func (s *Staged) Empty() bool { return len(s.Additions)+len(s.pinned) == 0 } // a member that is held belongs to an output that is pinned

// keep ensures that an output stays until the batch is done. The lock of any shard is held: outputs are only forgotten
// with all of them.
func (s *Staged) keep(out *Output) {
	if s.last == out {
		return
	}
	s.last = out
	if s.outputs[out.FP] == out {
		return
	}
	if s.outputs == nil {
		s.outputs = map[uint64]*Output{}
	}
	s.outputs[out.FP] = out
	s.pinned = append(s.pinned, out)
	out.pins.Add(1)
}

// release lets go of all outputs that it kept, and returns those that nothing was added to.
func (s *Staged) release() (unbegun []*Output) {
	for _, out := range s.pinned {
		if out.pins.Add(-1); !out.begun.Load() {
			unbegun = append(unbegun, out)
		}
	}
	if s.last = nil; len(s.pinned) > maxStagedOutputs {
		s.outputs, s.pinned = nil, nil
	}
	clear(s.outputs)
	clear(s.pinned)
	s.pinned = s.pinned[:0]
	return unbegun
}

// The most memory that a batch keeps when it is done, a few MiB in all.
const (
	MaxStaged           = 1 << 15
	maxStagedHistograms = 1 << 14
	maxStagedOutputs    = 1 << 12
)

// Reset empties it, and keeps some memory.
func (s *Staged) Reset() {
	if cap(s.Additions) > MaxStaged {
		s.Additions, s.byShard = nil, nil
	}
	if cap(s.histograms) > maxStagedHistograms {
		s.histograms = nil
	}
	clear(s.Additions)
	clear(s.histograms)
	clear(s.holding.holds)
	s.holding = holding{holds: s.holding.holds[:0]}
	s.arena.Reset()
	s.difference.Reset()
	s.Additions, s.histograms, s.Owned = s.Additions[:0], s.histograms[:0], s.Owned[:0]
}

// arriving is an arrival being staged.
type arriving struct {
	Arrival

	staged *Staged
	kind   outputKind
	add    Addition
	v      amount.Bucketed
	had    int64 // memory of the member before
}

// Stage finds out whether a point can be added to the output of a fingerprint, and records it if so. If there is no
// output yet it is built; without build the point finds none.
func (o *Overflow) Stage(s *Staged, fp uint64, a *Arrival, build func() *Output) amount.Loss {
	w := amount.WhenAt(a.Metric, a.Index)
	x := arriving{Arrival: *a, staged: s, kind: kindFrom(a.Metric), add: Addition{
		FP: a.FP, limit: a.Limit, reason: a.Reason, Start: w.Start, Time: w.Time,
		NoValue: w.NoValue, counted: a.Counted, passes: a.Passes,
	}}
	if !w.NoValue {
		x.v.Value = amount.ValueIn(&s.arena, a.Metric, a.Index)
	}
	out := s.last // the last output that was used is pinned
	if out != nil && out.FP != fp {
		out = s.outputs[fp]
	}
	switch {
	case s.holding.using != nil && s.holding.using.fp == a.FP && x.kind.class.Keeps(): // fast path: the member stays, and so does its output
		return o.stageHeld(&x)
	case !x.kind.class.Keeps() && out != nil && !out.gone.Load(): // fast path: there is no member, and the output stays
		return o.stageIn(&x, out)
	}
	for {
		lost, again := o.stageTo(&x, out)
		if !again {
			return lost
		}
		if out = o.find(fp); out != nil {
			continue
		}
		if build == nil {
			return amount.LossState
		}
		if lost = x.check(nil); lost != amount.LossNone {
			return lost
		}
		out = build()
		out.FP, out.Class, out.gauge, out.Rule = fp, x.kind.class, a.Limit.Exceed.Gauge, a.Limit.Name
		out.Bounds.Store(x.v.Bounds)
		out.Cost += subtotalSize * int64(len(o.Shards))
		if out = o.found(out, a.Now); out == nil {
			return amount.LossState
		}
	}
}

// stageTo records a point for an output: the one that its input is a member of, or else the one given. It reports again
// when there is none, or none any more.
func (o *Overflow) stageTo(x *arriving, out *Output) (lost amount.Loss, again bool) {
	add := &x.add
	sh := o.lock(add.FP)
	defer sh.Mu.Unlock()
	if add.member = nil; x.kind.class.Keeps() {
		add.member = sh.Members[add.FP]
	}
	if m := add.member; m != nil {
		switch {
		case m.Output.gone.Load(): // it rests, and its output no longer exists
			sh.forget(add.FP, m)
			add.member = nil
		case m.own != nil && !add.when().Anew(m.when(), pcommon.Timestamp(x.Now)): // it has just begun to report that by itself
			return amount.LossOld, false
		default:
			out = m.Output
		}
	}
	if out == nil || out.gone.Load() {
		return amount.LossNone, true
	}
	x.staged.keep(out)
	if add.member != nil {
		x.had = add.member.Cost
	}
	if lost = o.stageIn(x, out); lost == amount.LossNone && add.member != nil {
		add.member.pins++
	}
	return lost, false
}

// stageHeld records a point of a member that stays.
func (o *Overflow) stageHeld(x *arriving) amount.Loss {
	h := x.staged.holding.using
	x.add.member, x.had = h.member, h.cost
	lost := o.stageIn(x, h.member.Output)
	if lost == amount.LossNone { // from here on the addition keeps it
		h.pinned, x.staged.holding.using = false, nil
	}
	return lost
}

// stageIn records a point for an output that stays. It takes no lock.
func (o *Overflow) stageIn(x *arriving, out *Output) amount.Loss {
	add := &x.add
	if lost := x.check(out); lost != amount.LossNone {
		return lost
	}
	if x.kind.class.Keeps() && !add.NoValue {
		add.cost = int32(max(0, costOf(&x.v.Value)-x.had))
	}
	if add.cost > 0 && !o.reserve(out.account, int64(add.cost)) {
		return amount.LossState
	}
	add.output = out
	x.staged.append(add, &x.v)
	return amount.LossNone
}

// check returns what of a point cannot be added, however much room there is.
func (x *arriving) check(out *Output) amount.Loss {
	mode := x.Limit.Exceed.Gauge
	if out != nil {
		if mode = out.gauge; !out.fits(x.kind) {
			return amount.LossKind
		}
	}
	switch {
	case x.kind.class == amount.ClassGauge && mode == amount.GaugeDrop:
		return amount.LossGauge
	case x.add.NoValue && x.add.member == nil:
		return amount.LossNoValue
	case x.add.NoValue:
		return amount.LossNone
	}
	if x.kind.shape == amount.ShapeNumber && !amount.Usable(x.v.Number(), x.kind.class, mode) {
		return amount.LossNotFinite
	}
	var known *amount.Bounds
	if out != nil {
		known = out.Bounds.Load()
	}
	partial, lost := x.v.Read(x.Metric, x.Index, known)
	x.add.partial = x.add.partial || partial // the point may be checked twice
	return lost
}
