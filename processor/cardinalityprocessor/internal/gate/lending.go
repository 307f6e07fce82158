// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
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
