// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fair

import (
	"maps"
	rand "math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const minute = int64(time.Minute)

// minuteful is a limit per minute that several parties share.
type minuteful struct {
	Paces

	each, used, now int64
	naive           map[uint64]float64
}

func (m *minuteful) pass(by time.Duration) {
	before := max(0, m.used-m.now)
	m.now += int64(by)
	after := max(0, m.used-m.now)
	for who := range m.naive {
		if after == 0 {
			delete(m.naive, who)
		} else {
			m.naive[who] *= float64(after) / float64(before)
		}
	}
}

func (m *minuteful) take(t *testing.T, who uint64) bool {
	used := max(m.used, m.now) + m.each
	left := m.now + minute - used
	if left < 0 {
		return false
	}
	mine := m.naive[who]
	want := mine < 1 || mine+float64(m.each) <= float64(Most(left))
	got := m.MayTake(who, max(0, m.used-m.now), left, m.each)
	if d := mine + float64(m.each) - float64(Most(left)); d > 1000 || d < -1000 { // ns; otherwise it depends on rounding
		require.Equal(t, want, got, "%v has %v of %v", who, mine, m.used-m.now)
	}
	if !got {
		return false
	}
	m.used = used
	m.Take(m.Of(who, true, minute, m.now), m.each)
	m.naive[who] += float64(m.each)
	return true
}

// All shares drain like in a naive model, however long it runs.
func TestPartsDrainWithTheWhole(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 3))
		m := minuteful{each: minute / (1 + random.Int64N(100)), naive: map[uint64]float64{}, now: minute}
		for range 3000 {
			m.pass(time.Duration(random.Int64N(2 * m.each)))
			if random.IntN(200) == 0 {
				m.pass(time.Minute)
			}
			m.take(t, random.Uint64N(4))
		}
	}
}

// A party that takes everything leaves something for later ones, and gets the whole rate if it is alone.
func TestWhoComesLaterFindsSome(t *testing.T) {
	for _, perMinute := range []int64{1, 2, 8, 100, 1000} {
		for flooding := range uint64(4) {
			m := minuteful{each: minute / perMinute, naive: map[uint64]float64{}}
			took := map[uint64]int64{}
			for range 10 * 60 {
				for again := true; again; {
					again = false
					for who := range flooding + 1 {
						if m.take(t, who) {
							took[who]++
							again = true
						}
					}
				}
				m.pass(time.Second)
			}
			sum := int64(0)
			for n := range maps.Values(took) {
				sum += n
			}
			require.GreaterOrEqual(t, sum, 10*perMinute-perMinute/8-1, "%d flood at %d a minute", flooding+1, perMinute)
			require.LessOrEqual(t, sum, 11*perMinute)
			if perMinute >= 8*int64(flooding+2) {
				require.True(t, m.take(t, 100), "%d flood at %d a minute", flooding+1, perMinute)
				require.InDelta(t, slices.Min(slices.Collect(maps.Values(took))), slices.Max(slices.Collect(maps.Values(took))), float64(2*perMinute))
			}
		}
	}
}

// Parties with an empty share take no memory.
func TestPartsAreForgotten(t *testing.T) {
	m := minuteful{each: minute / 1000, naive: map[uint64]float64{}}
	for who := range uint64(100_000) {
		m.take(t, who)
		m.pass(time.Second)
	}
	require.LessOrEqual(t, m.Len(), 2*fewParts+120)
	require.Nil(t, m.Of(1<<40, false, minute, m.now), "there is no room")
}
