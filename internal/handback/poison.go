// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package handback

import (
	"math"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// What poison leaves: nothing that a page or a client can send.
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

// Poison reports whether memory that was handed back is to be overwritten before it is used again, and returns how to undo
// that. It is for tests; builds with the tag invariants begin with it.
func Poison(on bool) (undo func()) {
	before := poisoning.Swap(on)
	return func() { poisoning.Store(before) }
}

// Poisons reports whether it is.
func Poisons() bool { return poisoning.Load() }

// IsPoison reports whether a value is what poison leaves.
func IsPoison(v float64) bool { return math.Float64bits(v) == poisonBits }

// Overwrite poisons what metrics say: names, attributes, values and times. The structure stays, and with it the number of
// points, attributes, buckets and quantiles.
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
			dp.SetDoubleValue(poison()) // a value cannot be taken back from a point that has none
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
