// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// What aggregates have come to is poured at the interval of their rule: through the limits, as if it came in, and on. Before
// that it is noted for a restart, so that nothing that anybody has seen is forgotten.

// pouring is a message of what was made.
type pouring struct {
	*shipment

	said  []said
	rules map[*aggregation]int64 // points
}

// said is what a pouring took out of an aggregate.
type said struct {
	of     *aggregate
	total  bucketed // of deltas
	points int
	start  pcommon.Timestamp
	ends   bool
}

// pours pours what is due, until the context ends.
func (p *cardinalityProcessor) pours(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.aggregator.changed:
		case <-timer.C:
		}
		now := p.now()
		if due := p.aggregator.plan(now); len(due) > 0 {
			p.pour(ctx, due)
			now = p.now()
		}
		timer.Reset(p.aggregator.until(now))
	}
}

// idlePlan is how long to wait for rules that aggregate when there are none.
const idlePlan = time.Hour

// until is how long nothing is due.
func (a *aggregator) until(now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	wait := idlePlan
	for _, s := range a.states {
		wait = min(wait, s.due.Sub(now))
	}
	return max(wait, 0)
}

// plan returns what is due, with the times that it is due at, and notes when it is next.
func (a *aggregator) plan(now time.Time) (due map[*aggregationState]pcommon.Timestamp) {
	a.mu.Lock()
	defer a.mu.Unlock()
	due = map[*aggregationState]pcommon.Timestamp{}
	for _, s := range a.states {
		if s.due.IsZero() || s.due.After(now.Add(2*s.interval)) { // the clock went back
			s.due = next(now, s.interval)
		}
		if !s.due.After(now) {
			due[s] = pcommon.NewTimestampFromTime(now.Truncate(s.interval))
			s.due = next(now, s.interval)
		}
	}
	return due
}

// all has every state due.
func (a *aggregator) all(now time.Time) map[*aggregationState]pcommon.Timestamp {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := map[*aggregationState]pcommon.Timestamp{}
	for _, s := range a.states {
		all[s] = pcommon.NewTimestampFromTime(now)
	}
	return all
}

// pour sends what the given rules have made.
func (p *cardinalityProcessor) pour(ctx context.Context, due map[*aggregationState]pcommon.Timestamp) {
	a := p.aggregator
	a.flushing.Lock()
	defer a.flushing.Unlock()
	epoch := p.limiter.now().epoch()
	if a.aged != epoch {
		a.aged = epoch
		a.age(epoch)
	}
	saves := p.storage != nil && !p.dryRun
	a.drain(due, saves)
	a.adopt()
	if saves && p.saveFeeders(ctx, due) != nil && ctx.Err() == nil {
		p.saveFailure.Add(1)
	}
	worst, points, cause := deliveryTaken, 0, error(nil)
	pourings := a.put(due)
	for _, s := range pourings {
		err := p.send(ctx, s)
		of := deliveryOf(err)
		if of == deliveryTaken {
			continue
		}
		if errors.Is(err, errRoadClosed) { // it goes with the next process
			a.takeBack(s, true)
			continue
		}
		p.telemetry.ProcessorCardinalityAggregateRefusedPoints.Add(ctx, int64(s.points), deliveryOptions[of])
		lost := a.takeBack(s, of != deliveryPermanent)
		if lost > 0 {
			p.telemetry.ProcessorCardinalityAggregateFailedPoints.Add(ctx, int64(lost))
		}
		if points += s.points; of >= worst {
			worst, cause = of, err
		}
	}
	a.forget()
	if len(pourings) > 0 {
		before := p.poured
		p.poured = worst
		p.tell(before, worst, "aggregated data", points, cause)
	}
}

// send passes a message through the limits, and on. A dry run only asks them.
func (p *cardinalityProcessor) send(ctx context.Context, s *pouring) (err error) {
	ctx = s.tenant.context(ctx)
	b := p.scratch.Get().(*batch)
	b.road = s.tenant.road
	accepted := false
	defer func() { p.conclude(ctx, b, accepted) }()
	b.made = true
	p.decide(ctx, b, s.md, nil)
	b.letGo()
	b.gone = 0 // none of it came in
	if n := s.md.DataPointCount(); n > 0 && !p.dryRun {
		if err = p.deliver(ctx, s.shipment); err != nil {
			return err
		}
		p.pointsMade.Add(int64(n))
	}
	accepted = true
	for rule, n := range s.rules {
		p.telemetry.ProcessorCardinalityAggregatePoints.Add(ctx, n, rule.taken)
	}
	return nil
}

// drain brings together what the shards have added up, and looks through last values of what is due. It notes who feeds if
// that is to be saved.
func (a *aggregator) drain(due map[*aggregationState]pcommon.Timestamp, save bool) {
	a.mu.Lock()
	for _, g := range a.order {
		g.feeders, g.awake, g.folded = 0, 0, folded{}
	}
	a.mu.Unlock()
	a.saved = slices.Grow(a.saved[:0], len(a.shards))[:len(a.shards)]
	for i := range a.shards {
		a.drainShard(i, due, save)
	}
}

