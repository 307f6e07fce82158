// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// bulky exports n batches of one span and 100 kB each.
func (e *testExporter) bulky(n int) {
	for i := range n {
		require.NoError(e.tb, e.ConsumeTraces(e.tb.Context(), spans(batch(i)+strings.Repeat("x", 100_000), 1)))
	}
}

func TestASlowLinkLosesNothing(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		t.Parallel() // most of it is waiting
		const n = 40
		s := run(t, &server{stream: echo}, transport)
		p := newProxy(t, s.addr, func(p *proxy) { p.rate = 500_000 })
		e := newTestExporter(t, transport, p.addr, func(cfg *Config) {
			cfg.Client.Compression = "none"
			cfg.InFlight.Requests = 32 // which the link takes six seconds for
			cfg.AckTimeout = 2 * time.Second
			cfg.Rebalance.Requests = 25
			keepalive := cfg.Client.Keepalive.Get()
			keepalive.Time, keepalive.Timeout = time.Second, time.Second
		})
		e.bulky(n)
		b := e.settled()
		require.Equal(t, int64(n), b.acked, "%+v", b)
		require.Len(t, s.seen(), n, "no stream is cut, so nothing is sent twice")
		require.Zero(t, e.dest.tally.unexpected.Load())
		require.Zero(t, e.dest.tally.closed[endBroken].Load())
	})
}
