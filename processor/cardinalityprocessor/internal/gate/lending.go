// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/slab"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
)

// Metrics whose memory the receiver uses again come with a loan. What is rejected of them is then hidden from the next
// consumer, and put back once that has accepted the rest: the receiver finds what it handed out, and fills it again.

// lend notes that a batch is of metrics that came with a loan. It is nil if they did not.
func (b *Batch) lend(loan *handback.Loan) {
	b.lent = loan != nil
	if !b.lent || !loan.Lasts() {
		return
	}
	if b.hinted.Hints, _ = loan.Note(b.g).(*ident.Hints); b.hinted.Hints == nil {
		b.hinted.Hints = &ident.Hints{}
		loan.Leave(b.g, b.hinted.Hints)
	}
}

// handBack puts back what was hidden, the last first.
func (b *Batch) handBack() {
	for _, show := range slices.Backward(b.hidden) {
		show()
	}
}

// removePoints removes the points that drop says, or hides them, and returns how many are left.
func (b *Batch) removePoints(m pmetric.Metric, drop []bool) int {
	hidden := func(i int) bool { return drop[i] }
	if !b.lent {
		return amount.RemovePoints(m, drop)
	}
	var show func()
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		show = slab.Hide(m.Gauge().DataPoints(), pmetric.NewNumberDataPointSlice, hidden)
	case pmetric.MetricTypeSum:
		show = slab.Hide(m.Sum().DataPoints(), pmetric.NewNumberDataPointSlice, hidden)
	case pmetric.MetricTypeHistogram:
		show = slab.Hide(m.Histogram().DataPoints(), pmetric.NewHistogramDataPointSlice, hidden)
	case pmetric.MetricTypeExponentialHistogram:
		show = slab.Hide(m.ExponentialHistogram().DataPoints(), pmetric.NewExponentialHistogramDataPointSlice, hidden)
	default:
		show = slab.Hide(m.Summary().DataPoints(), pmetric.NewSummaryDataPointSlice, hidden)
	}
	b.hidden = append(b.hidden, show)
	return amount.PointCount(m)
}

// removeMetrics removes metrics without points, or hides them, and so do removeScopes and removeResources with what is empty.
func (b *Batch) removeMetrics(of pmetric.MetricSlice) {
	if !b.lent {
		of.RemoveIf(func(m pmetric.Metric) bool { return amount.PointCount(m) == 0 })
		return
	}
	b.hidden = append(b.hidden, slab.Hide(of, pmetric.NewMetricSlice, func(i int) bool { return amount.PointCount(of.At(i)) == 0 }))
}

func (b *Batch) removeScopes(of pmetric.ScopeMetricsSlice) {
	if !b.lent {
		of.RemoveIf(func(sm pmetric.ScopeMetrics) bool { return sm.Metrics().Len() == 0 })
		return
	}
	b.hidden = append(b.hidden, slab.Hide(of, pmetric.NewScopeMetricsSlice, func(i int) bool { return of.At(i).Metrics().Len() == 0 }))
}

func (b *Batch) removeResources(of pmetric.ResourceMetricsSlice) {
	if !b.lent {
		of.RemoveIf(func(rm pmetric.ResourceMetrics) bool { return rm.ScopeMetrics().Len() == 0 })
		return
	}
	b.hidden = append(b.hidden, slab.Hide(of, pmetric.NewResourceMetricsSlice, func(i int) bool { return of.At(i).ScopeMetrics().Len() == 0 }))
}

// silence marks a point as having no value. A number that is lent says afterwards again that it has one: the receiver gives
// it the next, and leaves flags alone.
func (b *Batch) silence(i int) {
	m := b.at.m
	if b.lent {
		var points pmetric.NumberDataPointSlice
		switch m.Type() {
		case pmetric.MetricTypeGauge:
			points = m.Gauge().DataPoints()
		case pmetric.MetricTypeSum:
			points = m.Sum().DataPoints()
		default: // has its flags set each time
		}
		if points != (pmetric.NumberDataPointSlice{}) {
			dp := points.At(i)
			flags := dp.Flags()
			b.hidden = append(b.hidden, func() { dp.SetFlags(flags) })
		}
	}
	amount.Silence(m, i)
}