func (a *aggregator) drainShard(i int, due map[*aggregationState]pcommon.Timestamp, save bool) {
	s := &a.shards[i]
	s.mu.Lock()
	defer s.mu.Unlock()
	folds := false
	for at := range s.portions {
		p := &s.portions[at]
		g := p.of
		if g == nil {
			continue
		}
		g.points, g.feeders, g.awake = g.points+int(p.points), g.feeders+int(p.feeders), g.awake+int(p.awake)
		if g.total.addNumber(&p.sum) { // what would make it infinite waits for what may make it less
			p.sum = numeric{}
		}
		if p.histogram != nil {
			g.plus(*p.histogram)
		}
		p.histogram, p.points = nil, 0
		folds = folds || due[g.state] != 0 && g.folds()
		if p.feeders == 0 {
			s.portions[at] = portion{}
			s.spare = append(s.spare, uint32(at))
			g.portions[i] = 0
			a.used.Add(-portionCost)
		}
	}
	if save {
		a.saved[i].copy(s)
	}
	if !folds {
		return
	}
	slots := s.slots.Load()
	for at := range slots.heads {
		f := &slots.feeders[at]
		if slots.heads[at].key.Load() == 0 || f.flags&(feederResting|feederBegun) != feederBegun {
			continue
		}
		if g := s.portions[f.portion].of; due[g.state] != 0 && g.folds() {
			g.folded.add(f.number(), f.time)
		}
	}
}

// folds says whether what is made is made of last values.
func (g *aggregate) folds() bool {
	return g.shape() == shapeNumber && (g.class == classGauge || g.class == classUpDown)
}

// adopt has aggregates go on with series that an earlier version of their rule made: there are not two of them, and nobody
// says their end.
func (a *aggregator) adopt() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, was := range a.order {
		if !was.state.gone {
			continue
		}
		for _, s := range slices.Backward(a.states) { // the last one has it
			if s == was.state {
				break
			}
			g := a.made[mix(s.key, was.identity)]
			if g != nil && g.feeders > 0 && s.name == was.state.name && slices.Equal(was.names(), g.names()) {
				g.goOn(was)
				break
			}
		}
	}
}

// goOn takes over what another aggregate has said, and not said yet.
func (g *aggregate) goOn(was *aggregate) {
	if !g.folds() {
		if !g.plus(was.total) {
			return
		}
		switch {
		case was.spoke: // it is the same series from here on
			g.start = was.start
		case !g.spoke:
			g.start = min(g.start, was.start)
		default: // nobody has seen what it takes over
		}
	}
	g.points, g.sent, g.spoke = g.points+was.points, g.sent || was.sent, g.spoke || was.spoke
	was.total, was.points, was.sent, was.spoke = bucketed{bounds: was.total.bounds}, 0, false, false
	was.start = max(was.start, g.state.flushed) // what it may still say is another series
}

// plus adds to the total, and says whether that has bounds for it.
func (g *aggregate) plus(v bucketed) bool {
	if g.shape() == shapeNumber {
		g.total.addNumber(&v.numeric)
		return true
	}
	both, ok := g.agree(v.bounds)
	if ok {
		v.bring(both)
		g.total.bring(both)
		g.total.add(v.value)
	}
	return ok
}

func (g *aggregate) names() (all []string) {
	for _, of := range g.outputs {
		all = append(all, g.rule.nameOf(g.metric.Name(), g.class, of))
	}
	return all
}

// put makes messages of what is due.
func (a *aggregator) put(due map[*aggregationState]pcommon.Timestamp) (all []*pouring) {
	a.mu.Lock()
	defer a.mu.Unlock()
	open := map[tenant]*pouring{}
	for _, g := range a.order {
		at, ok := due[g.state]
		if !ok {
			continue
		}
		speaks, ends := g.says()
		if !speaks && !ends {
			if g.class == classDelta {
				g.start = at
			}
			continue
		}
		s := open[g.tenant]
		if s == nil || s.bytes >= shipmentBytes {
			s = &pouring{shipment: newShipment(g.tenant), rules: map[*aggregation]int64{}}
			open[g.tenant] = s
			all = append(all, s)
		}
		s.put(g, at, ends)
	}
	for s, at := range due {
		if s.flushed = at; !s.gone && s.feeders.Load() > 0 {
			s.rule.limit.alive.match(int64(at)) // for known series do not
		}
	}
	return all
}

