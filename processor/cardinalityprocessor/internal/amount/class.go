// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package amount

import (
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Class is how values of a kind come together.
type Class uint8

// The classes.
const (
	ClassGauge Class = iota
	ClassDelta
	ClassCumulative // only goes up
	ClassUpDown     // the sum of all last values
)

// Keeps says whether the last values of inputs are kept.
func (c Class) Keeps() bool { return c == ClassCumulative || c == ClassUpDown }

// ClassOf is how values of a metric come together.
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

// GaugeMode is how gauges come together. There is no right way for all.
type GaugeMode uint8

// The modes.
const (
	GaugeDrop GaugeMode = iota
	GaugeLast
	GaugeMin
	GaugeMax
	GaugeMean
)

// Blend is for gauges that are not added up.
func (g GaugeMode) Blend(to, v *Value, later bool) {
	if g == GaugeLast && later || g == GaugeMin && v.Number() < to.Number() || g == GaugeMax && v.Number() > to.Number() {
		*to = *v
	}
}
