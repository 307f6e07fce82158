// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"
)

// Metrics with rejected series are listed first, however many others there are.
func TestMetricsAtALimitAreNotReplaced(t *testing.T) {
	b := NewBook(start, xxh3.HashString)
	limited := func(i int) string { return "limited" + strconv.Itoa(i) }
	for i := range maxMetrics - 1 {
		b.RefuseAll(limited(i), []uint64{1}, nil)
	}
	for window := range 3 {
		for i := range 3 * maxMetrics {
			for j := range 5 {
				b.Observe(seriesOf("n"+strconv.Itoa(i), "user", strconv.Itoa(j)))
			}
		}
		for i := range maxMetrics - 1 {
			require.Equal(t, window < windows, b.metrics.byName[xxh3.HashString(limited(i))] != nil, "window %d", window)
		}
		b.Turn(start.Add(time.Duration(window+1) * time.Minute))
	}
}

// A metric that others had replaced is shown with the error that this makes. All of its series are still in the sample,
// or it is known how many were replaced with it.
func TestWhatWasReplacedIsPartOfTheError(t *testing.T) {
	for name, others := range map[string]int{"all in the sample": 5, "few in the sample": 60} {
		t.Run(name, func(t *testing.T) {
			b := NewBook(start, xxh3.HashString)
			crowd := func() {
				for i := range maxMetrics + 10 {
					for j := range others {
						b.Observe(seriesOf("n"+strconv.Itoa(i), "label"+strconv.Itoa(i), strconv.Itoa(j)))
					}
				}
			}
			for i := range 30 {
				b.Observe(seriesOf("m", "user", strconv.Itoa(i)))
			}
			for range 2 + 60/others {
				crowd()
			}
			require.Nil(t, b.metrics.byName[xxh3.HashString("m")])
			for i := range 4 {
				again := seriesOf("m", "user", strconv.Itoa(i))
				again.New = false
				b.Observe(again)
			}
			s := b.Snapshot(maxMetrics)
			m := find(s.Metrics, func(m Metric) bool { return m.Name == "m" })
			require.Equal(t, "m", m.Name)
			require.InDelta(t, 30, m.Series, max(2, 2*m.SeriesError))
			require.InDelta(t, 30, m.Births, 2*m.BirthsError)
			require.Positive(t, m.GoneError)
			l := find(s.Labels, func(l LabelCount) bool { return l.Name == "user" })
			require.Equal(t, "user", l.Name)
			require.InDelta(t, 30, l.Series, 2*l.Missing)
			require.InDelta(t, 30, l.Values, 2*l.Missing)
			if others < 10 {
				require.InDelta(t, 30, m.Series, 0)
				require.Less(t, m.SeriesError, 2.0)
			}
		})
	}
}

// TestAMetricThatWasForgottenIsNotKnownWhole: there are more names than are ranked. One that comes back, after another
// has replaced it, may have had series before that: it is not certain that all of them have a label, until two windows
// later.
func TestAMetricThatWasForgottenIsNotKnownWhole(t *testing.T) {
	b := NewBook(start, xxh3.HashString)
	observe := func(name string, labels ...string) { b.Observe(seriesOf(name, labels...)) }
	certain := func() bool {
		m := find(b.Snapshot(maxMetrics).Metrics, func(m Metric) bool { return m.Name == "m" })
		l := find(m.Labels, func(l WithoutLabel) bool { return l.Name == "user" })
		require.Equal(t, "user", l.Name)
		return l.All
	}
	observe("m", "user", "0")
	require.True(t, certain(), "it was ranked from its first series on")
	for i := range 9 {
		observe("m", "other", strconv.Itoa(i))
	}
	for i := range maxMetrics { // the last one finds no row of its own
		for j := range 20 {
			observe("n"+strconv.Itoa(i), "user", strconv.Itoa(j))
		}
	}
	require.Nil(t, b.metrics.byName[xxh3.HashString("m")])

	const window = time.Minute
	for turn := range 3 {
		b.RefuseAll("m", []uint64{1}, nil) // so that its labels are counted
		observe("m", "user", "1")
		require.Equal(t, turn == 2, certain(), turn)
		b.Turn(start.Add(time.Duration(turn+1) * window))
	}
}
