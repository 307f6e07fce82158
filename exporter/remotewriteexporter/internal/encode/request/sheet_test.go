// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/promwrite"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/column"
)

// laidOut returns the room for sorting after some targets have added a sample of each of some series, target by target
// or series by series.
func laidOut(s *sheet, columns []column.Column, targets, width int, inOrder bool) int {
	g := column.NewGathering(1)
	series := make([]cache.Series, width)
	labels := make([]cache.ResourceLabels, targets)
	for target := range targets {
		labels[target].Order = uint32(target)
	}
	for i := range targets * width {
		target, of := i/width, i%width
		if inOrder {
			target, of = i%targets, i/targets
		}
		g.Begin(&labels[target])
		g.Add(&series[of], int64(i), 0, 0)
	}
	g.Commit(columns)
	b := columns[0].Swap()
	s.layOut(b, promwrite.V2, 1)
	for slot := range width {
		cells := s.cells(b, uint32(slot))
		for place := range cells {
			if int(cells[place].Of) != place {
				panic("a series is not by resource")
			}
		}
	}
	s.release()
	columns[0].GiveBack(b)
	return cap(s.sorted)
}

// TestRoomToSortIsKept: after a large request, a small one keeps the room for the next, and many small ones do not.
func TestRoomToSortIsKept(t *testing.T) {
	var s sheet
	columns := column.New(1)
	const targets, width = 10, column.FewSamples / 2
	require.GreaterOrEqual(t, laidOut(&s, columns, targets, width, false), targets*width)
	require.GreaterOrEqual(t, laidOut(&s, columns, 2, 10, false), targets*width)
	for range 100 {
		laidOut(&s, columns, 2, 10, false)
	}
	require.LessOrEqual(t, laidOut(&s, columns, 2, 10, false), 4*2*10+column.FewSamples)
}

// Samples that are added in order are not moved.
func TestWhatIsSortedNeedsNoRoom(t *testing.T) {
	var s sheet
	require.LessOrEqual(t, laidOut(&s, column.New(1), 3, 20_000, true), 8)
}
