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

// What is noted of parts is found again with them, whatever comes with them and in whichever loan they are.
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

// Whoever asks what metrics owe is told how many points they had, and leaves word that he has asked.
func TestWhatMetricsOweIsAskedFor(t *testing.T) {
	var none *Loan
	_, owes := none.Owes()
	require.False(t, owes)
	var l Loan
	of := &memory{}
	l.Bring([]*Part{{Memory: of}, {}})
	require.False(t, l.Asked())
	_, owes = l.Owes()
	require.False(t, owes)
	require.True(t, l.Asked())
	l.Bring(l.Parts())
	l.Owe(7)
	require.False(t, l.Asked())
	points, owes := l.Owes()
	require.True(t, owes)
	require.Equal(t, 7, points)
	l.Settle()
	require.Equal(t, 1, of.settled)
	l.Bring(nil)
	_, owes = l.Owes()
	require.False(t, owes, "the next metrics owe nothing until it is said of them")
}
