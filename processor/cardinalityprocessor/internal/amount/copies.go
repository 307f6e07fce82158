// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package amount

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// AppendCopy appends a copy of a point, and returns its index.
func AppendCopy(m pmetric.Metric, i int) (at int) {
	at = PointCount(m)
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		copyPoint(m.Gauge().DataPoints(), i)
	case pmetric.MetricTypeSum:
		copyPoint(m.Sum().DataPoints(), i)
	case pmetric.MetricTypeHistogram:
		copyPoint(m.Histogram().DataPoints(), i)
	case pmetric.MetricTypeExponentialHistogram:
		copyPoint(m.ExponentialHistogram().DataPoints(), i)
	default:
		copyPoint(m.Summary().DataPoints(), i)
	}
	return at
}

// Shorten removes all points from index n on.
func Shorten(m pmetric.Metric, n int) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		shorten(m.Gauge().DataPoints(), n)
	case pmetric.MetricTypeSum:
		shorten(m.Sum().DataPoints(), n)
	case pmetric.MetricTypeHistogram:
		shorten(m.Histogram().DataPoints(), n)
	case pmetric.MetricTypeExponentialHistogram:
		shorten(m.ExponentialHistogram().DataPoints(), n)
	default:
		shorten(m.Summary().DataPoints(), n)
	}
}

func shorten[P any](points interface{ RemoveIf(f func(P) bool) }, n int) {
	i := -1
	points.RemoveIf(func(P) bool {
		i++
		return i >= n
	})
}

func copyPoint[P interface{ CopyTo(P) }](points interface {
	At(i int) P
	AppendEmpty() P
}, i int,
) {
	to := points.AppendEmpty()
	points.At(i).CopyTo(to)
}

// EmptyPoint gives to the type of from and one point, and returns its attributes.
func EmptyPoint(to, from pmetric.Metric) pcommon.Map {
	switch from.Type() {
	case pmetric.MetricTypeGauge:
		return to.SetEmptyGauge().DataPoints().AppendEmpty().Attributes()
	case pmetric.MetricTypeSum:
		to.SetEmptySum().SetIsMonotonic(from.Sum().IsMonotonic())
		to.Sum().SetAggregationTemporality(from.Sum().AggregationTemporality())
		return to.Sum().DataPoints().AppendEmpty().Attributes()
	case pmetric.MetricTypeHistogram:
		to.SetEmptyHistogram().SetAggregationTemporality(from.Histogram().AggregationTemporality())
		return to.Histogram().DataPoints().AppendEmpty().Attributes()
	case pmetric.MetricTypeExponentialHistogram:
		to.SetEmptyExponentialHistogram().SetAggregationTemporality(from.ExponentialHistogram().AggregationTemporality())
		return to.ExponentialHistogram().DataPoints().AppendEmpty().Attributes()
	default:
		return to.SetEmptySummary().DataPoints().AppendEmpty().Attributes()
	}
}

// maxRebuilt is the most attributes of a map that is copied one by one, since each insertion compares with all before
// it.
const maxRebuilt = 128

// CopyKept copies only what is kept, since the rest may be large.
func CopyKept(to, from pcommon.Map, keep func(string, pcommon.Value) bool) {
	n := 0
	for key, value := range from.All() {
		if keep(key, value) {
			n++
		}
	}
	if n < from.Len() && n <= maxRebuilt { // each insertion compares with all before it
		for key, value := range from.All() {
			if keep(key, value) {
				value.CopyTo(to.PutEmpty(key))
			}
		}
		if to.Len() == n { // else a key is there twice
			return
		}
	}
	from.CopyTo(to)
	to.RemoveIf(func(key string, value pcommon.Value) bool { return !keep(key, value) })
}

// Detached returns a copy of data with one metric, and that metric, with strings of its own.
func Detached(data pmetric.Metrics) (pmetric.Metrics, pmetric.Metric) {
	var to pmetric.ProtoMarshaler
	var from pmetric.ProtoUnmarshaler
	raw, _ := to.MarshalMetrics(data)
	data, _ = from.UnmarshalMetrics(raw) // it was just marshalled
	return data, data.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
}

// OnlyPoint decodes data with one point. The metric is the zero value if there is anything else.
func OnlyPoint(data []byte) (md pmetric.Metrics, m pmetric.Metric) {
	var from pmetric.ProtoUnmarshaler
	md, err := from.UnmarshalMetrics(data)
	if err != nil || md.ResourceMetrics().Len() != 1 || md.ResourceMetrics().At(0).ScopeMetrics().Len() != 1 ||
		md.MetricCount() != 1 || md.DataPointCount() != 1 {
		return md, m
	}
	return md, md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
}
