// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/configoptional"
)

func TestPingsAreThoseThatServersBear(t *testing.T) {
	asks := func(kind string, configured configgrpc.KeepaliveClientConfig) configgrpc.KeepaliveClientConfig {
		k := withKeepalive(configoptional.Some(configured), kind)
		require.True(t, k.HasValue())
		return *k.Get()
	}
	got := asks(GRPC, configgrpc.KeepaliveClientConfig{Timeout: 3 * time.Second})
	require.Greater(t, got.Time, 5*time.Minute, "gRPC's own servers end connections on which they are asked more often")
	require.Equal(t, 3*time.Second, got.Timeout)
	got = asks(WebSocket, configgrpc.KeepaliveClientConfig{})
	require.Less(t, got.Time, time.Minute, "proxies end WebSockets that are silent for a minute")
	got = asks(GRPC, configgrpc.KeepaliveClientConfig{Time: 20 * time.Second})
	require.Equal(t, 20*time.Second, got.Time, "who says so knows the server")
	none := withKeepalive(configoptional.None[configgrpc.KeepaliveClientConfig](), GRPC)
	require.False(t, none.HasValue())
}
