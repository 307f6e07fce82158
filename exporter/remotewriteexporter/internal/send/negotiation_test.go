// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/internal/promwrite"
)

var all = []block.Format{
	{Version: promwrite.V2, Compression: promwrite.Zstd},
	{Version: promwrite.V2, Compression: promwrite.Snappy},
	{Version: promwrite.V1, Compression: promwrite.Zstd},
	{Version: promwrite.V1, Compression: promwrite.Snappy},
}

// offer tries formats with a block of a version until it is one of those in taken, like Send, and returns the attempts.
func offer(n *negotiation, version promwrite.Version, final bool, taken ...int) (attempts []int, ok bool) {
	var tried formatSet
	for {
		format, ok := n.choose(version, tried)
		if !ok {
			return attempts, false
		}
		attempts = append(attempts, format)
		if slices.Contains(taken, format) {
			n.accepted(format)
			return attempts, true
		}
		if !final && n.isProven(format) {
			return attempts, false // a 400 because of the content
		}
		tried.add(format)
		n.turnedDown(format, final)
	}
}

func TestNegotiation(t *testing.T) {
	f := func(n *negotiation, version promwrite.Version, final bool, taken, want []int, wantOK bool) {
		t.Helper()
		got, ok := offer(n, version, final, taken...)
		require.Equal(t, want, got)
		require.Equal(t, wantOK, ok)
	}
	n := newNegotiation(all, time.Hour)
	f(n, promwrite.V2, true, []int{3}, []int{0, 1, 2, 3}, true)
	f(n, promwrite.V2, true, []int{3}, []int{3}, true)
	f(n, promwrite.V2, false, nil, []int{3}, false) // proven: a refusal is now about the content
	f(n, promwrite.V2, true, []int{1}, []int{3, 0, 1}, true)

	n = newNegotiation(all, time.Hour)
	f(n, promwrite.V2, false, nil, []int{0, 1, 2, 3}, false) // a bad block proves nothing
	f(n, promwrite.V2, true, []int{0}, []int{0}, true)

	n = newNegotiation(all, time.Hour)
	f(n, promwrite.V1, true, []int{3}, []int{2, 3}, true) // a block of 1.0 cannot become one of 2.0
	f(n, promwrite.V2, true, []int{0}, []int{0}, true)

	n = newNegotiation(all[:1], time.Hour)
	f(n, promwrite.V2, true, nil, []int{0}, false)
	f(n, promwrite.V2, true, []int{0}, []int{0}, true)
}

func TestProbeAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNegotiation(all, time.Hour)
		got, _ := offer(n, promwrite.V2, true, 3)
		require.Equal(t, []int{0, 1, 2, 3}, got)
		time.Sleep(59 * time.Minute)
		require.Equal(t, 3, n.wanted())
		time.Sleep(15 * time.Minute)
		require.Equal(t, 0, n.wanted(), "a block that may be a probe is wanted")
		got, _ = offer(n, promwrite.V1, true, 3)
		require.Equal(t, []int{3}, got, "this one may not")
		got, _ = offer(n, promwrite.V2, false, 1, 3)
		require.Equal(t, []int{0, 1}, got, "even a 400 to a probe is about the format")
		require.Equal(t, 1, n.wanted())
		time.Sleep(74 * time.Minute)
		got, _ = offer(n, promwrite.V2, true, 1)
		require.Equal(t, []int{0, 1}, got)
		require.Equal(t, 1, n.wanted(), "until the next probe is due")
		time.Sleep(74 * time.Minute)
		got, _ = offer(n, promwrite.V2, true, 0)
		require.Equal(t, []int{0}, got)
		time.Sleep(100 * time.Hour)
		require.Equal(t, 0, n.wanted())
	})
}

