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

// Metrics whose memory the receiver reuses come with a loan. What is rejected of them is hidden from the next consumer,
// and restored after that has accepted the rest: the receiver finds what it handed out, and fills it again.

// lending is the state of a batch with a loan.
type lending struct {
	lent   bool     // the metrics go back to the receiver
	sealed bool     // and nobody may change attributes
	hidden []func() // restore what was hidden

	loan   *handback.Loan  // of metrics with a wording
	filler handback.Filler // who fills in their values; nil if they have these
}

// maxHidden is the number of slices with hidden parts up to which a batch keeps memory.
const maxHidden = 1 << 12

// again returns the memory for the next batch, if it is not too large.
func (l *lending) again() lending {
	if cap(l.hidden) > maxHidden {
		return lending{}
	}
	clear(l.hidden)
	return lending{hidden: l.hidden[:0]}
}

// lend records whether the metrics came with a loan, and gets the wording or the hints that were left with it.
func (b *Batch) lend(loan *handback.Loan) {
	b.lent = loan != nil
	if !b.lent {
		return
	}
	b.sealed = loan.Sealed()
	if b.words = loan.Wording(); b.words != nil {
		b.loan, b.filler = loan, loan.Filler()
		return
	}
	if !loan.Lasts() {
		return
	}
	if b.hinted.Hints, _ = loan.Note(b.g).(*ident.Hints); b.hinted.Hints == nil {
		b.hinted.Hints = &ident.Hints{}
		loan.Leave(b.g, b.hinted.Hints)
	}
}

// handBack restores what was hidden, in reverse order.
func (l *lending) handBack() {
	for _, show := range slices.Backward(l.hidden) {
		show()
	}
}

// Settle implements [handback.Filler]. Values are filled in while all points are there.
func (l *lending) Settle() {
	if l.filler == nil {
		return
	}
	l.handBack()
	l.filler.Settle()
	l.filler = nil
	for _, hide := range l.hidden {
		hide()
	}
}

// append appends a copy of a point, and returns its index. Metrics with a loan go back without it.
func (l *lending) append(m pmetric.Metric, i int) (at int) {
	at = amount.AppendCopy(m, i)
	if l.lent {
		l.hidden = append(l.hidden, func() { amount.Shorten(m, at) })
	}
	return at
}

// silence marks a point as having no value. The flags of a number with a loan are restored afterwards, because the
// receiver only sets its next value.
func (l *lending) silence(m pmetric.Metric, i int) {
	if l.lent {
		var points pmetric.NumberDataPointSlice
		switch m.Type() {
		case pmetric.MetricTypeGauge:
			points = m.Gauge().DataPoints()
		case pmetric.MetricTypeSum:
			points = m.Sum().DataPoints()
		default: // its flags are set each time
		}
		if points != (pmetric.NumberDataPointSlice{}) {
			dp := points.At(i)
			flags := dp.Flags()
			l.hidden = append(l.hidden, func() { dp.SetFlags(flags) })
		}
	}
	amount.Silence(m, i)
}
