// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
)

// TestSpaceOfAHugeRequestIsLetGo releases a writer after a huge request and then after small ones.
func TestSpaceOfAHugeRequestIsLetGo(t *testing.T) {
	const huge = 4 << 20
	w := NewWriter(&cache.Cache{}, nil, nil, nil, 0)
	w.body, w.largest = make([]byte, huge), huge
	w.Release()
	require.Equal(t, huge, cap(w.body))
	for i := range 64 {
		w.largest = 1000
		w.Release()
		if i == 0 {
			require.Equal(t, huge, cap(w.body), "the small rest of a large page")
		}
	}
	require.Zero(t, cap(w.body))
}
