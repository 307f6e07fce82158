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

// owners returns the point of each sample, or -1.
func (l *layout) owners(samples int) []int32 {
	owner := make([]int32, samples)
	for i := range owner {
		owner[i] = -1
	}
	own := func(sample int32, point int) {
		if sample >= 0 && int(sample) < samples {
			owner[sample] = int32(point)
		}
	}
	for i := range l.metrics {
		m := &l.metrics[i]
		isGrouped := grouped(m.family.base.kind) && !m.family.base.custom
		for j := int(m.first); j < int(m.first+m.points); j++ {
			p := &l.points[j]
			own(p.created, j)
			if !isGrouped {
				own(p.at, j)
				continue
			}
			g := &l.groups[p.at]
			own(g.count, j)
			own(g.sum, j)
			own(g.rest, j)
			for _, part := range g.parts {
				own(part.at, j)
			}
		}
	}
	return owner
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
func (c *cursor) hang(point int, out pmetric.ExemplarSlice) {
	if out.Len() > 0 {
		out.RemoveIf(func(pmetric.Exemplar) bool { return true })
	}
	i := int32(point)
	for c.exemplar < len(c.exemplars) && c.exemplars[c.exemplar].point < i {
		c.exemplar++
	}
	for ; c.exemplar < len(c.exemplars) && c.exemplars[c.exemplar].point == i; c.exemplar++ {
		fillExemplar(&c.exemplars[c.exemplar].Exemplar, out.AppendEmpty())
	}
}

func fillExemplar(x *exemplar.Exemplar, out pmetric.Exemplar) {
	out.SetTimestamp(pcommon.Timestamp(x.Ts * 1e6))
	out.SetDoubleValue(x.Value)
	out.FilteredAttributes().EnsureCapacity(x.Labels.Len())
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
		out.FilteredAttributes().PutStr(l.Name, l.Value)
	})
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
