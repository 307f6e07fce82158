// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import "go.opentelemetry.io/collector/pdata/pmetric"

// samplesOf returns how many samples metrics with the given number of points become: a histogram or a summary is a sum,
// a count, and one for each bucket or quantile.
func (c *PointsConfig) samplesOf(md pmetric.Metrics, points int) int64 {
	n := points
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				switch m.Type() {
				case pmetric.MetricTypeHistogram:
					n += c.moreOfHistograms(m.Histogram().DataPoints())
				case pmetric.MetricTypeSummary:
					points := m.Summary().DataPoints()
					for i := range points.Len() {
						n += 1 + points.At(i).QuantileValues().Len()
					}
				default:
				}
			}
		}
	}
	return int64(n)
}

// moreOfHistograms is how many samples histograms become in addition to one each.
func (c *PointsConfig) moreOfHistograms(points pmetric.HistogramDataPointSlice) (n int) {
	if c.isCustomOnly() {
		return 0
	}
	for i := range points.Len() {
		n += 2 + points.At(i).ExplicitBounds().Len()
	}
	if c.ConvertExplicitHistogramsToNHCB {
		n += points.Len()
	}
	return n
}
