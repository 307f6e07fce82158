// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package handback

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// A Loan goes with metrics whose memory the receiver will reuse. It belongs to that memory, and the components on the
// way find it through the context.
//
// A component that finds one knows that nothing behind it keeps the metrics. So it may take parts out and put them back
// once the next consumer has returned nil: the receiver then finds all that it handed out.
//
// It may also leave a note about the points, and finds the note again when the same points come with other values. The
// receiver drops all notes when it changes which points there are, which attributes they have, or where they are. The
// resources may differ each time, since targets that are alike share memory. A Loan is used by one goroutine at a time.
type Loan struct {
	notebook

	places  Places
	metrics pmetric.Metrics // lent
	parts   []*Part
	wording *Wording
	filler  Filler // fills in the values of the wording
	defers  bool
	points  int  // number of points if their values are deferred
	asked   bool // Defers was called
	sealed  bool

	scopes []pmetric.ScopeMetrics // the first scope of each sent resource; these keep their addresses
	back   func()                 // called once they have come back
	away   int                    // points in flight
	left   time.Time              // when they were sent
}

// notebook is where notes are left.
type notebook struct {
	times int // how often the points came since they changed
	notes []note
}

type note struct{ owner, said any }

// A Part is metrics of gauges and sums that always stay together: wherever they appear they are side by side, in the
// same order, with the same points, and each point has the same attributes. It belongs to the memory of these metrics,
// and has notes of its own, about nothing else. A component that uses the notes checks whether the metrics and the
// points are the ones that are there: another component may have taken some out.
type Part struct {
	notebook

	// Memory describes these metrics and points, in terms of package slab: a *slab.Stretch.
	Memory any
}

// A Wording stands for the attributes that one target's points have on page after page, while targets of the same kind
// take turns in using the memory of the metrics. Notes about attributes are left with it, and notes that hold for all
// of these targets are left with the loan: a note left with a loan that has a wording must not be about attributes. The
// receiver forgets it when points, their order or values change.
//
// It may also stand for the points of metrics that are made anew each time, see [Loan.Know].
type Wording struct {
	notebook

	// Part is which part of a page has these points, if a page comes in parts.
	Part int
}

// Places is where notes are left about the points of a loan, and where they are, but not about their attributes: the
// receiver has restored these, and the components that change them may do so differently each time. Who uses such a
// note compares attributes.
type Places struct{ notebook }

// A Filler fills in values that are deferred.
type Filler interface{ Settle() }

// Reword declares that the metrics lent next have the same number of points as before, each in the same place, and that
// their attributes are those of a wording. There may be other attributes, with other names: whoever reads them calls
// [Loan.Settle] first, which has the filler fill them in. Only a receiver for which [UnreadWords] reports true may use it.
func (l *Loan) Reword(w *Wording, points int, d Filler) {
	l.wording, l.filler, l.points, l.defers, l.asked = w, d, points, true, false
}

// Know declares that the metrics lent next, which were made anew, have the points of a wording, with all of their
// attributes. Nobody is told before the wording comes for the second time. As with Reword, [UnreadWords] must be true.
func (l *Loan) Know(w *Wording) {
	if w.times++; w.Lasts() {
		l.wording = w
	}
}

// Filler returns who fills in deferred values, nil if there are none.
func (l *Loan) Filler() Filler { return l.filler }

// Narrow declares that points of the wording were taken out for the next consumer, and which wording the remaining ones
// have. Their values are still deferred, and d has them filled in by the filler, for which the points must be back.
func (l *Loan) Narrow(w *Wording, points int, d Filler) { l.wording, l.points, l.filler = w, points, d }

// Unword declares that the metrics lent next have all values, and have the attributes that notes are about.
func (l *Loan) Unword() {
	if l.wording != nil {
		l.Forget() // notes may be about other values
	}
	l.defers, l.asked = false, false
}

// Wording returns the wording of the attributes' values, nil if notes may be about these.
func (l *Loan) Wording() *Wording { return l.wording }

// Seal sets whether it is certain that no component on the way changes attributes, as [UnreadWords] reports.
func (l *Loan) Seal(sealed bool) { l.sealed = sealed }

