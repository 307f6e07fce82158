// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package handback

import (
	"math"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// The values that poison leaves: no page or client can send them.
const (
	PoisonText = "memory that was handed back"
	poisonBits = 0x7ff80000dead0000
)

var poisoning = switched(invariants)

func switched(on bool) *atomic.Bool {
	s := new(atomic.Bool)
	s.Store(on)
	return s
}

// Poison sets whether memory that was handed back is overwritten before it is reused, and returns how to undo that. It
// is for tests; builds with the tag invariants start with it on.
func Poison(on bool) (undo func()) {
	before := poisoning.Swap(on)
	return func() { poisoning.Store(before) }
}

// Poisons reports whether memory is overwritten.
func Poisons() bool { return poisoning.Load() }

// IsPoison reports whether a value was left by poison.
func IsPoison(v float64) bool { return math.Float64bits(v) == poisonBits }

// Overwrite poisons the contents of metrics: names, attributes, values and times. The structure stays, and with it the
// number of points, attributes, buckets and quantiles.
func Overwrite(md pmetric.Metrics) {
	for _, rm := range md.ResourceMetrics().All() {
		overwriteMap(rm.Resource().Attributes())
		for _, sm := range rm.ScopeMetrics().All() {
			sm.Scope().SetName(PoisonText)
			overwriteMap(sm.Scope().Attributes())
			for _, m := range sm.Metrics().All() {
				OverwriteMetric(m)
			}
		}
	}
}

// OverwriteMetric poisons one metric.
func OverwriteMetric(m pmetric.Metric) {
	m.SetName(PoisonText)
	m.SetDescription(PoisonText)
	m.SetUnit(PoisonText)
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		overwriteNumbers(m.Gauge().DataPoints())
	case pmetric.MetricTypeSum:
		overwriteNumbers(m.Sum().DataPoints())
	case pmetric.MetricTypeHistogram:
		for _, dp := range m.Histogram().DataPoints().All() {
			overwriteMap(dp.Attributes())
			overwriteExemplars(dp.Exemplars())
			dp.SetTimestamp(math.MaxUint64)
			dp.SetCount(math.MaxUint64)
			dp.SetSum(poison())
			for i := range dp.BucketCounts().Len() {
				dp.BucketCounts().SetAt(i, math.MaxUint64)
			}
		}
	case pmetric.MetricTypeSummary:
		for _, dp := range m.Summary().DataPoints().All() {
			overwriteMap(dp.Attributes())
			dp.SetTimestamp(math.MaxUint64)
			dp.SetCount(math.MaxUint64)
			dp.SetSum(poison())
			for _, q := range dp.QuantileValues().All() {
				q.SetValue(poison())
			}
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, dp := range m.ExponentialHistogram().DataPoints().All() {
			overwriteMap(dp.Attributes())
			overwriteExemplars(dp.Exemplars())
			dp.SetTimestamp(math.MaxUint64)
			dp.SetCount(math.MaxUint64)
			dp.SetSum(poison())
			for _, b := range []pmetric.ExponentialHistogramDataPointBuckets{dp.Positive(), dp.Negative()} {
				for i := range b.BucketCounts().Len() {
					b.BucketCounts().SetAt(i, math.MaxUint64)
				}
			}
		}
	default:
	}
}

func overwriteNumbers(dps pmetric.NumberDataPointSlice) {
	for _, dp := range dps.All() {
		overwriteMap(dp.Attributes())
		overwriteExemplars(dp.Exemplars())
		dp.SetTimestamp(math.MaxUint64)
		if dp.ValueType() == pmetric.NumberDataPointValueTypeDouble {
			dp.SetDoubleValue(poison()) // a point without a value must not get one, because it could not be removed
		}
	}
}

func overwriteExemplars(es pmetric.ExemplarSlice) {
	for _, e := range es.All() {
		overwriteMap(e.FilteredAttributes())
		e.SetTimestamp(math.MaxUint64)
		e.SetDoubleValue(poison())
	}
}

func overwriteMap(m pcommon.Map) {
	for _, v := range m.All() {
		v.SetStr(PoisonText)
	}
}

func poison() float64 { return math.Float64frombits(poisonBits) }
