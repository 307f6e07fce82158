// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/series"
)

// A page may have series that are rejected each time, because a group is full. If nothing else must be decided about a
// metric, and its rejected points are dropped, or sampled by their fingerprint, then they are remembered as well. The next
// equal page loses the same points without a lookup, and they are counted alike, as long as no place in these groups has
// become free or was taken. Rules with a pace, fair shares and values that are added up elsewhere need each point.

// rejections is what is known about the rejected points of a page.
type rejections struct {
	metrics    []rejectedMetric
	drop       []bool // points of these metrics, if any are dropped
	counts     []rejectedCount
	conditions []series.Condition // of all
	alive      []*policy.Limit    // that match any of the points
	unplaced   uint64
}

// rejectedMetric is a metric with rejected points, all of which will be rejected again.
type rejectedMetric struct {
	index         int   // among those that are not exempt
	begin, end    int   // range in drop
	first, counts int   // range of its counts
	gauges        int64 // losses of gauges
}

type rejectedCount struct {
	limit  *policy.Limit
	why    policy.Reason
	what   policy.Action
	points int64
}

// rejecting is what a batch finds out about the rejected points of the current page.
type rejecting struct {
	*rejections // nil if there is nothing yet

	undecided    bool   // some of the current metric must be decided about each time
	hasSome      bool   // it has some that will be rejected again
	gauges       int64  // losses of gauges
	before       int64  // the batch's, before the current point
	unplacedThen uint64 // Limiter.Unplaced when the page came

	conditions, alive int // of earlier metrics

	repeated    *rejections // what is known and holds; nil if nothing is
	nextMetric  int         // the next of its metrics
	admitted    int64       // series that had been admitted when that was found out
	anyRepeated bool        // some metrics lost what they lost the last time
}

// kept returns the memory for the next page.
func (s *rejecting) kept() rejecting {
	r := s.rejections
	if r != nil {
		*r = rejections{metrics: r.metrics[:0], drop: r.drop[:0], counts: r.counts[:0], conditions: r.conditions[:0], alive: r.alive[:0]}
	}
	return rejecting{rejections: r}
}

// noteRejection records that the current point is rejected, if it will be rejected again while its conditions hold.
func (b *Batch) noteRejection(i int, v *ruling, what policy.Action) {
	a := &b.page
	if a.undecided || b.page.page == nil {
		return
	}
	a.undecided = true
	lost := b.losses[amount.LossGauge] - a.before
	if !b.AtOnce || v.Waits || v.Last != series.NoLastPoint || v.held != nil || !b.isFixed(v.Limit, what, lost) {
		return
	}
	if a.rejections == nil {
		a.rejections = &rejections{}
	}
	var ok bool
	r := a.rejections
	if r.conditions, ok = b.g.Limiter.AppendConditions(r.conditions, b.fps[i], &b.Sighting); !ok {
		return
	}
	a.undecided, a.hasSome, b.rests = false, true, true
	a.gauges += lost
	for j := range b.Places {
		if l := b.Places[j].Limit; !slices.Contains(r.alive, l) {
			r.alive = append(r.alive, l)
		}
	}
	for j := r.counted(len(r.metrics)); j < len(r.counts); j++ {
		if c := &r.counts[j]; c.limit == v.Limit && c.why == v.Reason && c.what == what {
			c.points++
			return
		}
	}
	r.counts = append(r.counts, rejectedCount{v.Limit, v.Reason, what, 1})
}

// isFixed reports whether what became of a rejected point depends on its fingerprint alone. lost is how often a gauge
// could not be added up.
func (b *Batch) isFixed(l *policy.Limit, what policy.Action, lost int64) bool {
	if what != policy.ActionDrop && what != policy.ActionSample {
		return false
	}
	adding, may := int64(0), false
	for _, tried := range l.Exceed.Actions {
		may = may || adds(tried)
		if tried == policy.ActionOverflow {
			adding++
		}
	}
	if !may {
		return true
	}
	if b.at.m.Type() != pmetric.MetricTypeGauge || lost != adding {
		return false
	}
	for _, other := range b.Policy.Limits { // one of which might make a series that this point is added to
		if other.Exceed.Gauge != amount.GaugeDrop {
			return false
		}
	}
	return true
}