// Sealed reports whether a note about points is valid without a check of their attributes. Everything else must be
// checked.
func (l *Loan) Sealed() bool { return l.sealed }

// Forget drops all notes: the points are different from now on, and whoever deferred values must fill them in itself.
func (l *Loan) Forget() {
	l.wording, l.filler = nil, nil
	l.notebook.Forget()
	l.places.Forget()
}

// ForgetAttributes drops the notes about attributes of points: other components may change these before a note is used.
func (l *Loan) ForgetAttributes() {
	l.wording, l.filler = nil, nil
	l.notebook.Forget()
}

// Places returns where notes are left that outlast ForgetAttributes.
func (l *Loan) Places() *Places { return &l.places }

// Bring lists the parts of the metrics lent next, in their order. All other metrics may be different each time.
func (l *Loan) Bring(parts []*Part) {
	l.parts, l.defers, l.asked = parts, false, false
	for _, p := range parts {
		p.times++
	}
}

// Defer declares that points of parts may lack their values, which are in the part's Memory. It applies to metrics with
// this number of points, and only a receiver for which [Unread] reports true may use it.
func (l *Loan) Defer(points int) { l.defers, l.points = true, points }

// Defers reports whether points may lack their values, and the number of points when the metrics were lent: if it has
// changed, a component on the way has done something unexpected.
func (l *Loan) Defers() (points int, ok bool) {
	if l == nil {
		return 0, false
	}
	l.asked = true
	return l.points, l.defers
}

// Asked reports whether Defers was called since metrics were lent. If not, the loan does not reach a component that
// settles, and nothing may be deferred.
func (l *Loan) Asked() bool { return l.asked }

// Settle gives all points their values. A component that reads points whose values are deferred calls it first.
func (l *Loan) Settle() {
	if l != nil && l.filler != nil {
		l.filler.Settle()
	}
	for _, p := range l.Parts() {
		if m, ok := p.Memory.(interface{ Settle() }); ok {
			m.Settle()
		}
	}
}

// Parts returns the parts of the metrics, in order.
func (l *Loan) Parts() []*Part {
	if l == nil {
		return nil
	}
	return l.parts
}

// Lend returns the context with which to pass the metrics on. Without a loan, it is ctx.
func Lend(ctx context.Context, l *Loan, md pmetric.Metrics) context.Context {
	if l == nil {
		return ctx
	}
	l.metrics = md
	l.lent()
	return &lent{Context: ctx, loan: l}
}

// lent records that the points come once more.
func (l *Loan) lent() {
	l.times++
	l.places.times++
}

// LoanOf returns the loan that metrics came with, or nil.
func LoanOf(ctx context.Context, md pmetric.Metrics) *Loan {
	c, _ := ctx.Value(loanKey{}).(*lent)
	if c == nil || c.loan.metrics != md || md.IsReadOnly() {
		return nil
	}
	return c.loan
}

type loanKey struct{}

type lent struct {
	context.Context

	loan *Loan
}

func (c *lent) Value(key any) any {
	if key == (loanKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// Lasts reports whether the points are the same as the last time: a note may be of use.
func (l *notebook) Lasts() bool { return l.times > 1 }

// Turn returns how often the same points have been lent.
func (l *notebook) Turn() int { return l.times }

// Note returns the owner's note, nil if there is none or the points have changed since.
func (l *notebook) Note(owner any) any {
	for i := range l.notes {
		if l.notes[i].owner == owner {
			return l.notes[i].said
		}
	}
	return nil
}

// maxNotes is the maximum number of owners of notes: as many as a pipeline has components that leave some.
const maxNotes = 16

// Leave leaves a note, which replaces the owner's previous one. The owner is a pointer.
func (l *notebook) Leave(owner, said any) {
	for i := range l.notes {
		if l.notes[i].owner == owner {
			l.notes[i].said = said
			return
		}
	}
	if len(l.notes) < maxNotes {
		l.notes = append(l.notes, note{owner, said})
	}
}

// Forget drops all notes: the points are different from now on.
func (l *notebook) Forget() {
	clear(l.notes)
	l.notes, l.times = l.notes[:0], 0
}
