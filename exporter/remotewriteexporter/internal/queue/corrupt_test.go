// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

func TestCorruptBlocksAreSkipped(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"flipped":   func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"preamble":  func(b []byte) []byte { b[3] ^= 1; return b },
		"truncated": func(b []byte) []byte { return b[:len(b)-1] },
		"empty":     func([]byte) []byte { return []byte{} },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMedium()
			q, _ := open(t, 1, 10, stored(on(m)))
			push(t, q, 0, blockOf(1, 0), blockOf(2, 0), blockOf(3, 0))
			k := key(BlockPrefix, 1)
			m.values[k] = damage(m.values[k])

			q, dropped := open(t, 1, 10, stored(on(m)))
			require.Equal(t, []int{1, 3}, contents(t, q, 0))
			require.Equal(t, drops{ReasonCorrupt: 1}, dropped)
			require.Len(t, m.values, kept)
		})
	}
}

// The contents of a corrupt block are counted as lost for each destination that waits for it, as far as its header can
// be read.
func TestCorruptBlocksTellWhatIsLost(t *testing.T) {
	for name, test := range map[string]struct {
		samples int
		damage  func([]byte) []byte
	}{
		"body":      {1, func(b []byte) []byte { b[len(b)/2] ^= 1; return b }},
		"preamble":  {1, func(b []byte) []byte { b[3] ^= 1; return b }},
		"truncated": {1, func(b []byte) []byte { return b[:len(b)/2] }},
		"version":   {0, func(b []byte) []byte { b[preambleSize+4] = 0; return b }},
		"magic":     {0, func(b []byte) []byte { b[preambleSize] ^= 1; return b }},
		"short":     {0, func(b []byte) []byte { return b[:preambleSize-1] }},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMedium()
			q, _ := open(t, 3, 10, stored(on(m)))
			push(t, q, 0, blockOf(1, 0))
			next(t, q, 1, 1).Done(nil)
			k := key(BlockPrefix, 0)
			m.values[k] = test.damage(m.values[k])

			lost := map[int]int{}
			open(t, 3, 10, func(c *Config) {
				c.Storage = on(m)
				c.Dropped = func(destination int, reason string, h block.Header) {
					require.Equal(t, ReasonCorrupt, reason)
					lost[destination] = h.Samples
				}
			})
			require.Equal(t, map[int]int{0: test.samples, 2: test.samples}, lost)
			require.Len(t, m.values, kept, "only the index and the reserve are left")
		})
	}
}

func TestBlockThatIsDamagedInItsTurnIsSkipped(t *testing.T) {
	m := newMedium()
	q, _ := open(t, 1, 10, stored(on(m)))
	push(t, q, 0, blockOf(1, 0), blockOf(2, 0))
	q, dropped := open(t, 1, 10, stored(on(m)))
	delete(m.values, key(BlockPrefix, 0))
	require.Equal(t, 2, numberOf(next(t, q, 0, 2).Blocks[0]))
	require.Equal(t, drops{ReasonCorrupt: 1}, dropped)
}

func TestDamageAmongBlocksThatGoTogetherCostsNoOther(t *testing.T) {
	m := newMedium()
	q, _ := open(t, 1, 10, stored(on(m)))
	push(t, q, 0, blockOf(1, 0), blockOf(2, 0), blockOf(3, 0), blockOf(4, 0))
	q, dropped := open(t, 1, 10, stored(on(m)))
	delete(m.values, key(BlockPrefix, 1))
	together(t, q, anyNumber, 1).Done(nil)
	together(t, q, anyNumber, 3, 4).Done(nil)
	require.Equal(t, drops{ReasonCorrupt: 1}, dropped)
	require.Len(t, m.values, kept, "only the index and the reserve are left")
}

func TestLostIndexIsFoundAgain(t *testing.T) {
	m := newMedium()
	q, _ := open(t, 1, 10, stored(on(m)))
	push(t, q, 0, blockOf(1, 0), blockOf(2, 0), blockOf(3, 0))
	next(t, q, 0, 1).Done(nil)
	m.values[indexKey] = []byte("nonsense")

	q, dropped := open(t, 1, 10, stored(walkingClient{on(m)}))
	require.Equal(t, []int{2, 3}, contents(t, q, 0))
	require.Equal(t, drops{ReasonCorrupt: 1}, dropped)
}

// TestAnIndexOfAnEarlierTimeLosesNothing: blocks after it are found.
func TestAnIndexOfAnEarlierTimeLosesNothing(t *testing.T) {
	m := newMedium()
	q, _ := open(t, 1, 10, stored(on(m)))
	push(t, q, 0, blockOf(1, 0), blockOf(2, 0))
	earlier := m.values[indexKey]
	push(t, q, 0, blockOf(3, 0))
	push(t, q, 0, blockOf(4, 0))
	next(t, q, 0, 1).Done(nil)
	m.values[indexKey] = earlier

	q, dropped := open(t, 1, 10, stored(walkingClient{on(m)}))
	push(t, q, 1, blockOf(5, 0))
	q, _ = open(t, 1, 10, stored(walkingClient{on(m)}))
	require.Equal(t, []int{2, 3, 4, 5}, contents(t, q, 0))
	require.Empty(t, dropped)
}

func TestLostIndexWithoutAWalkBeginsAnew(t *testing.T) {
	m := newMedium()
	m.values[indexKey] = indexOf(9, 3)
	q, dropped := open(t, 1, 10, stored(on(m)))
	push(t, q, 0, blockOf(1, 0))
	require.Equal(t, []int{1}, contents(t, q, 0))
	require.Equal(t, drops{ReasonCorrupt: 1}, dropped)
}

func TestUnreadableStorageKeepsTheBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMedium()
		q, _ := open(t, 1, 10, stored(on(m)))
		push(t, q, 0, blockOf(1, 0))
		client := on(m)
		q, dropped := open(t, 1, 10, stored(client))
		client.failed = true
		_, err := q.Next(t.Context(), 0, Bound{})
		require.ErrorIs(t, err, errKilled)
		client.failed = false
		require.Equal(t, []int{1}, contents(t, q, 0))
		require.Empty(t, dropped)
	})
}
