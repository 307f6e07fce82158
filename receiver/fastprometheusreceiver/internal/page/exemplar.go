// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"encoding/hex"
	"slices"
	"strings"

	translator "github.com/open-telemetry/opentelemetry-collector-contrib/pkg/translator/prometheus"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// A placedExemplar is an exemplar, the sample it came with and, once a layout has said so, the point it goes to.
type placedExemplar struct {
	exemplar.Exemplar

	sample, point int32
}

// owners returns the point of each of a number of samples, from one on, or -1.
func (l *layout) owners(first, samples int) []int32 {
	owner := make([]int32, samples)
	for i := range owner {
		owner[i] = -1
	}
	for i := range l.points {
		l.samples(i, func(sample int32) {
			if j := int(sample) - first; j >= 0 && j < samples {
				owner[j] = int32(i)
			}
		})
	}
	return owner
}

// samples visits the samples of a point.
func (l *layout) samples(point int, f func(sample int32)) {
	p := l.placed(point)
	each := func(sample int32) {
		if sample >= 0 {
			f(sample)
		}
	}
	each(p.created)
	if !p.isGrouped() {
		each(p.at)
		return
	}
	g := &l.groups[p.at]
	each(g.count)
	each(g.sum)
	each(g.rest)
	for _, part := range g.parts {
		each(part.at)
	}
}

// owners returns the point of each of the plan's samples.
func (p *plan) owners() []int32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.owner == nil {
		p.owner = p.layout.owners(0, len(p.lines))
		for i, l := range p.lines {
			isLoose := p.owner[i] < 0 && l.kind == seriesLine && l.name.final != translator.TargetInfoMetricName
			p.loose = p.loose || isLoose
		}
	}
	return p.owner
}

// deal finds the point of each exemplar and puts them in the order of points; of one point they stay in that of the page.
func deal(xs []placedExemplar, owner []int32) []placedExemplar {
	for i := range xs {
		xs[i].point = owner[xs[i].sample]
	}
	xs = slices.DeleteFunc(xs, func(x placedExemplar) bool { return x.point < 0 })
	slices.SortStableFunc(xs, func(a, b placedExemplar) int { return cmp.Compare(a.point, b.point) })
	return xs
}

// hang gives a point its exemplars, in place of those it had.
func (c *cursor) hang(point int32, out pmetric.ExemplarSlice) {
	if out.Len() > 0 {
		out.RemoveIf(func(pmetric.Exemplar) bool { return true })
	}
	i, _ := slices.BinarySearchFunc(c.exemplars, point, func(x placedExemplar, p int32) int { return cmp.Compare(x.point, p) })
	for ; i < len(c.exemplars) && c.exemplars[i].point == point; i++ {
		fillExemplar(&c.exemplars[i].Exemplar, out.AppendEmpty())
	}
}

func fillExemplar(x *exemplar.Exemplar, out pmetric.Exemplar) {
	out.SetTimestamp(pcommon.Timestamp(x.Ts * 1e6))
	out.SetDoubleValue(x.Value)
	attrs := fillAttributes(out.FilteredAttributes(), x.Labels.Len())
	x.Labels.Range(func(l labels.Label) {
		switch strings.ToLower(l.Name) {
		case translator.ExemplarTraceIDKey:
			var id pcommon.TraceID
			if decodeID(id[:], l.Value) {
				out.SetTraceID(id)
				return
			}
		case translator.ExemplarSpanIDKey:
			var id pcommon.SpanID
			if decodeID(id[:], l.Value) {
				out.SetSpanID(id)
				return
			}
		}
		attrs.put(l.Name, l.Value)
	})
	attrs.flush()
}

// decodeID reads hexadecimal digits: a short id fills the end, of a long one the end is ignored.
func decodeID(dst []byte, s string) bool {
	n := min(hex.DecodedLen(len(s)), len(dst))
	if len(s) > hex.EncodedLen(len(dst)) {
		s = s[:hex.EncodedLen(len(dst))]
	}
	_, err := hex.Decode(dst[len(dst)-n:], []byte(s))
	return err == nil
}
