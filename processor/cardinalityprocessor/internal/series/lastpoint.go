// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
)

// A series that had a place, lost it by being idle or to others, and comes back without finding one is sent an end, so
// that nobody continues with its last value. A gauge, or a sum that goes up and down, ends at once: its point is sent
// marked as having no value, while the value goes where the rule wants it. A counter passes once more, since its
// further increments are counted elsewhere, and is marked the next time. Deltas just end.
//
// The table records how far a series is by sets without groups: their ids are the first ones, and they never go away.
const (
	LeftIdle  uint32 = iota + 1
	leftShed         // to give room to others
	LeftValue        // its last value was sent
	leftMark         // its end was sent

	LeftLast = leftMark
)

// LastPoint is what becomes of a point of a series that lost its place.
type LastPoint uint8

// The possible last points.
const (
	NoLastPoint LastPoint = iota
	LastValue
	EndMark
)

// Step is the progress of a series that lost its place: from one set of those who left to another, or to none.
type Step struct{ From, To uint8 }

// Departure is a step that is taken once the batch with the series' point is accepted.
type Departure struct {
	FP   uint64
	Step Step
}

// lastPoint determines what must be sent for a series that lost its place, and the step.
func (x *Sighting) lastPoint(fp uint64, id uint32, v *Verdict) {
	if x.Output { // made here, so it did not leave
		return
	}
	if to, ok := x.Parted[fp]; ok { // earlier in the same batch
		if id = to; id == 0 {
			return
		}
	}
	to := uint32(0)
	switch x.Class {
	case amount.ClassCumulative:
		v.Counted = true
		switch {
		case id == leftMark:
			return
		case x.NoValue: // the point is a stale marker itself
			v.Last, to = LastValue, leftMark
		case id == LeftValue:
			v.Last, to = EndMark, leftMark
		default:
			v.Last, to = LastValue, LeftValue
		}
	case amount.ClassGauge, amount.ClassUpDown:
		if v.Last = EndMark; x.NoValue {
			v.Last = LastValue
		}
	default:
	}
	v.Step = Step{From: uint8(id), To: uint8(to)}
}

// LastWord is lastPoint for a series whose points are counted elsewhere, and whose set is known.
func (x *Sighting) LastWord(fp uint64, id uint32, v *Verdict) {
	if to, ok := x.Parted[fp]; ok {
		id = to
	}
	if id == LeftValue {
		x.lastPoint(fp, id, v)
	}
}

// Part takes a step, if the series is still where it was. For a member, what it has sent is recorded elsewhere, too;
// for others it is recorded here, even if there is no room, or they would be sent once more when they are added up.
func (l *Limiter) Part(p Departure, member bool, now moment.Moment) {
	from, to := uint32(p.Step.From), uint32(p.Step.To)
	sh := l.Series.Lock(p.FP)
	defer sh.Mu.Unlock()
	l.Groups.Mu.Lock()
	defer l.Groups.Mu.Unlock()
	if id, _ := sh.touch(p.FP, Nowhere, now.EpochOf(p.FP)); id != from {
		return
	}
	if from == 0 { // a killed process had no time to record it
		l.Unplaced.Add(1)
		sh.Insert(p.FP, to, now)
		l.Groups.pass(to, 1)
		return
	}
	l.Groups.leave(from)
	if to == 0 || from == LeftValue && member && l.Groups.remembers() <= 0 {
		sh.remove(p.FP)
		return
	}
	sh.assign(p.FP, to)
	l.Groups.pass(to, 1)
}

// remembers is how many more of those who left can be remembered. Those who must be, because they were shed or have
// sent their value, count: or series that end and come back again and again would take unlimited memory. The lock is
// held, here and below.
func (r *registry) remembers() int {
	n := r.MaxLeft
	for id := LeftIdle; id <= LeftLast; id++ {
		n -= r.Set(id).Members
	}
	return n
}

// pass counts series that left.
func (r *registry) pass(to uint32, n int) { r.change(r.Set(to), n) }

// End takes the place of a series, and reports whether it had one. It is remembered among those who left, or not at
// all.
func (l *Limiter) End(fp uint64, to uint32, now moment.Moment) bool {
	sh := l.Series.Lock(fp)
	defer sh.Mu.Unlock()
	l.Groups.Mu.Lock()
	defer l.Groups.Mu.Unlock()
	id, _ := sh.touch(fp, Nowhere, now.EpochOf(fp))
	if id <= LeftLast || l.Groups.Set(id).Output {
		return false
	}
	if to != 0 && l.Groups.remembers() <= 0 { // it keeps its place: its last value must be known when it comes back
		return false
	}
	l.Groups.depart(id, now.Epoch()/moment.IdleEpochs)
	if to == 0 {
		sh.remove(fp)
		return true
	}
	sh.assign(fp, to)
	l.Groups.pass(to, 1)
	return true
}

// Lapse takes the place of a series that is a member, unless it has it as one: a killed process had no time to record
// it. Its value has been sent. A series of its own is not among those who left. It reports whether the place is kept.
func (l *Limiter) Lapse(fp uint64, now moment.Moment, owns bool) (keeps bool) {
	sh := l.Series.Lock(fp)
	defer sh.Mu.Unlock()
	l.Groups.Mu.Lock()
	defer l.Groups.Mu.Unlock()
	id, _ := sh.touch(fp, Nowhere, now.EpochOf(fp))
	switch {
	case id == 0 || l.Groups.Set(id).Output:
	case l.Groups.Set(id).Promoted:
		return true
	case owns:
		l.Groups.leave(id)
		sh.remove(fp)
		l.Losses.Add(1)
	case id != LeftValue && id != leftMark:
		l.Groups.leave(id)
		sh.assign(fp, LeftValue)
		l.Groups.pass(LeftValue, 1)
		l.Losses.Add(1)
	}
	return false
}
