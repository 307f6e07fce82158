// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"math"
	"slices"

	translator "github.com/open-telemetry/opentelemetry-collector-contrib/pkg/translator/prometheus"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/value"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
)

// A PlacedExemplar is an exemplar with the sample that it came with and, once a layout has set it, its point. With
// trace and span ID only, as most have, it has no labels and takes no further memory.
type PlacedExemplar struct {
	exemplar.Exemplar

	Trace         pcommon.TraceID
	Span          pcommon.SpanID
	Sample, Point int32
}

// Owners returns the point of each of the given number of samples, starting at first, or -1.
func (l *Layout) Owners(first, samples int) []int32 {
	owner := make([]int32, samples)
	for i := range owner {
		owner[i] = -1
	}
	for i := range l.Points {
		l.samples(i, func(sample int32) {
			if j := int(sample) - first; j >= 0 && j < samples {
				owner[j] = int32(i)
			}
		})
	}
	return owner
}

// samples visits the samples of a point.
func (l *Layout) samples(point int, f func(sample int32)) {
	p := l.Placed(point)
	each := func(sample int32) {
		if sample >= 0 {
			f(sample)
		}
	}
	each(p.Created)
	if !p.isGrouped() {
		each(p.At)
		return
	}
	g := &l.Groups[p.At]
	each(g.Count)
	each(g.Sum)
	each(g.rest)
	for _, part := range g.Parts {
		each(part)
	}
}

// Owners returns the point of each sample of the plan.
func (p *Plan) Owners() []int32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.owner == nil {
		p.owner = p.Layout.Owners(0, len(p.Lines))
		for i, l := range p.Lines {
			isLoose := p.owner[i] < 0 && l.Kind == catalog.SeriesLine && l.Name.Final != translator.TargetInfoMetricName
			p.HasUnplaced = p.HasUnplaced || isLoose
		}
	}
	return p.owner
}

// AssignExemplars finds the point of each exemplar and sorts them by points; those of one point stay in the order of the page.
func AssignExemplars(xs []PlacedExemplar, owner []int32) []PlacedExemplar {
	for i := range xs {
		xs[i].Point = owner[xs[i].Sample]
	}
	xs = slices.DeleteFunc(xs, func(x PlacedExemplar) bool { return x.Point < 0 })
	slices.SortStableFunc(xs, func(a, b PlacedExemplar) int { return cmp.Compare(a.Point, b.Point) })
	return xs
}

// NoTime is the timestamp of a sample that has none.
const NoTime = -1 << 63

// A stale marker ends a series. A protobuf page may contain one, as any other NaN: so the state of a line is never
// stored in its value.
var (
	StaleMarker = math.Float64frombits(value.StaleNaN)
	staleBits   = math.Float64bits(StaleMarker)
)

// IsStale reports whether a value is a stale marker.
func IsStale(v float64) bool { return math.Float64bits(v) == staleBits }
