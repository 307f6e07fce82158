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
	b.RefuseAll("m", []uint64{1}, nil) // so that its labels are counted
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
		b.RefuseAll("m", []uint64{1}, nil)
		observe("m", "user", "1")
		require.Equal(t, turn == 2, certain(), turn)
		b.Turn(start.Add(time.Duration(turn+1) * window))
	}
}
