// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A crowded thing has a hash that many others have.
type crowded int

func (c *crowded) hash() uint64 { return uint64(*c % 7) }

func TestTable(t *testing.T) {
	var table table[crowded, *crowded]
	find := func(c crowded) *crowded {
		return table.find(c.hash(), func(p *crowded) bool { return *p == c })
	}
	for c := range crowded(500) {
		require.Nil(t, find(c))
		table.add(&c)
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
}
