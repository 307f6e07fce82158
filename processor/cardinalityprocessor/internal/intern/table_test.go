// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package intern

import (
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/alloctest"
)

// fresh is a string in memory of its own.
func fresh(s string) string { return strings.Clone(s) }

func TestAStringIsSharedFromItsSecondSightingOn(t *testing.T) {
	table := New(1<<20, nil)
	first := fresh("GET")
	got, hit := table.Text(first)
	require.False(t, hit)
	require.Equal(t, "GET", got)
	second, hit := table.Text(fresh("GET"))
	require.False(t, hit)
	third, hit := table.Text(fresh("GET"))
	require.True(t, hit)
	require.Equal(t, "GET", third)
	if Same(first, first) { // not a build without unsafe
		require.True(t, Same(second, third))
		require.False(t, Same(first, third), "what is kept must not be the caller's")
	}
	require.Equal(t, 3+overhead, table.Counts().Bytes)
}

func TestLongAndEmptyStringsAreLeftAlone(t *testing.T) {
	table := New(1<<20, nil)
	for _, s := range []string{"", strings.Repeat("x", MaxLength+1)} {
		for range 3 {
			got, hit := table.Text(s)
			require.Equal(t, s, got)
			require.False(t, hit)
		}
	}
	require.Zero(t, table.Counts().Bytes)
}

func TestWhatIsAskedForOutlivesGenerations(t *testing.T) {
	table := New(1<<20, nil)
	for _, s := range []string{"stays", "stays", "goes", "goes"} {
		table.Text(fresh(s))
	}
	for range 3 {
		table.Turn()
		_, hit := table.Text(fresh("stays"))
		require.True(t, hit)
	}
	_, hit := table.Text(fresh("goes"))
	require.False(t, hit)
}

func TestAKeyOfIdsIsLeftAlone(t *testing.T) {
	table := New(1<<20, []string{"excluded"})
	for i := range 2 * trial {
		id := "id-" + strconv.Itoa(i)
		for range 2 { // seen twice, as if it were worth it, but never again
			require.Equal(t, id, table.Value(table.Key("trace.id"), id))
		}
		require.Equal(t, "GET", table.Value(table.Key("method"), fresh("GET")))
		require.Equal(t, "x", table.Value(table.Key("excluded"), fresh("x")))
	}
	counts := table.Counts()
	require.Equal(t, 3, counts.Keys)
	require.Equal(t, 2, counts.Off)
	require.Greater(t, counts.Hits, int64(trial))
	before := counts.Takes
	for i := range 1000 {
		for range 2 {
			table.Value(table.Key("trace.id"), "more-"+strconv.Itoa(i))
		}
	}
	require.Equal(t, before, table.Counts().Takes)
	table.Turn()
	require.Zero(t, table.Counts().Off, "another chance")
}

// TestAHostileStreamTakesNoMoreMemory sends strings that come twice each, and new keys without end.
func TestAHostileStreamTakesNoMoreMemory(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	const budget = 1 << 20
	before := heap()
	table := New(budget, nil)
	for i := range 100_000 {
		s := strings.Repeat("v", i%MaxLength) + strconv.Itoa(i)
		table.Text(s)
		table.Text(s)
		if i%20 == 0 {
			table.Value(table.Key("key"+strconv.Itoa(i)), s)
		}
	}
	taken := heap() - before
	counts := table.Counts()
	require.LessOrEqual(t, counts.Bytes, budget)
	require.Less(t, taken, int64(3*budget/2+shards*4<<doorBits+maxKeys*300))
	require.LessOrEqual(t, counts.Keys, maxKeys)
}

func TestKnownStringsAllocateNothing(t *testing.T) {
	table := New(1<<20, nil)
	value := func() string { return table.Value(table.Key("method"), "GET") }
	value()
	value()
	require.Zero(t, alloctest.PerRun(func() {
		if value() != "GET" {
			t.Error("another string")
		}
	}))
}

func TestItIsSafeForConcurrentUse(t *testing.T) {
	table := New(64<<10, nil)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 5000 {
				s := strconv.Itoa(i % 700)
				if got := table.Value(table.Key("k"+strconv.Itoa(i%5)), s); got != s {
					t.Errorf("%q became %q", s, got)
				}
				if i%1000 == 0 {
					table.Turn()
					table.Counts()
				}
			}
		})
	}
	all.Wait()
}
