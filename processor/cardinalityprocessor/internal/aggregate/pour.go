// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/overflow"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// Aggregates are poured at the interval of their rule: through the limits, as if they came in, and on. Before that they
// are saved for a restart, so that nothing that has been sent is forgotten.

// Pouring is a message of series that were made here.
type Pouring struct {
	*overflow.Shipment

	said  []said
	Rules map[*Rule]int64 // how many points each rule has in it
}

// said is what a pouring took out of an aggregate.
type said struct {
	of     *Aggregate
	total  amount.Bucketed // the total, of deltas
	points int
	start  pcommon.Timestamp
	ends   bool
}

// idlePlan is how long to wait when no rules aggregate.
const idlePlan = time.Hour

// Until returns for how long nothing is due.
func (a *Aggregator) Until(now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	wait := idlePlan
	for _, s := range a.States {
		wait = min(wait, s.due.Sub(now))
	}
	return max(wait, 0)
}

// Plan returns the states that are due, each with the time it is due at, and sets when it is due next.
func (a *Aggregator) Plan(now time.Time) (due map[*State]pcommon.Timestamp) {
	a.mu.Lock()
	defer a.mu.Unlock()
	due = map[*State]pcommon.Timestamp{}
	for _, s := range a.States {
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

// All returns every state as due.
func (a *Aggregator) All(now time.Time) map[*State]pcommon.Timestamp {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := map[*State]pcommon.Timestamp{}
	for _, s := range a.States {
		all[s] = pcommon.NewTimestampFromTime(now)
	}
	return all
}

// Flush makes messages of the states that are due, and hands them on once the state they are made of is saved. If there
// is no storage, saving is left out.
func (a *Aggregator) Flush(epoch uint32, due map[*State]pcommon.Timestamp, note func(), send func([]*Pouring)) {
	a.flushing.Lock()
	defer a.flushing.Unlock()
	if a.aged != epoch {
		a.aged = epoch
		a.age(epoch)
	}
	a.drain(due, note != nil)
	a.adopt()
	if note != nil {
		note()
	}
	send(a.put(due))
	a.forget()
}

// Close saves the final state.
func (a *Aggregator) Close(note func() error) error {
	a.flushing.Lock()
	defer a.flushing.Unlock()
	a.drain(nil, true)
	return note()
}

// drain brings together what the shards have added up, and goes through the last values of the states that are due. It
// copies the feeders if they are to be saved.
func (a *Aggregator) drain(due map[*State]pcommon.Timestamp, save bool) {
	a.mu.Lock()
	for _, g := range a.Order {
		g.feeders, g.awake, g.folded = 0, 0, folded{}
	}
	a.mu.Unlock()
	a.saved = slices.Grow(a.saved[:0], len(a.Shards))[:len(a.Shards)]
	for i := range a.Shards {
		a.drainShard(i, due, save)
	}
}

func (a *Aggregator) drainShard(i int, due map[*State]pcommon.Timestamp, save bool) {
	s := &a.Shards[i]
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
		if g.total.AddNumber(&p.sum) { // a value that would make the total infinite waits for others that may lower it
			p.sum = amount.Numeric{}
		}
		if p.histogram != nil && g.plus(*p.histogram) { // as above
			p.histogram = nil
		}
		p.points = 0
		folds = folds || due[g.state] != 0 && g.folds()
		if p.feeders == 0 {
			s.portions[at] = portion{}
			s.spare = append(s.spare, uint32(at))
			g.portions[i] = 0
			a.release(g.account, PortionCost)
		}
	}
	if save {
		a.saved[i].copy(s)
	}
	if !folds {
		return
	}
	rows := s.rows.Load()
	for row := range s.used {
		f := rows.feeder(row)
		if f.flags&(feederResting|feederBegun) != feederBegun { // or the row is free
			continue
		}
		if g := s.portions[f.portion].of; due[g.state] != 0 && g.folds() {
			g.folded.add(f.number(), f.time)
		}
	}
}

// folds reports whether an aggregate is made of last values.
func (g *Aggregate) folds() bool {
	return g.shape() == amount.ShapeNumber && (g.Class == amount.ClassGauge || g.Class == amount.ClassUpDown)
}

// adopt makes aggregates continue the series of an earlier version of their rule, or of a rule of another name that was
// gone when theirs came: so there are not two of them, and no end is sent.
func (a *Aggregator) adopt() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, was := range a.Order {
		if !was.state.gone {
			continue
		}
		for _, s := range slices.Backward(a.States) { // the latest version has it
			if s == was.state {
				break
			}
			g := a.Made[ident.Mix(s.key, was.identity)]
			renamed := slices.Contains(s.after, was.state.key) // so its inputs count from when the other was gone
			if g != nil && g.feeders > 0 && (renamed || s.name == was.state.name) && slices.Equal(was.names(), g.names()) {
				g.goOn(was)
				break
			}
		}
	}
}

