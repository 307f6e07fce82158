// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package amount

import (
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Silence marks a point as having no value. Bounds and quantiles stay, because elsewhere they identify the series.
func Silence(m pmetric.Metric, i int) {
	none := pmetric.DefaultDataPointFlags.WithNoRecordedValue(true)
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		silenceNumber(m.Gauge().DataPoints().At(i), none)
	case pmetric.MetricTypeSum:
		silenceNumber(m.Sum().DataPoints().At(i), none)
	case pmetric.MetricTypeHistogram:
		dp := m.Histogram().DataPoints().At(i)
		dp.SetFlags(none)
		dp.Exemplars().RemoveIf(func(pmetric.Exemplar) bool { return true })
		dp.RemoveMin()
		dp.RemoveMax()
		dp.BucketCounts().FromRaw(make([]uint64, dp.BucketCounts().Len()))
		dp.SetCount(0)
		if dp.HasSum() {
			dp.SetSum(0)
		}
	case pmetric.MetricTypeExponentialHistogram:
		dp := m.ExponentialHistogram().DataPoints().At(i)
		dp.SetFlags(none)
		dp.Exemplars().RemoveIf(func(pmetric.Exemplar) bool { return true })
		dp.RemoveMin()
		dp.RemoveMax()
		dp.Positive().BucketCounts().FromRaw(nil)
		dp.Negative().BucketCounts().FromRaw(nil)
		dp.SetZeroCount(0)
		dp.SetCount(0)
		if dp.HasSum() {
			dp.SetSum(0)
		}
	default:
		dp := m.Summary().DataPoints().At(i)
		dp.SetFlags(none)
		dp.SetCount(0)
		dp.SetSum(0)
		for _, q := range dp.QuantileValues().All() {
			q.SetValue(0)
		}
	}
}

func silenceNumber(dp pmetric.NumberDataPoint, none pmetric.DataPointFlags) {
	dp.SetFlags(none)
	dp.Exemplars().RemoveIf(func(pmetric.Exemplar) bool { return true })
	if dp.ValueType() == pmetric.NumberDataPointValueTypeInt {
		dp.SetIntValue(0)
	} else {
		dp.SetDoubleValue(0)
	}
}
