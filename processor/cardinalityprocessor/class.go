// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import "go.opentelemetry.io/collector/pdata/pmetric"

// class is how values of a kind come together.
type class uint8

const (
	classGauge class = iota
	classDelta
	classCumulative // only goes up
	classUpDown     // the sum of all last values
)

// keeps says whether the last values of inputs are kept.
func (c class) keeps() bool { return c == classCumulative || c == classUpDown }

func classOf(m pmetric.Metric) class {
	temporality := pmetric.AggregationTemporalityCumulative
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return classGauge
	case pmetric.MetricTypeSum:
		temporality = m.Sum().AggregationTemporality()
		if temporality != pmetric.AggregationTemporalityDelta && !m.Sum().IsMonotonic() {
			return classUpDown
		}
	case pmetric.MetricTypeHistogram:
		temporality = m.Histogram().AggregationTemporality()
	case pmetric.MetricTypeExponentialHistogram:
		temporality = m.ExponentialHistogram().AggregationTemporality()
	default:
	}
	if temporality == pmetric.AggregationTemporalityDelta {
		return classDelta
	}
	return classCumulative
}

// gaugeMode is how gauges come together. There is no right way for all.
type gaugeMode uint8

const (
	gaugeDrop gaugeMode = iota
	gaugeLast
	gaugeMin
	gaugeMax
	gaugeMean
)

const (
	nameLast = "last"
	nameMax  = "max"
	nameMean = "mean"
)

var gaugeModes = map[string]gaugeMode{
	nameDrop: gaugeDrop, nameLast: gaugeLast, nameMin: gaugeMin, nameMax: gaugeMax, nameMean: gaugeMean,
}
