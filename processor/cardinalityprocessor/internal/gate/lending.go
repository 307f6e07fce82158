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

// lending is what is lent of a batch.
type lending struct {
	lent   bool     // the metrics go back to the receiver
	sealed bool     // and nobody changes attributes
	hidden []func() // put back what was hidden of them
}

// maxHidden is for how many slices that something was hidden of a batch keeps memory.
const maxHidden = 1 << 12

// again is for the next batch: the memory, if that is not too much.
func (l *lending) again() lending {
	if cap(l.hidden) > maxHidden {
		return lending{}
	}
	clear(l.hidden)
	return lending{hidden: l.hidden[:0]}
}

// lend records that a batch is of metrics that came with a loan. It returns nil if they did not.
func (b *Batch) lend(loan *handback.Loan) {
	b.lent = loan != nil
	if !b.lent {
		return
	}
	b.sealed = loan.Sealed()
	if b.words = loan.Wording(); b.words != nil || !loan.Lasts() {
		return
	}
	if b.hinted.Hints, _ = loan.Note(b.g).(*ident.Hints); b.hinted.Hints == nil {
		b.hinted.Hints = &ident.Hints{}
		loan.Leave(b.g, b.hinted.Hints)
	}
}

// handBack puts back what was hidden, the last first.
func (l *lending) handBack() {
	for _, show := range slices.Backward(l.hidden) {
		show()
	}
}

// append appends a copy of a point, and returns where. What is lent goes back without it.
func (l *lending) append(m pmetric.Metric, i int) (at int) {
	at = amount.AppendCopy(m, i)
	if l.lent {
		l.hidden = append(l.hidden, func() { amount.Shorten(m, at) })
	}
	return at
}

// silence marks a point as having no value. A number that is lent says afterwards again that it has one: the receiver gives
// it the next, and leaves flags alone.
func (l *lending) silence(m pmetric.Metric, i int) {
	if l.lent {
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
			l.hidden = append(l.hidden, func() { dp.SetFlags(flags) })
		}
	}
	amount.Silence(m, i)
}
