// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheStreamWithTheLeastToDoIsNext(t *testing.T) {
	f := func(want int, atHome bool, home uint64, slots ...string) {
		t.Helper()
		l := &lane{}
		for i, is := range slots {
			s := &slot{number: i}
			s.full.Store(is == "full")
			s.failing.Store(is == "failing")
			s.unanswered.Store(int64(len(is)))
			l.slots = append(l.slots, s)
		}
		got, sure := l.choose(&delivery{home: home})
		require.Equal(t, want, got.number)
		require.Equal(t, atHome, sure)
	}
	f(0, false, 0, "")
	f(0, false, 0, "", "", "")
	f(1, false, 0, "xx", "x", "xxx")
	f(2, false, 0, "full", "failing", "so much more")
	f(0, false, 0, "full", "failing")
	f(1, true, 4, "", "xxx", "x")
	f(2, false, 4, "x", "full", "")
	f(0, false, 4, "x", "failing", "xx")
	l := &lane{}
	for i := range 3 {
		l.slots = append(l.slots, &slot{number: i})
	}
	l.slots[1].unanswered.Store(1)
	var got []int
	for range 6 {
		best, _ := l.choose(&delivery{})
		got = append(got, best.number)
	}
	require.Equal(t, []int{0, 2, 2, 0, 2, 2}, got, "the idle ones take turns")
	best, _ := (&lane{}).choose(&delivery{})
	require.Nil(t, best)
}
