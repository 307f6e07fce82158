// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/racetest"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
)

// An attribute that is nested a million times must not crash the process, wherever it is converted to text.
func TestValuesThatAreNestedDeepEndNoProcess(t *testing.T) {
	racetest.Sequential(t)
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	sm := rm.ScopeMetrics().AppendEmpty()
	dp := sm.Metrics().AppendEmpty()
	dp.SetName("x")
	point := dp.SetEmptySum().DataPoints().AppendEmpty()
	point.SetDoubleValue(1)
	point.SetTimestamp(pcommon.NewTimestampFromTime(epoch))
	dp.Sum().SetIsMonotonic(true)
	dp.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	x := point.Exemplars().AppendEmpty()
	x.SetTimestamp(pcommon.NewTimestampFromTime(epoch))
	for _, attributes := range []pcommon.Map{rm.Resource().Attributes(), sm.Scope().Attributes(), point.Attributes(), x.FilteredAttributes()} {
		list, tree := attributes.PutEmpty("service.name"), attributes.PutEmpty("deep")
		for range 1_000_000 {
			list, tree = list.SetEmptySlice().AppendEmpty(), tree.SetEmptyMap().PutEmpty("k")
		}
	}
	e, _ := newEncoder(t, func(c *Config) { c.Cache.ScopeLabels = cache.ScopeLabelsOn })
	require.NoError(t, e.Add(md, ""))
	for _, f := range formats {
		flushAll(e, f)
	}
}
