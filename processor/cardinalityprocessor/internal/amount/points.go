// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package amount

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// PointCount returns how many points a metric has.
func PointCount(m pmetric.Metric) int {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return m.Gauge().DataPoints().Len()
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints().Len()
	case pmetric.MetricTypeHistogram:
		return m.Histogram().DataPoints().Len()
	case pmetric.MetricTypeExponentialHistogram:
		return m.ExponentialHistogram().DataPoints().Len()
	case pmetric.MetricTypeSummary:
		return m.Summary().DataPoints().Len()
	default:
		return 0
	}
}

// AttributesAt returns the attributes of one point.
func AttributesAt(m pmetric.Metric, i int) pcommon.Map {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return m.Gauge().DataPoints().At(i).Attributes()
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints().At(i).Attributes()
	case pmetric.MetricTypeHistogram:
		return m.Histogram().DataPoints().At(i).Attributes()
	case pmetric.MetricTypeExponentialHistogram:
		return m.ExponentialHistogram().DataPoints().At(i).Attributes()
	default:
		return m.Summary().DataPoints().At(i).Attributes()
	}
}

// KindOf packs type, monotonicity and temporality, which may be any 32-bit number.
func KindOf(m pmetric.Metric) uint64 {
	kind := uint64(m.Type())
	switch m.Type() {
	case pmetric.MetricTypeSum:
		kind |= kindTemporality(m.Sum().AggregationTemporality())
		if m.Sum().IsMonotonic() {
			kind |= kindMonotonic
		}
	case pmetric.MetricTypeHistogram:
		kind |= kindTemporality(m.Histogram().AggregationTemporality())
	case pmetric.MetricTypeExponentialHistogram:
		kind |= kindTemporality(m.ExponentialHistogram().AggregationTemporality())
	default:
	}
	return kind
}

// NumberKinds returns all kinds of metrics with numbers.
func NumberKinds() []uint64 {
	all := []uint64{uint64(pmetric.MetricTypeGauge)}
	for t := pmetric.AggregationTemporalityUnspecified; t <= pmetric.AggregationTemporalityCumulative; t++ {
		sum := uint64(pmetric.MetricTypeSum) | kindTemporality(t)
		all = append(all, sum, sum|kindMonotonic)
	}
	return all
}

const kindMonotonic = 1 << 8

func kindTemporality(t pmetric.AggregationTemporality) uint64 { return uint64(uint32(t)) << 32 }

// AppendPointOf appends a copy of the first point of another metric of the same type.
func AppendPointOf(to, from pmetric.Metric) {
	switch from.Type() {
	case pmetric.MetricTypeGauge:
		from.Gauge().DataPoints().At(0).CopyTo(to.Gauge().DataPoints().AppendEmpty())
	case pmetric.MetricTypeSum:
		from.Sum().DataPoints().At(0).CopyTo(to.Sum().DataPoints().AppendEmpty())
	case pmetric.MetricTypeHistogram:
		from.Histogram().DataPoints().At(0).CopyTo(to.Histogram().DataPoints().AppendEmpty())
	case pmetric.MetricTypeExponentialHistogram:
		from.ExponentialHistogram().DataPoints().At(0).CopyTo(to.ExponentialHistogram().DataPoints().AppendEmpty())
	default:
		from.Summary().DataPoints().At(0).CopyTo(to.Summary().DataPoints().AppendEmpty())
	}
}

// SetTimes is SetTimesAt for the first point.
func SetTimes(m pmetric.Metric, start, at pcommon.Timestamp) { SetTimesAt(m, 0, start, at) }

// SetTimesAt sets the start and the time of a point. Gauges have no start.
func SetTimesAt(m pmetric.Metric, i int, start, at pcommon.Timestamp) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		m.Gauge().DataPoints().At(i).SetTimestamp(at)
	case pmetric.MetricTypeSum:
		m.Sum().DataPoints().At(i).SetStartTimestamp(start)
		m.Sum().DataPoints().At(i).SetTimestamp(at)
	case pmetric.MetricTypeHistogram:
		m.Histogram().DataPoints().At(i).SetStartTimestamp(start)
		m.Histogram().DataPoints().At(i).SetTimestamp(at)
	case pmetric.MetricTypeExponentialHistogram:
		m.ExponentialHistogram().DataPoints().At(i).SetStartTimestamp(start)
		m.ExponentialHistogram().DataPoints().At(i).SetTimestamp(at)
	default:
		m.Summary().DataPoints().At(i).SetStartTimestamp(start)
		m.Summary().DataPoints().At(i).SetTimestamp(at)
	}
}