// counted returns the beginning of a metric's counts.
func (r *rejections) counted(metric int) int {
	if metric == 0 {
		return 0
	}
	return r.metrics[metric-1].counts
}

// endMetric records the points that the current metric loses, if it has rejected points and nothing else must be decided
// about it. It reports whether it has some.
func (s *rejecting) endMetric(index int, known bool, drop []bool) (some bool) {
	r := s.rejections
	if some = s.hasSome; some && known && !s.undecided {
		begin := len(r.drop)
		r.drop = append(r.drop, drop...)
		r.metrics = append(r.metrics, rejectedMetric{index, begin, len(r.drop), r.counted(len(r.metrics)), len(r.counts), s.gauges})
		s.conditions, s.alive = len(r.conditions), len(r.alive)
	} else if r != nil {
		r.counts, r.conditions, r.alive = r.counts[:r.counted(len(r.metrics))], r.conditions[:s.conditions], r.alive[:s.alive]
	}
	s.undecided, s.hasSome, s.gauges = false, false, 0
	return some
}

// take returns what was found out about the rejected points of the current page, nil if none will be rejected again.
func (s *rejecting) take() *rejections {
	r := s.rejections
	if r == nil || len(r.metrics) == 0 {
		return nil
	}
	s.rejections, r.unplaced = nil, s.unplacedThen
	return r
}

// window is the period of an epoch in which statistics hear of each rejected series once.
func window(m moment.Moment) uint32 { return m.Epoch() / moment.IdleEpochs }

// hold reports whether points of a page are rejected as the last time.
func (b *Batch) hold(r *rejections) bool {
	l := b.g.Limiter
	b.page.admitted = l.Admitted.Load()
	return l.Unplaced.Load() == r.unplaced && l.Hold(r.conditions)
}

// stillHold is hold for the rest of a page, of which some metrics were decided about.
func (b *Batch) stillHold() bool {
	return b.page.admitted == b.g.Limiter.Admitted.Load() || b.hold(b.page.repeated)
}

// nextRejected returns the metric with an index, counted in order, if it loses what it lost the last time.
func (s *rejecting) nextRejected(index int) *rejectedMetric {
	if s.repeated == nil {
		return nil
	}
	for s.nextMetric < len(s.repeated.metrics) && s.repeated.metrics[s.nextMetric].index < index {
		s.nextMetric++
	}
	if s.nextMetric == len(s.repeated.metrics) || s.repeated.metrics[s.nextMetric].index > index {
		return nil
	}
	return &s.repeated.metrics[s.nextMetric]
}

// passExceptRejected lets a familiar page pass, except what it lost the last time. It reports whether it lost its last metric.
func (b *Batch) passExceptRejected(metrics pmetric.MetricSlice) (gone bool) {
	k := &b.page.known
	if b.words != nil {
		b.refused = append(b.refused, k.refused)
	}
	if k.refused == nil {
		return false
	}
	index := 0
	b.metrics.begin()
	for i := range metrics.Len() {
		m := metrics.At(i)
		if len(b.Policy.Exempt) > 0 {
			if b.Owner.Metric = m.Name(); b.passes() {
				b.metrics.add(amount.PointCount(m) > 0, false)
				continue
			}
		}
		if of := b.page.nextRejected(index); of != nil {
			b.rejectAgain(m, of)
		} else {
			b.metrics.add(k.shape.PointsOf(index) > 0, false)
		}
		index++
	}
	return b.removeMetrics(metrics)
}

// rejectAgain rejects the same points of a metric as the last time.
func (b *Batch) rejectAgain(m pmetric.Metric, of *rejectedMetric) {
	r := b.page.repeated
	if !b.page.anyRepeated {
		b.page.anyRepeated = true
		for _, l := range r.alive {
			l.Alive.Match(b.Now)
		}
	}
	for i := of.first; i < of.counts; i++ {
		c := &r.counts[i]
		b.count(c.limit)[c.why][c.what] += c.points
	}
	b.losses[amount.LossGauge] += of.gauges
	if b.g.DryRun || of.begin == of.end {
		b.metrics.add(true, false)
		return
	}
	left := b.removePoints(m, r.drop[of.begin:of.end]) > 0
	b.metrics.add(left, !left)
}
