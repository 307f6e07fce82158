// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBuffersHaveTheRoomThatWasAskedFor(t *testing.T) {
	var b buffers
	for _, size := range []int{1, minBuffer, minBuffer + 1, maxBuffer, maxBuffer + 1, 3 * maxBuffer, 2 * maxBuffer, 100, 5 * maxBuffer} {
		for range 3 {
			buf := b.get(size)
			require.GreaterOrEqual(t, cap(*buf), size)
			require.Empty(t, *buf)
			*buf = append((*buf)[:cap(*buf)], 1)[:size] // grown to any capacity
			b.put(buf)
		}
	}
}
