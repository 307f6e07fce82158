// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// A crowded value has the same hash as many others.
type crowded int

func (c *crowded) hash() uint64 { return uint64(*c % 7) }

func TestTable(t *testing.T) {
	var table table[crowded, *crowded]
	find := func(c crowded) *crowded {
		return table.find(c.hash(), func(p *crowded) bool { return *p == c })
	}
	for c := range crowded(500) {
		require.Nil(t, find(c))
		table.Add(&c)
		require.Same(t, &c, find(c))
	}
	require.Equal(t, 500, table.count)
	seen := map[crowded]int{}
	for p := range table.all {
		seen[*p]++
	}
	require.Len(t, seen, 500)
	for c, n := range seen {
		require.Equal(t, 1, n)
		require.NotNil(t, find(c))
	}
	for range table.all {
		break
	}
	table.makeRoom(500)
	require.Zero(t, table.count)
	slots := len(table.slots)
	for c := range crowded(500) {
		table.Add(&c)
	}
	require.Len(t, table.slots, slots, "there was room")
	table.makeRoom(5000)
	for c := range crowded(500) {
		require.Same(t, &c, table.intern(&c, func(p *crowded) bool { return *p == c }))
	}
	table.retain(func(*crowded) bool { return true })
	require.Len(t, table.slots, slots)
	require.Equal(t, 500, table.count)
	for c := range crowded(500) {
		require.Equal(t, c, *find(c))
	}
	require.Nil(t, find(500))
	table.retain(func(p *crowded) bool { return *p%5 == 0 })
	require.Equal(t, 100, table.count)
	require.Less(t, len(table.slots), slots)
	for c := range crowded(500) {
		require.Equal(t, c%5 == 0, find(c) != nil, c)
	}
}

// A scattered value has a unique hash, and counts how often it was computed.
type scattered struct{ at, asked int }

func (s *scattered) hash() uint64 {
	s.asked++
	return uint64(s.at) * 0x9e3779b97f4a7c15
}

// A table does not compute hashes again when it grows, because its elements may be anywhere in memory.
func TestTablesGrowWithoutALook(t *testing.T) {
	var table table[scattered, *scattered]
	for i := range 10_000 {
		table.Add(&scattered{at: i})
	}
	for s := range table.all {
		require.Equal(t, 1, s.asked)
	}
	for i := range 10_000 {
		require.NotNil(t, table.find((&scattered{at: i}).hash(), func(s *scattered) bool { return s.at == i }))
	}
}

// Hashes that differ only in their last bits are well spread. Those are the hashes of equal texts that belong to one
// target each.
func TestHashesThatDifferInLastBitsAreApart(t *testing.T) {
	seen := map[uint32]bool{}
	for pin := range uint64(10_000) {
		seen[half(0x243f6a8885a308d3^pin)] = true
	}
	require.Greater(t, len(seen), 9_990)
}

// A sweep inserts what it keeps in the order of hashes, which must not lead to clusters.
func TestRetainIsLinear(t *testing.T) {
	var table table[scattered, *scattered]
	for i := range 10_000 {
		table.Add(&scattered{at: i})
	}
	table.retain(func(s *scattered) bool { s.asked = 0; return s.at%2 == 0 })
	require.Equal(t, 5000, table.count)
	moved := 0
	for i, s := range table.slots {
		if s == nil {
			continue
		}
		require.Zero(t, s.asked, "the table knows")
		moved += (i - table.start(half(s.hash())) + len(table.slots)) % len(table.slots)
	}
	require.Less(t, moved, 20*table.count)
}

// What is kept is found, whatever was removed around it, and the table shrinks with its content.
func TestRemove(t *testing.T) {
	hashes := map[string]func(at int) uint64{
		"three have one": func(at int) uint64 { return uint64(at) / 3 * 0x9e3779b97f4a7c15 },
		"few":            func(at int) uint64 { return uint64(at) % 7 },
	}
	for name, hash := range hashes {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 1))
			var table table[hashed, *hashed]
			known := map[int]*hashed{}
			check := func() {
				require.Equal(t, len(known), table.count)
				for at := range 300 {
					require.Same(t, known[at], table.find(hash(at), func(h *hashed) bool { return h.at == at }))
				}
			}
			for i := range 6_000 {
				at := r.IntN(300)
				if had := known[at]; had != nil {
					require.True(t, table.remove(had))
					require.False(t, table.remove(had), "it is gone")
					delete(known, at)
				} else {
					known[at] = &hashed{at, hash(at)}
					table.Add(known[at])
				}
				if i%20 == 0 {
					check()
				}
			}
			for at, h := range known {
				require.True(t, table.remove(h))
				delete(known, at)
				check()
			}
			require.Less(t, len(table.slots), 50)
		})
	}
}

type hashed struct {
	at int
	is uint64
}

func (h *hashed) hash() uint64 { return h.is }
