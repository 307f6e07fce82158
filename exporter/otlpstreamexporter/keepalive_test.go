// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
)

func TestPingsAreAskedUnlessToldOtherwise(t *testing.T) {
	k := createDefaultConfig().(*Config).Client.Keepalive
	require.True(t, k.HasValue())
	require.Zero(t, k.Get().Time, "each transport has its own")
	require.Equal(t, 10*time.Second, k.Get().Timeout)
}

// gRPC's server with its defaults handles a request for a minute: it would end a connection with too many pings, and
// the request would be sent again. The test takes a minute, so it runs only on request.
func TestAServerOfGRPCsDefaultsIsNotOffended(t *testing.T) {
	const variable = "GODWIT_LONG"
	if os.Getenv(variable) == "" {
		t.Skipf("it takes a minute: set %s=1", variable)
	}
	begun := time.Now()
	s := run(t, &testServer{stream: func(p *peer) error {
		r, err := p.recv()
		if err != nil {
			return eof(err)
		}
		for time.Since(begun) < 70*time.Second && p.ctx.Err() == nil {
			time.Sleep(100 * time.Millisecond)
		}
		p.ack(r.id)
		return echo(p)
	}}, transport.GRPC)
	_, port, err := net.SplitHostPort(s.addr)
	require.NoError(t, err)
	e := newTestExporter(t, transport.GRPC, "127.0.0.1:"+port)
	e.export(0, 1)
	for e.balanced().Acked == 0 && time.Since(begun) < 2*time.Minute {
		time.Sleep(100 * time.Millisecond)
	}
	require.Len(t, s.seen(), 1, "nothing is sent twice")
	require.Equal(t, int64(1), e.settled().Acked)
}
