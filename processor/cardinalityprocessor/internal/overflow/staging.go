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

// What is added to the overflow is staged first: noted with the batch that it came in, beside the memory that it will take.
// When the next consumer has accepted the rest of the batch it is committed, else discarded, and then nothing has happened.
// No lock is held in between, however long that takes, and other batches may come first.
//
// So nothing is worked out from the present state until the commit. What an input has grown by is the difference to the
// value that was committed last, and of two batches that are committed in another order than they came in, the earlier one
// has nothing to add any more.

// Arrival is a point to be added.
type Arrival struct {
	Metric pmetric.Metric
	Index  int
	FP     uint64
	Now    int64
	Limit  *policy.Limit
	Reason policy.Reason

	Counted bool // it may have been, as a series of its own
	Passes  bool // so that its value is counted where it goes
}

// Addition is a point that waits to be added to an output.
type Addition struct {
	FP     uint64
	output *Output
	member *Member // of the same fingerprint, if there was one
	limit  *policy.Limit
	Start  pcommon.Timestamp
	Time   pcommon.Timestamp
	number uint64 // its bits, or where in histograms the value is that is no number
	cost   int32  // of the member that it may become, or by what one may grow
	reason policy.Reason

	isFloat bool
	NoValue bool
	counted bool
	passes  bool
	partial bool // its sum could not be used

	Kind    additionKind
	Own     *Own
	Demoted bool
}

// additionKind tells what is added to an output from what a series of its own has said.
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
	room       amount.Room        // of what histograms say
	difference amount.Room        // for what one has grown by
	Owned      []uint64           // fingerprints of outputs that are to be marked as made here
	byShard    []uint32           // additions, when they are settled
	last       *Output            // that something is for; it stays until the batch is over
	outputs    map[uint64]*Output // all of those, by fingerprint
	Orphans    []*Output          // that nothing may be for
}

// value is that of an addition, which may be changed. Its counts are the batch's.
func (s *Staged) value(add *Addition, of amount.Shape) (amount.Value, *amount.Bounds) {
	switch {
	case of != amount.ShapeNumber:
		h := &s.histograms[add.number]
		return h.Value, h.Bounds
	case add.isFloat:
		return amount.Value{Numeric: amount.Numeric{Float: math.Float64frombits(add.number), IsFloat: true}}, nil
	default:
		return amount.Value{Numeric: amount.Numeric{Integer: int64(add.number)}}, nil
	}
}

// append notes an addition to an output, under the lock of its shard.
func (s *Staged) append(add *Addition, of *subtotal, v *amount.Bucketed) {
	switch {
	case v.Shape != amount.ShapeNumber:
		add.number = uint64(len(s.histograms))
		s.histograms = append(s.histograms, *v)
	case v.IsFloat:
		add.number, add.isFloat = math.Float64bits(v.Float), true
	default:
		add.number = uint64(v.Integer)
	}
	of.pins++
	if add.member != nil {
		add.member.pins++
	}
	if s.last != add.output {
		s.last = add.output
		if s.outputs == nil {
			s.outputs = map[uint64]*Output{}
		}
		s.outputs[s.last.FP] = s.last
	}
	s.Additions = append(s.Additions, *add)
}

// What a batch keeps memory for when it is over, a few MiB in all.
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
	if len(s.outputs) > maxStagedOutputs {
		s.outputs = nil
	}
	clear(s.Additions)
	clear(s.histograms)
	clear(s.outputs)
	s.room.Reset()
	s.difference.Reset()
	s.Additions, s.histograms, s.Owned, s.last = s.Additions[:0], s.histograms[:0], s.Owned[:0], nil
	s.Orphans = nil
}

// Stage finds out whether a point can be added to the output of a fingerprint, and notes it if so. When there is no output
// yet it is built; without build the point finds none.
func (o *Overflow) Stage(s *Staged, fp uint64, a *Arrival, build func() *Output) amount.Loss {
	kind, w := kindFrom(a.Metric), amount.WhenAt(a.Metric, a.Index)
	add := Addition{
		FP: a.FP, limit: a.Limit, reason: a.Reason, Start: w.Start, Time: w.Time,
		NoValue: w.NoValue, counted: a.Counted, passes: a.Passes,
	}
	var v amount.Bucketed
	if !w.NoValue {
		v.Value = amount.ValueIn(&s.room, a.Metric, a.Index)
	}
	out := s.last // fast path: the last one that it had something for is there
	if out != nil && out.FP != fp {
		out = s.outputs[fp]
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
			return amount.LossState
		}
		if lost = check(&add, &v, nil, kind, a); lost != amount.LossNone {
			return lost
		}
		out = build()
		out.FP, out.Class, out.gauge, out.Rule = fp, kind.class, a.Limit.Exceed.Gauge, a.Limit.Name
		out.Bounds.Store(v.Bounds)
		out.Cost += subtotalSize * int64(len(o.Shards))
		if out = o.found(out, a.Now); out == nil {
			return amount.LossState
		}
	}
}

// stageTo notes a point for an output: that which its input is a member of, or else the one given. It says again when there is none,
// or none any more.
func (o *Overflow) stageTo(s *Staged, out *Output, kind outputKind, add *Addition, v *amount.Bucketed, a *Arrival) (lost amount.Loss, again bool) {
	i := o.shardOf(add.FP)
	sh := &o.Shards[i]
	sh.Mu.Lock()
	defer sh.Mu.Unlock()
	if add.member = nil; kind.class.Keeps() {
		add.member = sh.Members[add.FP]
	}
	if m := add.member; m != nil {
		switch {
		case m.Output.gone.Load(): // it rests, and has nothing to go on with
			o.forget(sh, add.FP, m)
			add.member = nil
		case m.own != nil && add.Start == m.Start: // just now: it says so by itself
			return amount.LossOld, false
		default:
			out = m.Output
		}
	}
	if out == nil || out.gone.Load() {
		return amount.LossNone, true
	}
	fresh := !out.begun.Load()
	if lost = check(add, v, out, kind, a); lost != amount.LossNone {
		return lost, false
	}
	if kind.class.Keeps() && !add.NoValue {
		add.cost = int32(max(0, add.member.growth(&v.Value)))
	}
	if add.cost > 0 && !o.reserve(out.account, int64(add.cost)) {
		if fresh {
			s.Orphans = append(s.Orphans, out)
		}
		return amount.LossState, false
	}
	add.output = out
	s.append(add, out.subtotal(i), v)
	return amount.LossNone, false
}

// check says what of a point cannot be added, whatever there is room for.
func check(add *Addition, v *amount.Bucketed, out *Output, kind outputKind, a *Arrival) amount.Loss {
	mode := a.Limit.Exceed.Gauge
	if out != nil {
		if mode = out.gauge; !out.fits(kind) {
			return amount.LossKind
		}
	}
	switch {
	case kind.class == amount.ClassGauge && mode == amount.GaugeDrop:
		return amount.LossGauge
	case add.NoValue && add.member == nil:
		return amount.LossNoValue
	case add.NoValue:
		return amount.LossNone
	}
	if kind.shape == amount.ShapeNumber && !amount.Usable(v.Number(), kind.class, mode) {
		return amount.LossNotFinite
	}
	var known *amount.Bounds
	if out != nil {
		known = out.Bounds.Load()
	}
	partial, lost := v.Read(a.Metric, a.Index, known)
	add.partial = add.partial || partial // it may be looked at twice
	return lost
}
