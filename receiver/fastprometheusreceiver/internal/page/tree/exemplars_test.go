// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"testing"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

// TestExemplarsInUsedMemoryAreWhatNewOnesAre gives a point one list of exemplars after another, in every order, and
// compares the result with that of a new point.
func TestExemplarsInUsedMemoryAreWhatNewOnesAre(t *testing.T) {
	exposed := func(value float64, pairs ...string) exemplar.Exemplar {
		return exemplar.Exemplar{Value: value, Ts: int64(1000 * value), Labels: labels.FromStrings(pairs...)}
	}
	ids := exposed(1, "trace_id", "0123456789abcdef0123456789abcdef", "span_id", "0123456789abcdef")
	lists := [][]exemplar.Exemplar{
		nil,
		{ids},
		{exposed(2)},
		{exposed(3, "trace_id", "no hexadecimal", "user", "one")},
		{exposed(4, "Span_ID", "01", "user", "two", "zone", "z"), ids, exposed(5, "user", "one")},
		{exposed(6, "TRACE_ID", "ff")},
		{exposed(7, "user", "three"), exposed(8)},
	}
	hang := func(list []exemplar.Exemplar, out pmetric.ExemplarSlice) {
		c := cursor{View: &View{}}
		for _, x := range list {
			c.Exemplars = append(c.Exemplars, plan.PlacedExemplar{Exemplar: x, Point: 3})
		}
		c.Exemplars = append(c.Exemplars, plan.PlacedExemplar{Exemplar: ids, Point: 4})
		c.setExemplars(3, out)
	}
	for _, before := range lists {
		for _, after := range lists {
			used, fresh := pmetric.NewExemplarSlice(), pmetric.NewExemplarSlice()
			hang(before, used)
			hang(after, used)
			hang(after, fresh)
			assert.Equal(t, len(after), used.Len())
			for i := range after {
				assert.Equal(t, fresh.At(i).Timestamp(), used.At(i).Timestamp())
				assert.InDelta(t, after[i].Value, used.At(i).DoubleValue(), 0)
				assert.Equal(t, fresh.At(i).TraceID(), used.At(i).TraceID())
				assert.Equal(t, fresh.At(i).SpanID(), used.At(i).SpanID())
				assert.Equal(t, fresh.At(i).FilteredAttributes().AsRaw(), used.At(i).FilteredAttributes().AsRaw())
			}
		}
	}
}
