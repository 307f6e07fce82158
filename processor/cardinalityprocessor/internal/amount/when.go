// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package amount

import (
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// When is the time of a point, and whether it has a value.
type When struct {
	Start, Time pcommon.Timestamp
	NoValue     bool
}

// WhenAt reads the time of a point, and whether it has a value.
func WhenAt(m pmetric.Metric, i int) When {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		dp := m.Gauge().DataPoints().At(i)
		return When{dp.StartTimestamp(), dp.Timestamp(), Ends(dp)}
	case pmetric.MetricTypeSum:
		dp := m.Sum().DataPoints().At(i)
		return When{dp.StartTimestamp(), dp.Timestamp(), Ends(dp)}
	case pmetric.MetricTypeHistogram:
		dp := m.Histogram().DataPoints().At(i)
		return When{dp.StartTimestamp(), dp.Timestamp(), dp.Flags().NoRecordedValue()}
	case pmetric.MetricTypeExponentialHistogram:
		dp := m.ExponentialHistogram().DataPoints().At(i)
		return When{dp.StartTimestamp(), dp.Timestamp(), dp.Flags().NoRecordedValue()}
	default:
		dp := m.Summary().DataPoints().At(i)
		return When{dp.StartTimestamp(), dp.Timestamp(), dp.Flags().NoRecordedValue()}
	}
}

// Anew reports whether a point says that its series began anew since the last one: its start is a new one, and not before the
// last point. Some senders estimate their start anew each time, and of two that send the same series each has a start of its
// own: then the value tells. Of a clock that was ahead and was set back, only the start tells.
func (w When) Anew(last When, now pcommon.Timestamp) bool {
	return w.Start != last.Start && (w.Start >= last.Time || w.Time <= last.Time && last.Time > now+isAhead)
}

// isAhead is by how much a clock has to be ahead to be known for it.
const isAhead = pcommon.Timestamp(time.Minute)

// Ends reports whether a point is a stale marker: by its flag, or by Prometheus' special value alone.
func Ends(dp pmetric.NumberDataPoint) bool {
	return dp.Flags().NoRecordedValue() ||
		dp.ValueType() == pmetric.NumberDataPointValueTypeDouble && math.Float64bits(dp.DoubleValue()) == StaleBits
}

// StaleBits are the bits of Prometheus' stale marker.
const StaleBits = 0x7ff0000000000002
