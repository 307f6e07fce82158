// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package memo

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type thing struct{ name string }

func sized(*thing) int { return 100 }

func (t *Table[T]) names(is func(*T) string) (all map[string]bool) {
	all = map[string]bool{}
	g := t.tables.Load()
	for _, s := range []*slots[T]{g.newer, g.older} {
		for i := range s.all {
			if v := s.all[i].thing.Load(); v != nil {
				all[is(v)] = true
			}
		}
	}
	return all
}

func named(name string) func(*thing) bool { return func(v *thing) bool { return v.name == name } }

// Hashes with few values collide all the time.
func hashed(name string) uint64 { return uint64(len(name)) % 3 }

func TestWhatIsAskedForStays(t *testing.T) {
	table := New(10*(100+slotSize), sized)
	now := table.began
	add := func(name string) *thing { return table.Add(hashed(name), &thing{name}, named(name)) }
	for i := range 10 {
		require.NotNil(t, add(fmt.Sprint("name", i)))
	}
	first := table.Find(hashed("name0"), named("name0"))
	require.NotNil(t, first)
	require.Same(t, first, add("name0"), "another has it already")
	require.False(t, table.Full())
	require.Nil(t, add("one too many"))
	things, bytes, unkept := table.Stats()
	require.Equal(t, []int{10, 10 * (100 + slotSize), 1}, []int{things, bytes, int(unkept)})

	table.Age(now.Add(Shortage - 1))
	require.NotNil(t, table.Find(hashed("name9"), named("name9")))
	now = now.Add(Shortage)
	require.True(t, table.Full())
	table.Age(now) // something had no room
	require.False(t, table.Full())
	require.Same(t, first, table.Find(hashed("name0"), named("name0")))
	require.Nil(t, add("still one too many"), "what is older has its place")
	now = now.Add(Shortage)
	table.Age(now)
	require.Equal(t, map[string]bool{"name0": true}, table.names(func(v *thing) string { return v.name }))
	require.NotNil(t, add("there is room"))
	table.Age(now.Add(Shortage))
	require.NotNil(t, table.Find(hashed("there is room"), named("there is room")), "nothing was short: a generation is long")
	_, bytes, _ = table.Stats()
	require.Equal(t, 2*(100+slotSize), bytes)
	table.Age(now.Add(Generation))
	table.Age(now.Add(2 * Generation))
	_, bytes, _ = table.Stats()
	require.Zero(t, bytes)
}

// Existing entries are found, whatever other goroutines do meanwhile.
func TestManyAskAtATime(t *testing.T) {
	table := New(1<<20, sized)
	var all sync.WaitGroup
	var known sync.Map
	for g := range 4 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 1))
			for i := range 20_000 {
				name := fmt.Sprint(random.IntN(500))
				is := named(name)
				hash := uint64(len(name))<<8 + uint64(name[0])
				v := table.Find(hash, is)
				if v == nil {
					v = table.Add(hash, &thing{name}, is)
				}
				if v == nil || v.name != name {
					t.Errorf("%s is %v", name, v)
					return
				}
				known.Store(name, v)
				if g == 0 && i%1000 == 0 {
					table.Age(time.Now().Add(time.Duration(i) * Generation))
				}
			}
		})
	}
	all.Wait()
	_, bytes, unkept := table.Stats()
	require.LessOrEqual(t, bytes, 500*(100+slotSize))
	require.Zero(t, unkept)
}
