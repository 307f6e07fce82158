// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Remaining values keep little memory of others that were added with them, and interned names keep only their own
// memory.
func TestSymbolsOfPointsAreMovedTogether(t *testing.T) {
	s := NewSymbols()
	pack := func(value string) uint32 {
		m := pcommon.NewMap()
		m.PutStr("pod", value)
		dst := make([]uint32, 1)
		s.Pack(dst, m)
		return dst[0]
	}
	name := s.Keep("name")
	require.Equal(t, name, pack("name"), "it is there")
	long := strings.Repeat("x", longSymbol)
	stays := map[string]uint32{"name": name, long: pack(long)}
	for round := range 5 {
		most := s.pieces
		for i := range 20_000 {
			value := fmt.Sprintf("pod-%d-%d", round, i)
			id := pack(value)
			require.Equal(t, id, pack(value))
			if i%500 == 0 {
				stays[value] = id
			}
			most = max(most, s.pieces)
		}
		ids := len(s.text)
		marked := make([]bool, ids)
		for _, id := range stays {
			marked[id] = true
		}
		s.Release(marked)
		require.Less(t, s.pieces, most/4)
		require.Equal(t, len(stays)+1, s.Size())
		for value, id := range stays {
			found, ok := s.Lookup([]byte(value))
			require.True(t, ok)
			require.Equal(t, id, found)
			require.Equal(t, value, s.Snapshot()[id])
			require.Equal(t, value, s.TextOf(id))
		}
		_, ok := s.Lookup(fmt.Appendf(nil, "pod-%d-1", round))
		require.False(t, ok)
		if round > 0 {
			require.Less(t, ids, 20_000+len(stays)+2, "numbers are given out again")
		}
	}
	require.Zero(t, pack(""))
	id, ok := s.Lookup(nil)
	require.True(t, ok)
	require.Zero(t, id)
}
