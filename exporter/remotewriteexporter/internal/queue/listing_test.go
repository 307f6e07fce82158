// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// TestADamagedKeyIsSoonRead: only existing blocks are read, however large the number in a key is. Keys with impossible
// numbers are deleted.
func TestADamagedKeyIsSoonRead(t *testing.T) {
	for name, client := range map[string]func(*medium) storage.Client{
		"walker": func(m *medium) storage.Client { return walkingClient{on(m)} },
		"lister": func(m *medium) storage.Client { return logClient{on(m)} },
	} {
		for damaged, arrives := range map[string][]int{
			key(BlockPrefix, mostBlocks-3):            {1, 3, 2}, // only its position counts, not its number
			BlockPrefix + "ffffffffffffffff":          {1, 3},
			BlockPrefix + "000000000000000\x00":       {1, 3},
			BlockPrefix + "0000000000000000000000000": {1, 3},
		} {
			t.Run(name+" "+damaged, func(t *testing.T) {
				m := newMedium()
				q, _ := open(t, 1, 10, stored(client(m)))
				push(t, q, 0, blockOf(1, 0), blockOf(2, 0), blockOf(3, 0))
				require.NoError(t, q.Close(t.Context()))
				was := key(BlockPrefix, 1)
				m.values[damaged] = m.values[was]
				delete(m.values, was)
				m.values[indexKey][3] ^= 1

				q, dropped := open(t, 1, 10, stored(client(m)))
				require.Equal(t, drops{ReasonCorrupt: 1}, dropped, "the index")
				require.Equal(t, arrives, contents(t, q, 0))
				require.NotContains(t, m.values, damaged)
				push(t, q, 0, blockOf(4, 0))
				require.NoError(t, q.Close(t.Context()))

				q, dropped = open(t, 1, 10, stored(client(m)))
				require.Empty(t, dropped)
				require.Equal(t, []int{4}, contents(t, q, 0))
			})
		}
	}
}
