// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package overflow

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// TestShardsShareNoCacheLine: no two cores write to the same cache line. The allocator aligns these sizes to
// themselves.
func TestShardsShareNoCacheLine(t *testing.T) {
	require.Equal(t, 192, int(unsafe.Sizeof(subtotal{})))
	require.Equal(t, 128, int(unsafe.Sizeof(overflowShard{})))
	require.Equal(t, 64, int(unsafe.Offsetof(overflowShard{}.members)), "it is read for each point")
}
