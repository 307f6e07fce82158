// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package overflow

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/plain"
)

// List returns the outputs with the most members.
func (o *Overflow) List(limit int) (all []inspect.Overflow) {
	o.flushing.Lock()
	defer o.flushing.Unlock()
	most := slices.DeleteFunc(o.ordered(), func(out *Output) bool { return !out.begun.Load() })
	o.SumUp(most, false)
	slices.SortStableFunc(most, func(a, b *Output) int { return b.Sum.Members - a.Sum.Members })
	for _, out := range most[:min(limit, len(most))] {
		row := inspect.Overflow{Metric: out.Metric.Name(), Rule: out.Rule, Members: out.Sum.Members}
		resource := out.Data.ResourceMetrics().At(0).Resource().Attributes()
		for _, m := range []pcommon.Map{resource, amount.AttributesAt(out.Metric, 0)} {
			for name, value := range m.All() {
				row.Labels = append(row.Labels, inspect.Label{Name: name, Value: plain.Text(value)})
			}
		}
		all = append(all, row)
	}
	return all
}
