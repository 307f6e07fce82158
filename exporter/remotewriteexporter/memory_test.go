// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLimitsFollowTheMemory: what the configuration allows is for a machine with room for it.
func TestLimitsFollowTheMemory(t *testing.T) {
	f := func(memory, cache int64, raw, requests int) {
		t.Helper()
		cfg := NewDefaultConfig()
		encoding := cfg.encoding(1)
		bound(&encoding, memory)
		require.Equal(t, cache, encoding.Cache.MaxBytes)
		require.Equal(t, roundShare.Of(memory), encoding.Cache.MaxGrowth)
		require.Equal(t, raw, encoding.MaxRawBytes)
		require.Equal(t, requests, requestsFor(memory, cfg.Batch.MaxSamples))
	}
	f(64<<20, 16<<20, 2<<20, 1)
	f(512<<20, 128<<20, 8<<20, 13)
	f(8<<30, 2<<30, 8<<20, maxRequests)
	f(0, 1<<40, 8<<20, maxRequests)
	f(1, 4<<20, 1<<20, 1)

	cfg := NewDefaultConfig()
	cfg.Points.Delta.ToCumulative = true
	encoding := cfg.encoding(1)
	bound(&encoding, 64<<20)
	require.EqualValues(t, 32<<20, encoding.Cache.MaxBytes, "the series of sums stay in any case")
}
