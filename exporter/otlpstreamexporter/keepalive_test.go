// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"
)

func TestPingsAreThoseThatServersBear(t *testing.T) {
	asks := func(transport string, conf map[string]any) configgrpc.KeepaliveClientConfig {
		cfg := createDefaultConfig().(*Config)
		require.NoError(t, confmap.NewFromStringMap(conf).Unmarshal(cfg))
		k := withKeepalive(cfg.Client.Keepalive, transport)
		require.True(t, k.HasValue())
		return *k.Get()
	}
	got := asks(transportGRPC, nil)
	require.Greater(t, got.Time, 5*time.Minute, "gRPC's own servers end connections on which they are asked more often")
	require.Equal(t, 10*time.Second, got.Timeout)
	got = asks(transportWebSocket, nil)
	require.Less(t, got.Time, time.Minute, "proxies end WebSockets that are silent for a minute")
	got = asks(transportGRPC, map[string]any{"keepalive": map[string]any{"timeout": "3s"}})
	require.Equal(t, []time.Duration{keepalive(transportGRPC), 3 * time.Second}, []time.Duration{got.Time, got.Timeout})
	got = asks(transportGRPC, map[string]any{"keepalive": map[string]any{"time": "20s"}})
	require.Equal(t, 20*time.Second, got.Time, "who says so knows the server")
	none := withKeepalive(configoptional.None[configgrpc.KeepaliveClientConfig](), transportGRPC)
	require.False(t, none.HasValue())
}

// gRPC's own server with its defaults, at work on a request for a minute: a connection on which it is asked more often than it
// bears would be ended, and the request be sent again. It takes a minute, so it is run when asked for.
func TestAServerOfGRPCsDefaultsIsNotOffended(t *testing.T) {
	const variable = "GODWIT_LONG"
	if os.Getenv(variable) == "" {
		t.Skipf("it takes a minute: set %s=1", variable)
	}
	begun := time.Now()
	s := run(t, &server{stream: func(p *peer) error {
		r, err := p.recv()
		if err != nil {
			return eof(err)
		}
		for time.Since(begun) < 70*time.Second && p.ctx.Err() == nil {
			time.Sleep(100 * time.Millisecond)
		}
		p.ack(r.id)
		return echo(p)
	}}, transportGRPC)
	_, port, err := net.SplitHostPort(s.addr)
	require.NoError(t, err)
	e := newTestExporter(t, transportGRPC, "127.0.0.1:"+port)
	e.export(0, 1)
	for e.balanced().acked == 0 && time.Since(begun) < 2*time.Minute {
		time.Sleep(100 * time.Millisecond)
	}
	require.Len(t, s.seen(), 1, "nothing is sent twice")
	require.Equal(t, int64(1), e.settled().acked)
}