// goOn takes over what another aggregate has sent, and has yet to send.
func (g *Aggregate) goOn(was *Aggregate) {
	if !g.folds() {
		if !g.plus(was.total) {
			return
		}
		switch {
		case was.spoke: // it is the same series from here on
			g.Start = was.Start
		case !g.spoke:
			g.Start = min(g.Start, was.Start)
		default: // nothing of the aggregate taken over has been sent
		}
	}
	g.points, g.sent, g.spoke = g.points+was.points, g.sent || was.sent, g.spoke || was.spoke
	was.total, was.points, was.sent, was.spoke = amount.Bucketed{Bounds: was.total.Bounds}, 0, false, false
	was.Start = max(was.Start, g.state.Flushed) // anything it may still send belongs to another series
}

// plus adds to the total, and reports whether that has bounds for the value, and can hold it.
func (g *Aggregate) plus(v amount.Bucketed) bool {
	if g.shape() == amount.ShapeNumber {
		g.total.AddNumber(&v.Numeric)
		return true
	}
	both, ok := g.agree(v.Bounds)
	if ok {
		v.Bring(both)
		g.total.Bring(both)
		if ok = g.total.Holds(&v.Value); ok {
			g.total.Add(v.Value)
		}
	}
	return ok
}

func (g *Aggregate) names() (all []string) {
	for _, of := range g.Outputs {
		all = append(all, g.Rule.NameOf(g.Metric.Name(), g.Class, of))
	}
	return all
}

// put makes messages of the states that are due.
func (a *Aggregator) put(due map[*State]pcommon.Timestamp) (all []*Pouring) {
	a.mu.Lock()
	defer a.mu.Unlock()
	open := map[ident.Tenant]*Pouring{}
	for _, g := range a.Order {
		at, ok := due[g.state]
		if !ok {
			continue
		}
		speaks, ends := g.says()
		if !speaks && !ends {
			if g.Class == amount.ClassDelta {
				g.Start = at
			}
			continue
		}
		s := open[g.Tenant]
		if s == nil || s.Bytes >= overflow.ShipmentBytes {
			s = &Pouring{Shipment: overflow.NewShipment(g.Tenant), Rules: map[*Rule]int64{}}
			open[g.Tenant] = s
			all = append(all, s)
		}
		s.put(g, at, ends)
	}
	for s, at := range due {
		if s.Flushed = at; !s.gone && s.Feeders.Load() > 0 {
			s.Rule.Limit.Alive.Match(int64(at)) // for known series do not
		}
	}
	return all
}

