// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"hash/maphash"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

const (
	shownPoints = 20 // of a batch
	// maxCompared is the number of points of a batch that are compared with those recorded before.
	maxCompared = 20_000
)

// Passing is a batch on its way through a processor that somebody observes. A nil one does nothing.
type Passing struct {
	waiting []chan Glance
	glance  Glance
	marks   []mark           // of the points of glance
	sought  map[string][]int // indices of these, by the metric's name
}

// A mark identifies a point.
type mark struct {
	name          string
	series, value uint64 // hashes
	at            pcommon.Timestamp
}

func newPassing(waiting []chan Glance, md pmetric.Metrics, nth uint64) *Passing {
	p := &Passing{waiting: waiting, sought: map[string][]int{}, glance: Glance{Signal: "metrics", In: md.DataPointCount(), Points: []Sight{}}}
	chosen := newChoice(p.glance.In, nth)
	eachMetric(md, func(resource pcommon.Resource, m pmetric.Metric) bool {
		points := pointsOf(m)
		for i, ok := chosen.within(points.n); ok; i, ok = chosen.within(points.n) {
			p.glance.Points = append(p.glance.Points, Sight{Point: points.show(resource, i), Fate: FatePassed})
			p.sought[points.name] = append(p.sought[points.name], len(p.marks))
			p.marks = append(p.marks, markOf(hashOf(resource.Attributes()), &points, i))
		}
		chosen.skip(points.n)
		return true
	})
	p.glance.Out = p.glance.In
	return p
}

// Pass reports the batch as unchanged.
func (p *Passing) Pass() {
	if p != nil {
		tell(p.waiting, p.glance)
	}
}

// After reports the batch as it was, and what happened to its points.
func (p *Passing) After(md pmetric.Metrics) {
	if p == nil {
		return
	}
	p.glance.Out = md.DataPointCount()
	for i := range p.glance.Points {
		p.glance.Points[i].Fate = FateGone
	}
	room := maxCompared
	eachMetric(md, func(resource pcommon.Resource, m pmetric.Metric) bool {
		indexes := p.sought[m.Name()]
		if len(indexes) == 0 {
			return true
		}
		points := pointsOf(m)
		if room -= points.n; room < 0 {
			p.stop()
			return false
		}
		of := hashOf(resource.Attributes())
		for i := range points.n {
			p.match(indexes, resource, &points, i, seriesOf(of, &points, i))
		}
		return true
	})
	tell(p.waiting, p.glance)
}

// match checks whether a point of the current batch is one of those recorded: of the same series and time.
func (p *Passing) match(indexes []int, resource pcommon.Resource, points *points, i int, series uint64) {
	for _, at := range indexes {
		was, sight := &p.marks[at], &p.glance.Points[at]
		if sight.Fate == FatePassed || was.series != series || was.at != points.at(i) {
			continue
		}
		if maphash.String(seed, points.value(i)) == was.value {
			sight.Fate, sight.After = FatePassed, nil
			continue
		}
		after := points.show(resource, i)
		sight.Fate, sight.After = FateChanged, &after
	}
}

// stop marks the points that were not found so far as unknown.
func (p *Passing) stop() {
	for i := range p.glance.Points {
		if s := &p.glance.Points[i]; s.Fate == FateGone {
			s.Fate = FateUnknown
		}
	}
}

var seed = maphash.MakeSeed()

func markOf(resource uint64, points *points, i int) mark {
	return mark{name: points.name, series: seriesOf(resource, points, i), value: maphash.String(seed, points.value(i)), at: points.at(i)}
}

func seriesOf(resource uint64, points *points, i int) uint64 {
	return resource*31 + hashOf(points.attributes(i))
}

// hashOf returns a hash that does not depend on the order.
func hashOf(attributes pcommon.Map) (sum uint64) {
	var h maphash.Hash
	h.SetSeed(seed)
	for name, value := range attributes.All() {
		h.Reset()
		_, _ = h.WriteString(name)
		_ = h.WriteByte(0)
		_, _ = h.WriteString(value.AsString())
		sum += h.Sum64()
	}
	return sum
}

func eachMetric(md pmetric.Metrics, do func(pcommon.Resource, pmetric.Metric) bool) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if !do(rm.Resource(), m) {
					return
				}
			}
		}
	}
}

// A choice selects some of many things, evenly spaced and different ones each time.
type choice struct {
	every, next, passed int
	left                int
}

func newChoice(all int, nth uint64) choice {
	every := max(1, all/shownPoints)
	return choice{every: every, next: int(nth % uint64(every)), left: shownPoints}
}

// within returns the index of the next selected one among the next n, if there is one.
func (c *choice) within(n int) (index int, ok bool) {
	if c.left == 0 || c.next-c.passed >= n {
		return 0, false
	}
	index = c.next - c.passed
	c.next += c.every
	c.left--
	return index, true
}

// skip skips n things.
func (c *choice) skip(n int) { c.passed += n }
