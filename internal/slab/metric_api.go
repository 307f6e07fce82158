// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package slab

import "go.opentelemetry.io/collector/pdata/pmetric"

func appendGauge(to pmetric.MetricSlice, n int) (pmetric.Metric, pmetric.NumberDataPointSlice) {
	m := to.AppendEmpty()
	points := m.SetEmptyGauge().DataPoints()
	points.EnsureCapacity(n)
	return m, points
}

func appendSum(to pmetric.MetricSlice, n int) (pmetric.Metric, pmetric.NumberDataPointSlice) {
	m := to.AppendEmpty()
	points := m.SetEmptySum().DataPoints()
	points.EnsureCapacity(n)
	return m, points
}
