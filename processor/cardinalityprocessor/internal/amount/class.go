// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package amount

import (
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Class is how values of a kind are combined.
type Class uint8

// The classes.
const (
	ClassGauge Class = iota
	ClassDelta
	ClassCumulative // only goes up
	ClassUpDown     // the sum of all last values
)

// Keeps reports whether the last value of each input is kept.
func (c Class) Keeps() bool { return c == ClassCumulative || c == ClassUpDown }

// ClassOf returns the class of a metric.
func ClassOf(m pmetric.Metric) Class {
	temporality := pmetric.AggregationTemporalityCumulative
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return ClassGauge
	case pmetric.MetricTypeSum:
		temporality = m.Sum().AggregationTemporality()
		if temporality != pmetric.AggregationTemporalityDelta && !m.Sum().IsMonotonic() {
			return ClassUpDown
		}
	case pmetric.MetricTypeHistogram:
		temporality = m.Histogram().AggregationTemporality()
	case pmetric.MetricTypeExponentialHistogram:
		temporality = m.ExponentialHistogram().AggregationTemporality()
	default:
	}
	if temporality == pmetric.AggregationTemporalityDelta {
		return ClassDelta
	}
	return ClassCumulative
}

// GaugeMode is how gauges are combined. No way is right for all of them.
type GaugeMode uint8

// The modes.
const (
	GaugeDrop GaugeMode = iota
	GaugeLast
	GaugeMin
	GaugeMax
	GaugeMean
)

// Blend combines gauges that are not added up.
func (g GaugeMode) Blend(to, v *Value, later bool) {
	if g == GaugeLast && later || g == GaugeMin && v.Number() < to.Number() || g == GaugeMax && v.Number() > to.Number() {
		*to = *v
	}
}