// says tells whether an aggregate has something to say, or has ended and not said so.
func (g *aggregate) says() (speaks, ends bool) {
	over := g.state.gone || g.awake == 0
	switch {
	case g.class == classDelta:
		speaks = g.points > 0
		return speaks, !speaks && over && g.sent
	case g.folds():
		speaks = !g.state.gone && g.folded.n > 0
		return speaks, !speaks && g.sent
	default:
		speaks = g.points > 0 || !over
		return speaks, !speaks && g.sent
	}
}

// put adds the points of an aggregate, or its ends.
func (s *pouring) put(g *aggregate, at pcommon.Timestamp, ends bool) {
	g.spoke = true
	g.start = min(g.start, at) // the clock may have gone back
	s.said = append(s.said, said{of: g, points: g.points, start: g.start, ends: ends})
	for _, of := range g.outputs {
		if ends && g.class == classDelta && of == operationSum { // deltas just end
			continue
		}
		m := s.metricOf(g, of)
		i := s.pointOf(g, m, at)
		switch {
		case ends:
			silence(m, i)
		case of == operationCount:
			m.Gauge().DataPoints().At(i).SetIntValue(int64(g.awake))
			if g.folds() {
				m.Gauge().DataPoints().At(i).SetIntValue(g.folded.n)
			}
		case g.folds():
			v := value{numeric: g.folded.result(of)}
			v.writeTo(m, i)
		default:
			if m.Type() == pmetric.MetricTypeHistogram && g.total.bounds != nil {
				m.Histogram().DataPoints().At(i).ExplicitBounds().FromRaw(g.total.bounds.upper)
			}
			g.total.writeTo(m, i)
		}
		s.rules[g.state.rule]++
		s.points++
	}
	g.sent = !ends && (g.class != classDelta || g.outputs[len(g.outputs)-1] == operationCount)
	if g.class == classDelta && !ends {
		s.said[len(s.said)-1].total = g.total
		g.total, g.start = bucketed{bounds: g.total.bounds}, at
	}
	g.points = 0
}

// metricOf returns the metric of an output, in the scope and resource of its aggregate.
func (s *pouring) metricOf(g *aggregate, of operation) pmetric.Metric {
	key := mix(mix(g.keys.metric, g.state.key), uint64(of))
	if m, ok := s.metrics[key]; ok {
		return m
	}
	var sizer pmetric.ProtoMarshaler
	m := s.scopeOf(g.keys.scope, g.data).Metrics().AppendEmpty()
	s.metrics[key] = m
	m.SetName(g.rule.nameOf(g.metric.Name(), g.class, of))
	m.SetDescription(g.metric.Description())
	m.SetUnit(g.metric.Unit())
	g.metric.Metadata().CopyTo(m.Metadata())
	switch {
	case of == operationCount:
		m.SetUnit("{series}")
		m.SetEmptyGauge()
	case of == operationSum && g.metric.Type() == pmetric.MetricTypeSum:
		m.SetEmptySum().SetIsMonotonic(g.metric.Sum().IsMonotonic())
		m.Sum().SetAggregationTemporality(g.metric.Sum().AggregationTemporality())
	case g.metric.Type() == pmetric.MetricTypeHistogram:
		m.SetEmptyHistogram().SetAggregationTemporality(g.metric.Histogram().AggregationTemporality())
	case g.metric.Type() == pmetric.MetricTypeExponentialHistogram:
		m.SetEmptyExponentialHistogram().SetAggregationTemporality(g.metric.ExponentialHistogram().AggregationTemporality())
	default:
		m.SetEmptyGauge()
	}
	s.bytes += sizer.MetricSize(m)
	return m
}

// pointOf adds a point with the attributes that have stayed.
func (s *pouring) pointOf(g *aggregate, m pmetric.Metric, at pcommon.Timestamp) (i int) {
	var sizer pmetric.ProtoMarshaler
	s.bytes += sizer.MetricSize(g.metric)
	i = pointCount(m)
	var to pcommon.Map
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		to = m.Gauge().DataPoints().AppendEmpty().Attributes()
	case pmetric.MetricTypeSum:
		to = m.Sum().DataPoints().AppendEmpty().Attributes()
	case pmetric.MetricTypeHistogram:
		to = m.Histogram().DataPoints().AppendEmpty().Attributes()
	default:
		to = m.ExponentialHistogram().DataPoints().AppendEmpty().Attributes()
	}
	attributesAt(g.metric, 0).CopyTo(to)
	setTimesAt(m, i, g.start, at)
	return i
}

// takeBack takes back what could not be sent, to go with the next. If it may not, it returns how many points are lost.
func (a *aggregator) takeBack(s *pouring, again bool) (lost int) {
	for i := range s.said {
		was := &s.said[i]
		g := was.of
		switch {
		case was.ends:
			g.sent = again
		case g.class != classDelta: // its total stays
		case !again:
			lost++
		default:
			g.plus(was.total)
			g.start = was.start
		}
		if again && !was.ends {
			g.points += was.points
		}
	}
	return lost
}
