// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package handback

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

func TestALoanIsFoundByItsMetricsAlone(t *testing.T) {
	type key struct{}
	base := context.WithValue(t.Context(), key{}, "kept")
	md, other := pmetric.NewMetrics(), pmetric.NewMetrics()
	var l Loan
	require.Equal(t, base, Lend(base, nil, md))
	require.Nil(t, LoanOf(base, md))
	ctx := context.WithValue(Lend(base, &l, md), key{}, "wrapped")
	require.Same(t, &l, LoanOf(ctx, md))
	require.Equal(t, "kept", Lend(base, &l, md).Value(key{}))
	require.Nil(t, LoanOf(ctx, other), "who hands on a copy hands on no loan")
	md.MarkReadOnly()
	require.Nil(t, LoanOf(ctx, md), "what several consumers share is nobody's to put back")
}

func TestNotesAreDroppedWithThePointsTheyAreAbout(t *testing.T) {
	var l Loan
	md := pmetric.NewMetrics()
	one, two := new(int), new(int)
	Lend(t.Context(), &l, md)
	require.False(t, l.Lasts())
	Lend(t.Context(), &l, md)
	require.True(t, l.Lasts())
	l.Leave(one, "first")
	l.Leave(two, "second")
	l.Leave(one, "third")
	require.Equal(t, "third", l.Note(one))
	require.Equal(t, "second", l.Note(two))
	l.Forget()
	require.Nil(t, l.Note(one))
	require.Nil(t, l.Note(two))
	require.False(t, l.Lasts())
	for range 2 * maxNotes {
		l.Leave(new(int), "another")
	}
	require.Len(t, l.notes, maxNotes)
}

// Where components change attributes of points, notes about anything else about them last.
func TestNotesAboutPlacesLast(t *testing.T) {
	var l Loan
	md, owner := pmetric.NewMetrics(), new(int)
	for range 3 {
		l.ForgetAttributes()
		Lend(t.Context(), &l, md)
		l.Leave(owner, "attributes")
		l.Places().Leave(owner, "places")
	}
	require.False(t, l.Lasts())
	require.True(t, l.Places().Lasts())
	l.ForgetAttributes()
	require.Nil(t, l.Note(owner))
	require.Equal(t, "places", l.Places().Note(owner))
	l.Forget()
	require.Nil(t, l.Places().Note(owner))
	require.False(t, l.Places().Lasts())
}

// Notes about parts are found again with them, in any loan and with any other parts.
func TestPartsHaveNotesOfTheirOwn(t *testing.T) {
	var none *Loan
	require.Empty(t, none.Parts())
	var first, other Loan
	owner, parts := new(int), []*Part{{}, {}}
	first.Bring(parts)
	require.False(t, parts[0].Lasts())
	parts[0].Leave(owner, "said")
	first.Forget()
	other.Bring(parts[:1])
	require.Equal(t, parts[:1], other.Parts())
	require.True(t, parts[0].Lasts())
	require.False(t, parts[1].Lasts())
	require.Equal(t, "said", parts[0].Note(owner))
	require.Nil(t, parts[1].Note(owner))
}

type memory struct{ settled int }

func (m *memory) Settle() { m.settled++ }

// A component that asks what is unwritten gets the number of points there were, and is recorded as having asked.
func TestDeferredValuesAreAskedFor(t *testing.T) {
	var none *Loan
	_, defers := none.Defers()
	require.False(t, defers)
	var l Loan
	of := &memory{}
	l.Bring([]*Part{{Memory: of}, {}})
	require.False(t, l.Asked())
	_, defers = l.Defers()
	require.False(t, defers)
	require.True(t, l.Asked())
	l.Bring(l.Parts())
	l.Defer(7)
	require.False(t, l.Asked())
	points, defers := l.Defers()
	require.True(t, defers)
	require.Equal(t, 7, points)
	l.Settle()
	require.Equal(t, 1, of.settled)
	l.Bring(nil)
	_, defers = l.Defers()
	require.False(t, defers, "the next metrics defer nothing until it is said of them")
}

// A wording has notes of its own, which are kept across memories, and its values are written on request.
func TestAWordingOutlivesTheMemory(t *testing.T) {
	owner, of := new(int), &memory{}
	var first, second Loan
	var a, b Wording
	md := pmetric.NewMetrics()
	lend := func(l *Loan, w *Wording) {
		l.Reword(w, 7, of)
		Lend(t.Context(), l, md)
	}
	Lend(t.Context(), &first, md)
	Lend(t.Context(), &second, md)
	lend(&first, &a)
	require.Same(t, &a, first.Wording())
	require.False(t, first.Asked())
	points, defers := first.Defers()
	require.True(t, defers)
	require.Equal(t, 7, points)
	require.True(t, first.Asked())
	require.True(t, first.Lasts())
	first.Leave(owner, "where points are")
	first.Wording().Leave(owner, "which points are a's")
	lend(&first, &b)
	require.Equal(t, "where points are", first.Note(owner), "which holds for b's, too")
	require.Nil(t, first.Wording().Note(owner))
	lend(&second, &a)
	require.Equal(t, "which points are a's", second.Wording().Note(owner))
	require.Zero(t, of.settled)
	second.Settle()
	require.Equal(t, 1, of.settled)
	first.Unword()
	require.Nil(t, first.Wording())
	require.Nil(t, first.Note(owner), "notes must not be about values, which they may be from here on")
	_, defers = first.Defers()
	require.False(t, defers)
	first.Settle()
	require.Equal(t, 1, of.settled, "nothing is deferred any more")
	first.Leave(owner, "all of it")
	first.Unword()
	require.Equal(t, "all of it", first.Note(owner))
	a.Forget()
	require.Nil(t, a.Note(owner))
	var none *Loan
	none.Settle()
}

// Metrics that are made anew have a wording from the second time on, and defer nothing.
func TestPointsThatAreMadeAnewAreKnown(t *testing.T) {
	var w Wording
	for n := range 3 {
		var l Loan
		md := pmetric.NewMetrics()
		l.Know(&w)
		Lend(t.Context(), &l, md)
		require.Equal(t, n > 0, l.Wording() == &w)
		_, defers := l.Defers()
		require.False(t, defers)
		require.False(t, l.Lasts())
		l.Settle()
		l.Unword()
		require.Nil(t, l.Wording())
	}
	require.True(t, w.Lasts())
}
