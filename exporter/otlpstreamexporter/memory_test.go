// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Memory that is reused too early would arrive as something else.
func TestPayloadsStayTheirOwnThroughBreaks(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		const n = 300
		s := run(t, &testServer{stream: func(p *peer) error {
			for {
				r, err := p.recv()
				if err != nil {
					return eof(err)
				}
				if rand.IntN(20) == 0 {
					return status.Error(codes.Unavailable, "gone")
				}
				p.ack(r.id)
				p.ack(r.id + 1) // may be in transit
			}
		}}, kind)
		e := newTestExporter(t, kind, s.addr, func(cfg *Config) { cfg.Client.Compression = "none"; cfg.Streams = 3 })
		sent := map[string]bool{}
		for i := range n {
			name := batch(i) + strings.Repeat(string(rune('a'+i%26)), 2000+rand.IntN(4000))
			sent[name] = true
			require.NoError(t, e.ConsumeTraces(context.Background(), spans(name, 1)))
		}
		e.settled()
		for name := range s.names() {
			require.True(t, sent[name], "%.40q was never sent", name)
		}
	})
}
