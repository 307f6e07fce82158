// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstream

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMemoryFitsAndLittleOfItIsIdle(t *testing.T) {
	last := -1
	for size := 1; size < 1<<20; size += 1 + size/100 {
		class, room := memoryClass(size)
		require.GreaterOrEqual(t, room, size)
		require.LessOrEqual(t, room, size+size/memorySizes+1, "size %d", size)
		require.Contains(t, []int{last, last + 1}, class, "size %d", size)
		again, same := memoryClass(room)
		require.Equal(t, class, again, "what is given back is where it came from")
		require.Equal(t, room, same)
		last = class
	}
	class, _ := memoryClass(1 << mostMemory)
	require.Equal(t, len(memories)-1, class)
	for _, once := range []int{0, 1 << leastMemory, 1<<mostMemory + 1} {
		class, room := memoryClass(once)
		require.Negative(t, class)
		require.Equal(t, once, room)
	}
}

func TestMemoryIsUsedAgainOnlyWhenAllHaveLetGo(t *testing.T) {
	const size = 100_000
	m := NewMemory(size)
	require.Len(t, m.Bytes(), size)
	data, err := Codec().Marshal(&Request{ID: 1, Data: m.Bytes(), Memory: m})
	require.NoError(t, err)
	data.Ref() // like gRPC before a write
	m.Retain()
	m.Release()
	m.Release() // by its creator
	require.Equal(t, int32(1), m.users.Load())
	data.Free()
	require.Equal(t, int32(1), m.users.Load(), "gRPC still has to write it")
	data.Free()
	require.Zero(t, m.users.Load())

	(*Memory)(nil).Retain()
	(*Memory)(nil).Release()
}

func TestPackedRequestsHoldNoMemory(t *testing.T) {
	m := NewMemory(5000)
	r := &Request{ID: 1, Data: m.Bytes(), Memory: m}
	NewPacker().Pack(r)
	require.Nil(t, r.Memory)
}
