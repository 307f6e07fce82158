// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package handback

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// A Loan goes with metrics whose memory the receiver will use again. It belongs to that memory, and is found by the
// components on the way through the context.
//
// A component that finds one knows that nothing behind it keeps the metrics. So it may take parts out and put them back once
// the next consumer has returned nil: the receiver then finds all that it handed out.
//
// It may also leave a note about the points, and finds it again when the same points come with other values. The receiver
// drops all notes when it changes anything about which points there are, what attributes they have, or where they are. The
// resources may be others each time: targets that are alike share memory. A Loan is used by one goroutine at a time.
type Loan struct {
	notebook

	metrics pmetric.Metrics // that are out
	parts   []*Part
	wording *Wording
	debtor  Debtor // who puts in the values that it is about
	owes    bool
	points  int  // of metrics that owe what they say
	asked   bool // somebody has asked for that

	scopes []pmetric.ScopeMetrics // the first of each resource that was sent, which keep their addresses
	back   func()                 // once they have come back
	away   int                    // points, until they have come
	left   time.Time              // when they were sent
}

// notebook is where notes are left.
type notebook struct {
	times int // since the points changed
	notes []note
}

type note struct{ owner, said any }

// A Part is metrics of gauges and sums that stay together whatever comes with them: where they come they are side by side, in the same order,
// with the same points, and each point has the attributes that it had. It belongs to the memory of these metrics, and has notes of
// its own, about nothing else. Whoever goes by them looks whether the metrics and the points are those that are there: others on the way may
// have taken some out.
type Part struct {
	notebook

	// Memory is which metrics and points these are, as package slab says it: a *slab.Stretch.
	Memory any
}

// A Wording is the values that the attributes of points have which a target's pages show again and again, while the memory of the metrics is
// now its, and now another's of the same kind. Notes about values are left with it, and others, which hold for all of these targets, with the
// loan: a note that is left with a loan which has a wording must not be about values. The receiver forgets it when there are other points, in
// another order, or other values.
type Wording struct{ notebook }

// A Debtor has values put in that are owed.
type Debtor interface{ Settle() }

// Reword says that the metrics lent next, of so many points, have those that they had, each where it was and with attributes of the names that
// these had, and that the values of attributes are those that a wording is about. They need not be there: who reads them has the debtor put
// them in before, by [Loan.Settle]. It is for who has [Unread] say so.
func (l *Loan) Reword(w *Wording, points int, d Debtor) {
	l.wording, l.debtor, l.points, l.owes, l.asked = w, d, points, true, false
}

// Unword says that the metrics lent next owe nothing, and have the attributes that notes are about.
func (l *Loan) Unword() {
	if l.wording != nil {
		l.Forget() // what was noted may be of other values
	}
	l.owes, l.asked = false, false
}

// Wording returns what the values of attributes are, nil if notes may be about these.
func (l *Loan) Wording() *Wording { return l.wording }

// Forget drops all notes: the points are others from here on, and what is owed of them is owed by who has it put in.
func (l *Loan) Forget() {
	l.wording, l.debtor = nil, nil
	l.notebook.Forget()
}

// Bring says which parts the metrics have that are lent next, in their order. All but these may be others each time.
func (l *Loan) Bring(parts []*Part) {
	l.parts, l.owes, l.asked = parts, false, false
	for _, p := range parts {
		p.times++
	}
}

// Owe says that points of parts may not say what they are to: their Memory has it. It is for who has [Unread] say so, and goes with metrics of
// so many points.
func (l *Loan) Owe(points int) { l.owes, l.points = true, points }

// Owes reports whether points may not say what they are to, and how many points the metrics had when they were lent: where there are others,
// somebody was on the way who was not to be.
func (l *Loan) Owes() (points int, ok bool) {
	if l == nil {
		return 0, false
	}
	l.asked = true
	return l.points, l.owes
}

// Asked reports whether somebody has asked so since metrics were lent. Where nobody has, the loan does not come to who settles, and nothing may be
// owed.
func (l *Loan) Asked() bool { return l.asked }

// Settle has all points say what they are to. Who reads points that owe does so before.
func (l *Loan) Settle() {
	if l != nil && l.debtor != nil {
		l.debtor.Settle()
	}
	for _, p := range l.Parts() {
		if m, ok := p.Memory.(interface{ Settle() }); ok {
			m.Settle()
		}
	}
}

// Parts returns the parts that metrics have, in their order.
func (l *Loan) Parts() []*Part {
	if l == nil {
		return nil
	}
	return l.parts
}

// Lend returns the context to hand metrics on with. Without a loan it is the one that is given.
func Lend(ctx context.Context, l *Loan, md pmetric.Metrics) context.Context {
	if l == nil {
		return ctx
	}
	l.metrics = md
	l.times++
	return &lent{Context: ctx, loan: l}
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

// Lasts says that the points are those of the last time: a note may be of use.
func (l *notebook) Lasts() bool { return l.times > 1 }

// Turn is how often the points have come.
func (l *notebook) Turn() int { return l.times }

// Note returns what the owner has left, nil if nothing or if the points have changed since.
func (l *notebook) Note(owner any) any {
	for i := range l.notes {
		if l.notes[i].owner == owner {
			return l.notes[i].said
		}
	}
	return nil
}

// maxNotes is how many owners may leave notes. There are as many as a pipeline has components that do so.
const maxNotes = 16

// Leave leaves a note, which replaces the owner's last one. The owner is a pointer.
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

// Forget drops all notes: the points are others from here on.
func (l *notebook) Forget() {
	clear(l.notes)
	l.notes, l.times = l.notes[:0], 0
}
