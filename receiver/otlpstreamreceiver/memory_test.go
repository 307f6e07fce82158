// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDefaultsFollowTheMemory: a container of 64 MiB has no room for half of it in messages on their way, nor for one of
// 16 MiB, which is several times as much when it is decoded.
func TestDefaultsFollowTheMemory(t *testing.T) {
	f := func(available int64, message, arrivals, inFlight, streams int) {
		t.Helper()
		cfg := defaultsFor(available)
		require.NotNil(t, cfg.Protocols.GRPC.GetOrInsertDefault())
		require.NotNil(t, cfg.Protocols.HTTP.GetOrInsertDefault())
		require.NoError(t, cfg.Validate())
		require.Equal(t, message, maxMessage(cfg.Protocols.GRPC.Get()))
		require.EqualValues(t, message, cfg.Protocols.HTTP.Get().MaxRequestBodySize)
		require.Equal(t, arrivals, roomForArrivals(cfg, available))
		require.Equal(t, inFlight, cfg.InFlight.Bytes)
		require.Equal(t, streams, cfg.Streams.Memory)
	}
	f(0, 16<<20, 1<<30, 128<<20, 256<<20)
	f(32<<30, 16<<20, 1<<30, 128<<20, 256<<20)
	f(512<<20, 16<<20, 64<<20, 32<<20, 512<<20/3)
	f(64<<20, 4<<20, 8<<20, 4<<20, 64<<20/3)
	f(1, 4<<20, 8<<20, 4<<20, 4<<20)
}
