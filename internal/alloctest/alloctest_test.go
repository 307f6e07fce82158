// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package alloctest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

var sink []byte

func TestPerRun(t *testing.T) {
	require.Zero(t, PerRun(func() {}))
	require.InDelta(t, 1, PerRun(func() { sink = make([]byte, 100) }), 0)
	calls := 0
	require.Zero(t, PerRun(func() {
		if calls++; calls < 20 {
			sink = make([]byte, 100)
		}
	}), "what happens only while it warms up does not count")
}
