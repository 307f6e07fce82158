// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package reuse

import (
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/slab"
)

// Part is metrics of float points that are used together again and again, with other values. Each point has the same
// attributes each time, which others share. It must not be used if [slab.Places] is false.
type Part struct {
	lent  handback.Part
	at    slab.Stretch
	scope int // that it is placed in
	says  []saying
	seals []partSeal
	turn  int  // the points whose attributes are compared next
	whole bool // after it was taken back: everything is as it was
}

// partSeal seals the attributes of a point.
type partSeal struct {
	texts  *texts
	length int32
}

// saying is the description of a metric.
type saying struct {
	name, unit, description string
	monotonic               bool
	temporality             int32
	metadata                int // their number
}

func sayingOf(m *slab.Metric) (s saying) {
	s.name, s.unit, s.description = m.Texts()
	s.monotonic, s.temporality = m.Sums()
	s.metadata = len(m.Metadata())
	return s
}

// A PartBuilder makes parts: metrics, each before its points.
type PartBuilder struct {
	part    *Part
	metrics pmetric.MetricSlice
	points  pmetric.NumberDataPointSlice // of the last metric
	with    *slab.Slabs
}

// BuildPart begins a part of the given numbers of metrics and points.
func BuildPart(metrics, points int, with *slab.Slabs) *PartBuilder {
	b := &PartBuilder{part: &Part{whole: true, seals: make([]partSeal, 0, points)}, metrics: pmetric.NewMetricSlice(), with: with}
	b.part.at = slab.Stretch{Points: make([]*slab.Number, 0, points), Ends: make([]int, 0, metrics)}
	b.metrics.EnsureCapacity(metrics)
	return b
}

// Metric adds a gauge or a sum of n points, for the caller to describe. Others share its metadata.
func (b *PartBuilder) Metric(shape pmetric.MetricType, n int, metadata Attributes) pmetric.Metric {
	b.end()
	var m pmetric.Metric
	if shape == pmetric.MetricTypeSum {
		m, b.points = b.with.AppendSum(b.metrics, n)
	} else {
		m, b.points = b.with.AppendGauge(b.metrics, n)
	}
	slab.Share(m.Metadata(), metadata.list)
	return m
}

// Point adds a point to the last metric. All of its attributes must be strings.
func (b *PartBuilder) Point(attributes Attributes) {
	p := b.with.AppendNumber(b.points)
	b.with.SetDouble(p, 0)
	slab.Share(p.Attributes(), attributes.list)
	b.part.seals = append(b.part.seals, partSeal{attributes.texts, attributes.seal.length})
}

func (b *PartBuilder) end() {
	l := &b.part.at
	if b.metrics.Len() > 0 {
		l.Points = append(l.Points, slab.Numbers(b.points)...)
		l.Ends = append(l.Ends, len(l.Points))
	}
}

// Part returns the result.
func (b *PartBuilder) Part() *Part {
	b.end()
	b.part.at.Metrics = slab.Metrics(b.metrics)
	b.part.lent.Memory = &b.part.at
	for _, m := range b.part.at.Metrics {
		b.part.says = append(b.part.says, sayingOf(m))
	}
	stand := pmetric.NewMetricSlice()
	_, points := b.with.AppendGauge(stand, b.part.Len())
	slab.PlaceNumbers(points, b.part.at.Points)
	b.part.at.Stand = slab.Metrics(stand)[0]
	return b.part
}

// Len is the number of points.
func (p *Part) Len() int { return len(p.at.Points) }

// Fill sets the values of the points.
func (p *Part) Fill(floats []slab.Float) {
	p.at.Deferred = false
	p.at.Fill(floats)
}

// Defer returns where to write the values of the points. The points get them when Settle is called, which may be never:
// it is for [Metrics.LendDeferred].
func (p *Part) Defer() []slab.Float {
	if p.at.Floats == nil {
		p.at.Floats = make([]slab.Float, len(p.at.Points))
	}
	p.at.Deferred = true
	return p.at.Floats
}

// Settle sets the values that were left out.
func (p *Part) Settle() { p.at.Settle() }

// Whole reports, after metrics were taken back, whether the part may be used again.
func (p *Part) Whole() bool { return p.whole }

// deferredLookEvery is how seldom a part whose points lack values is checked: once in this many times.
const deferredLookEvery = 64

// takeBack checks whether everything is as it was placed. It returns false if shared attributes were changed in place.
func (p *Part) takeBack() bool {
	p.turn++
	if p.at.Deferred && p.turn%deferredLookEvery != 0 { // nobody was to read the points, and whoever took the part as a whole has checked it
		return true
	}
	p.whole = p.at.Begins(p.at.Metrics)
	for i, m := range p.at.Metrics {
		p.whole = p.whole && p.says[i] == sayingOf(m)
	}
	for i, n := range p.at.Points {
		s := &p.seals[i]
		switch all := n.Attributes(); {
		case n.IsEmpty(): // it was removed
			p.whole = p.whole && s.length == 0
		case len(all) < int(s.length), len(all) == int(s.length) && (i+p.turn)%lookEvery == 0 && s.texts != nil && !s.texts.are(all):
			return false
		case len(all) > int(s.length):
			p.whole = false // adding to a map gives it a list of its own
		}
		p.whole = p.whole && n.IsPlain()
	}
	return true
}
