// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import "go.opentelemetry.io/collector/pdata/pmetric"

// A series that had a place, lost it by being idle or to others, and comes back without finding one says goodbye, so that
// nobody goes on with its last value. A gauge, or a sum that goes up and down, does so at once: its point leaves marked as
// having no value, while the value goes where the rule wants it. What counts up passes once more, for all that it grows by
// from there on is counted elsewhere, and leaves marked the next time. Deltas just end.
//
// How far a series is the table tells by sets that have no groups: their ids are the first, and they never go away.
const (
	leftIdle  uint32 = iota + 1
	leftShed         // for others
	leftValue        // it said its value
	leftMark         // it said that there are no more

	leftLast = leftMark
)

// farewell is what becomes of a point of a series that lost its place.
type farewell uint8

const (
	farewellNone farewell = iota
	farewellValue
	farewellMark
)

// step is how a series that lost its place goes on: from one set of those who left to another, or to none.
type step struct{ from, to uint8 }

// departure is a step that is taken once the batch is accepted in which the series said something.
type departure struct {
	fp   uint64
	step step
}

// farewell finds out what a series that lost its place has to say, and which step that is.
func (x *sighting) farewell(fp uint64, id uint32, v *verdict) {
	if x.output { // which is not what left
		return
	}
	if to, ok := x.parted[fp]; ok { // in the same batch
		if id = to; id == 0 {
			return
		}
	}
	to := uint32(0)
	switch x.class {
	case classCumulative:
		v.counted = true
		switch {
		case id == leftMark:
			return
		case x.noValue: // it says goodbye by itself
			v.farewell, to = farewellValue, leftMark
		case id == leftValue:
			v.farewell, to = farewellMark, leftMark
		default:
			v.farewell, to = farewellValue, leftValue
		}
	case classGauge, classUpDown:
		if v.farewell = farewellMark; x.noValue {
			v.farewell = farewellValue
		}
	default:
	}
	v.step = step{from: uint8(id), to: uint8(to)}
}

// lastWord is farewell for a series whose points are counted elsewhere.
func (l *limiter) lastWord(fp uint64, x *sighting, v *verdict) {
	id, _ := l.series.touch(fp, x.moment)
	if to, ok := x.parted[fp]; ok {
		id = to
	}
	if id == leftValue {
		x.farewell(fp, id, v)
	}
}

// part notes a step, for the rest of the batch and for when it is accepted.
func (b *batch) part(fp uint64, s step) {
	if s == (step{}) {
		return
	}
	if b.parted == nil {
		b.parted = map[uint64]uint32{}
	}
	b.parted[fp] = uint32(s.to)
	b.departures = append(b.departures, departure{fp, s})
}

// part takes a step, if the series is still where it was.
func (l *limiter) part(p departure, now moment) {
	from, to := uint32(p.step.from), uint32(p.step.to)
	sh := l.series.lock(p.fp)
	defer sh.mu.Unlock()
	l.groups.mu.Lock()
	defer l.groups.mu.Unlock()
	if id, _ := sh.touch(p.fp, now); id != from {
		return
	}
	if from == 0 { // a killed process had no time to note where it was
		sh.insert(p.fp, to, now)
		l.groups.pass(to, 1)
		return
	}
	l.groups.leave(from)
	if to == 0 || from == leftValue && l.groups.remembers() <= 0 { // of who was not a member only this is known
		sh.remove(p.fp)
		return
	}
	sh.assign(p.fp, to)
	l.groups.pass(to, 1)
}

// remembers is how many more of those can be remembered who need not come back. The lock is held, here and below.
func (r *registry) remembers() int {
	return r.maxLeft - r.set(leftIdle).members - r.set(leftMark).members
}

// pass counts some who left.
func (r *registry) pass(to uint32, n int) { r.change(r.set(to), n) }

// silence marks a point as having no value. Its bounds and quantiles stay, because they are identity elsewhere.
func silence(m pmetric.Metric, i int) {
	none := pmetric.DefaultDataPointFlags.WithNoRecordedValue(true)
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		silenceNumber(m.Gauge().DataPoints().At(i), none)
	case pmetric.MetricTypeSum:
		silenceNumber(m.Sum().DataPoints().At(i), none)
	case pmetric.MetricTypeHistogram:
		dp := m.Histogram().DataPoints().At(i)
		dp.SetFlags(none)
		dp.Exemplars().RemoveIf(func(pmetric.Exemplar) bool { return true })
		dp.RemoveMin()
		dp.RemoveMax()
		dp.BucketCounts().FromRaw(make([]uint64, dp.BucketCounts().Len()))
		dp.SetCount(0)
		if dp.HasSum() {
			dp.SetSum(0)
		}
	case pmetric.MetricTypeExponentialHistogram:
		dp := m.ExponentialHistogram().DataPoints().At(i)
		dp.SetFlags(none)
		dp.Exemplars().RemoveIf(func(pmetric.Exemplar) bool { return true })
		dp.RemoveMin()
		dp.RemoveMax()
		dp.Positive().BucketCounts().FromRaw(nil)
		dp.Negative().BucketCounts().FromRaw(nil)
		dp.SetZeroCount(0)
		dp.SetCount(0)
		if dp.HasSum() {
			dp.SetSum(0)
		}
	default:
		dp := m.Summary().DataPoints().At(i)
		dp.SetFlags(none)
		dp.SetCount(0)
		dp.SetSum(0)
		for _, q := range dp.QuantileValues().All() {
			q.SetValue(0)
		}
	}
}

func silenceNumber(dp pmetric.NumberDataPoint, none pmetric.DataPointFlags) {
	dp.SetFlags(none)
	dp.Exemplars().RemoveIf(func(pmetric.Exemplar) bool { return true })
	if dp.ValueType() == pmetric.NumberDataPointValueTypeInt {
		dp.SetIntValue(0)
	} else {
		dp.SetDoubleValue(0)
	}
}