// says reports whether an aggregate has something to send, or has ended without having sent that.
func (g *Aggregate) says() (speaks, ends bool) {
	over := g.state.gone || g.awake == 0
	switch {
	case g.Class == amount.ClassDelta:
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
func (s *Pouring) put(g *Aggregate, at pcommon.Timestamp, ends bool) {
	g.spoke = true
	g.Start = min(g.Start, at) // the clock may have gone back
	s.said = append(s.said, said{of: g, points: g.points, start: g.Start, ends: ends})
	for _, of := range g.Outputs {
		if ends && g.Class == amount.ClassDelta && of == policy.OperationSum { // deltas just end
			continue
		}
		m := s.metricOf(g, of)
		i := s.pointOf(g, m, at)
		switch {
		case ends:
			amount.Silence(m, i)
		case of == policy.OperationCount:
			m.Gauge().DataPoints().At(i).SetIntValue(int64(g.awake))
			if g.folds() {
				m.Gauge().DataPoints().At(i).SetIntValue(g.folded.n)
			}
		case g.folds():
			v := amount.Value{Numeric: g.folded.result(of)}
			v.WriteTo(m, i)
		default:
			if m.Type() == pmetric.MetricTypeHistogram && g.total.Bounds != nil {
				m.Histogram().DataPoints().At(i).ExplicitBounds().FromRaw(g.total.Bounds.Upper)
			}
			g.total.WriteTo(m, i)
		}
		s.Rules[g.state.Rule]++
		s.Points++
	}
	g.sent = !ends && (g.Class != amount.ClassDelta || g.Outputs[len(g.Outputs)-1] == policy.OperationCount)
	if g.Class == amount.ClassDelta && !ends {
		s.said[len(s.said)-1].total = g.total
		g.total, g.Start = amount.Bucketed{Bounds: g.total.Bounds}, at
	}
	g.points = 0
}

// metricOf returns the metric of an output, in the scope and resource of its aggregate.
func (s *Pouring) metricOf(g *Aggregate, of policy.Operation) pmetric.Metric {
	key := ident.Mix(ident.Mix(g.Keys.Metric, g.state.key), uint64(of))
	if m, ok := s.Metrics[key]; ok {
		return m
	}
	var sizer pmetric.ProtoMarshaler
	m := s.ScopeOf(g.Keys.Scope, g.Data).Metrics().AppendEmpty()
	s.Metrics[key] = m
	m.SetName(g.Rule.NameOf(g.Metric.Name(), g.Class, of))
	m.SetDescription(g.Metric.Description())
	m.SetUnit(g.Metric.Unit())
	g.Metric.Metadata().CopyTo(m.Metadata())
	switch {
	case of == policy.OperationCount:
		m.SetUnit("{series}")
		m.SetEmptyGauge()
	case of == policy.OperationSum && g.Metric.Type() == pmetric.MetricTypeSum:
		m.SetEmptySum().SetIsMonotonic(g.Metric.Sum().IsMonotonic())
		m.Sum().SetAggregationTemporality(g.Metric.Sum().AggregationTemporality())
	case g.Metric.Type() == pmetric.MetricTypeHistogram:
		m.SetEmptyHistogram().SetAggregationTemporality(g.Metric.Histogram().AggregationTemporality())
	case g.Metric.Type() == pmetric.MetricTypeExponentialHistogram:
		m.SetEmptyExponentialHistogram().SetAggregationTemporality(g.Metric.ExponentialHistogram().AggregationTemporality())
	default:
		m.SetEmptyGauge()
	}
	s.Bytes += sizer.MetricSize(m)
	return m
}

// pointOf adds a point with the attributes that have stayed.
func (s *Pouring) pointOf(g *Aggregate, m pmetric.Metric, at pcommon.Timestamp) (i int) {
	var sizer pmetric.ProtoMarshaler
	s.Bytes += sizer.MetricSize(g.Metric)
	i = amount.PointCount(m)
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
	amount.AttributesAt(g.Metric, 0).CopyTo(to)
	amount.SetTimesAt(m, i, g.Start, at)
	return i
}

// TakeBack takes back what could not be sent, to be sent with the next message. If that is not allowed, it returns how
// many points are lost.
func (a *Aggregator) TakeBack(s *Pouring, again bool) (lost int) {
	for i := range s.said {
		was := &s.said[i]
		g := was.of
		switch {
		case was.ends:
			g.sent = again
		case g.Class != amount.ClassDelta: // its total is kept anyway
		case !again:
			lost++
		default:
			g.plus(was.total)
			g.Start = was.start
		}
		if again && !was.ends {
			g.points += was.points
		}
	}
	return lost
}
