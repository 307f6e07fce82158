// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"cmp"
	"encoding/hex"
	"math"
	"slices"
	"strings"

	translator "github.com/open-telemetry/opentelemetry-collector-contrib/pkg/translator/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/slab"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

// setExemplars sets the exemplars of a point, in the memory of those that it had.
func (c *cursor) setExemplars(point int32, out pmetric.ExemplarSlice) {
	n := 0
	i := c.nextExemplar
	if i < len(c.Exemplars) && c.Exemplars[i].Point < point || i > 0 && c.Exemplars[i-1].Point >= point { // skip those of a metric that has changed
		i, _ = slices.BinarySearchFunc(c.Exemplars, point, func(x plan.PlacedExemplar, p int32) int { return cmp.Compare(x.Point, p) })
	}
	end := i
	for end < len(c.Exemplars) && c.Exemplars[end].Point == point {
		end++
	}
	if c.slabs != nil && out.Len() == 0 && end > i {
		c.slabs.ReserveExemplars(out, end-i)
	} else {
		out.EnsureCapacity(end - i)
	}
	for ; i < end; i++ {
		if n == out.Len() {
			out.AppendEmpty()
		}
		fillExemplar(&c.Exemplars[i], out.At(n), c.slabs)
		n++
	}
	c.nextExemplar = i
	if out.Len() > n {
		at := 0
		out.RemoveIf(func(pmetric.Exemplar) bool {
			at++
			return at > n
		})
	}
}

// fillExemplar makes out a copy of x, whatever it was before.
func fillExemplar(x *plan.PlacedExemplar, out pmetric.Exemplar, slabs *slab.Slabs) {
	out.SetTimestamp(pcommon.Timestamp(x.Ts * 1e6))
	if out.ValueType() != pmetric.ExemplarValueTypeDouble || math.Float64bits(out.DoubleValue()) != math.Float64bits(x.Value) {
		if slabs != nil {
			slabs.SetExemplar(out, x.Value)
		} else {
			out.SetDoubleValue(x.Value)
		}
	}
	out.SetTraceID(x.Trace)
	out.SetSpanID(x.Span)
	if had := out.FilteredAttributes(); had.Len() > 0 {
		had.Clear()
	}
	if x.Labels.IsEmpty() {
		return
	}
	attrs := fillAttributes(out.FilteredAttributes(), countOthers(x.Labels))
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

// countOthers counts the labels other than trace_id and span_id.
func countOthers(all labels.Labels) (n int) {
	all.Range(func(l labels.Label) {
		if !strings.EqualFold(l.Name, translator.ExemplarTraceIDKey) && !strings.EqualFold(l.Name, translator.ExemplarSpanIDKey) {
			n++
		}
	})
	return n
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
