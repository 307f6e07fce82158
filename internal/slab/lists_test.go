// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package slab

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// someLists returns lists, with or without room for another attribute.
func someLists(r *rand.Rand, s *Slabs) (lists []pcommon.Map) {
	for i := range 50 {
		m, n := pcommon.NewMap(), r.IntN(6)
		s.Reserve(m, n+r.IntN(2))
		for k := range n {
			s.PutStr(m, fmt.Sprint("key", k), fmt.Sprint("value", i))
		}
		lists = append(lists, m)
	}
	return lists
}

// disturb changes a list in any possible way. It returns what it removes for good.
func disturb(r *rand.Rand, lists []pcommon.Map, m pcommon.Map) (mine pcommon.Map) {
	mine = pcommon.NewMap()
	other := lists[r.IntN(len(lists))]
	switch r.IntN(12) {
	case 0:
		m.Clear()
	case 1:
		m.MoveTo(mine)
	case 2:
		m.MoveTo(other)
	case 3:
		other.CopyTo(m)
	case 4:
		_ = m.FromRaw(map[string]any{"raw": 1, "list": []any{"a", 2}})
	case 5:
		m.EnsureCapacity(20)
	case 6:
		if v, ok := m.Get("key0"); ok {
			v.MoveTo(mine.PutEmpty("moved"))
		}
	default:
	}
	for _, v := range m.All() {
		switch r.IntN(6) {
		case 0:
			v.SetStr("changed")
		case 1:
			v.SetInt(3)
		case 2:
			v.SetEmptySlice().AppendEmpty().SetBool(true)
		case 3:
			if from, ok := other.Get("key1"); ok {
				from.CopyTo(v)
			}
		default:
		}
	}
	for k := range r.IntN(4) {
		m.PutInt(fmt.Sprint("more", k), 1)
	}
	m.Remove("key2")
	m.RemoveIf(func(string, pcommon.Value) bool { return r.IntN(3) == 0 })
	return mine
}

// Whatever is done to lists, the kept ones are unchanged once they are restored, any number of times, and in the same
// order. What was removed from them stays as it is.
func TestListsArePutBack(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var s Slabs
	var kept Lists
	for range 20 {
		kept.Forget()
		lists := someLists(r, &s)
		var was [][]string
		for _, m := range lists {
			kept.Keep(m)
			was = append(was, inOrder(m))
		}
		var mine []pcommon.Map
		var mineWas []map[string]any
		for range 8 {
			for _, m := range lists {
				if out := disturb(r, lists, m); out.Len() > 0 {
					mine, mineWas = append(mine, out), append(mineWas, out.AsRaw())
				}
			}
			runtime.GC()
			kept.PutBack()
			for i, m := range lists {
				require.Equal(t, was[i], inOrder(m))
			}
			for i, m := range mine {
				require.Equal(t, mineWas[i], m.AsRaw())
			}
		}
	}
}

func inOrder(m pcommon.Map) (all []string) {
	for k, v := range m.All() {
		all = append(all, fmt.Sprintf("%s=%s %s", k, v.Type(), v.AsString()))
	}
	return all
}

// Restored lists have the room that was needed the last time, and then cost nothing.
func TestListsThatArePutBackHaveRoom(t *testing.T) {
	if !Readable() {
		t.Skip("metrics look otherwise in this build")
	}
	m := pcommon.NewMap()
	m.PutStr("a", "b")
	var kept Lists
	kept.Keep(m)
	value := pcommon.NewValueEmpty() // copying it into a map needs no memory
	add := func() {
		for _, k := range []string{"c", "d", "e"} {
			value.CopyTo(m.PutEmpty(k))
		}
		kept.PutBack()
	}
	add()
	require.Zero(t, testing.AllocsPerRun(100, add))
	require.Equal(t, map[string]any{"a": "b"}, m.AsRaw())
}