// TestFailuresMakeUnprovenFormatsGiveWay: a server that fails on unknown formats does not get them for ever.
func TestFailuresMakeUnprovenFormatsGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNegotiation(all, time.Hour)
		fail := func(times int) (formats []int) {
			for range times {
				format, ok := n.choose(promwrite.V2, 0)
				require.True(t, ok)
				n.failed(format)
				formats = append(formats, format)
			}
			return formats
		}
		require.Equal(t, []int{0, 0, 1, 1, 2, 2, 3, 3, 0, 0}, fail(10), "while all fail, each has its turn")
		require.Zero(t, n.wanted(), "and nothing is made lesser for it")
		n.accepted(1)
		require.Equal(t, 1, n.wanted())
		require.Equal(t, []int{1, 1, 1, 1, 1}, fail(5), "what has delivered stays")
		time.Sleep(2 * time.Minute)
		require.Equal(t, []int{0, 1, 1}, fail(3), "the best is tried again soon, and left at once")
		time.Sleep(90 * time.Second)
		require.Equal(t, 1, n.wanted(), "next time later")
		time.Sleep(90 * time.Second)
		format, _ := n.choose(promwrite.V2, 0)
		require.Zero(t, format)
		n.accepted(0)
		require.Equal(t, []int{0, 0, 0, 0}, fail(4))
	})
}

// TestEarlyRefusalsOfContentAreNotRememberedLong: three bad blocks say little about formats.
func TestEarlyRefusalsOfContentAreNotRememberedLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNegotiation(all, time.Hour)
		got, ok := offer(n, promwrite.V2, false, 3)
		require.True(t, ok)
		require.Equal(t, []int{0, 1, 2, 3}, got)
		time.Sleep(2 * time.Minute)
		got, _ = offer(n, promwrite.V2, true, 0)
		require.Equal(t, []int{0}, got)
	})
}

// TestTheFormatOfAServerThatWentIsLeft: not after one refusal that the last format overrules, and not for good.
func TestTheFormatOfAServerThatWentIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNegotiation(all, time.Hour)
		n.accepted(0)
		for range 10 { // two servers with one address
			n.overrule(0, 3)
			n.overrule(0, 3)
			require.Zero(t, n.wanted())
			n.accepted(0)
		}
		for range fewOverruled {
			require.Zero(t, n.wanted())
			n.accepted(3)
			n.overrule(0, 3)
		}
		require.Equal(t, 3, n.wanted())
		require.True(t, n.isProven(3))
		time.Sleep(2 * time.Minute)
		got, _ := offer(n, promwrite.V2, false, 3)
		require.Equal(t, []int{0, 1, 2, 3}, got, "the best is tried again soon")
		time.Sleep(2 * time.Minute)
		require.Equal(t, 3, n.wanted(), "next time later")
		time.Sleep(2 * time.Minute)
		got, _ = offer(n, promwrite.V2, true, 0)
		require.Equal(t, []int{0}, got)
	})
}

// TestAFormatThatFailsForLongIsNoLongerProven: another server may have replaced the one that accepted it. If it was an
// outage, at most one block is sent in a lesser format.
func TestAFormatThatFailsForLongIsNoLongerProven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNegotiation(all, time.Hour)
		ask := func(taken ...int) int {
			format, ok := n.choose(promwrite.V2, 0)
			require.True(t, ok)
			if slices.Contains(taken, format) {
				n.accepted(format)
			} else {
				n.failed(format)
			}
			return format
		}
		require.Zero(t, ask(0))
		for began := time.Now(); time.Since(began) < longFailing; time.Sleep(10 * time.Second) {
			require.Zero(t, ask())
		}
		seen := map[int]bool{}
		for range 8 {
			seen[ask()] = true
			require.Zero(t, n.wanted(), "nothing is made lesser for it")
			time.Sleep(10 * time.Second)
		}
		require.Len(t, seen, 4, "each has its turn")

		// The outage ends.
		lesser := 0
		for range 20 {
			if ask(0, 1, 2, 3) != 0 {
				lesser++
			}
		}
		require.LessOrEqual(t, lesser, 1)

		// Another server, which fails on all formats except the last.
		for began := time.Now(); time.Since(began) < longFailing; time.Sleep(10 * time.Second) {
			require.Zero(t, ask(3))
		}
		asked := 0
		for ; ask(3) != 3; asked++ {
			require.Less(t, asked, 20)
			time.Sleep(10 * time.Second)
		}
		for n.wanted() == 0 { // it is tried immediately whether it was an outage
			require.NotEqual(t, 3, ask(3))
		}
		for range 5 {
			require.Equal(t, 3, ask(3))
		}
	})
}
