// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/account"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/queue"
)

// breaking breaks its first stream when it has received n requests.
func breaking(n int, err error) func(*peer) error {
	return func(p *peer) error {
		for i := 0; p.number > 0 || i < n; i++ {
			r, err := p.recv()
			if err != nil {
				return eof(err)
			}
			if p.number > 0 {
				p.ack(r.id)
			}
		}
		return err
	}
}

func TestUnacknowledgedRequestsAreResent(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		require.True(t, createDefaultConfig().(*Config).ResendUnacked)
		const k = 20
		s := run(t, &testServer{stream: breaking(k, status.Error(codes.Unavailable, "gone"))}, kind)
		e := newTestExporter(t, kind, s.addr)
		e.export(0, k)
		require.Equal(t, int64(k), e.settled().Acked)
		ids := map[string]uint64{}
		for _, r := range s.seen() {
			if r.stream == 0 {
				require.Zero(t, r.attempt)
				ids[r.name] = r.id
			} else {
				require.Equal(t, ids[r.name], r.id, "under the same ID")
				require.Equal(t, uint64(1), r.attempt)
			}
		}
		require.Len(t, ids, k)
		require.Len(t, s.seen(), 2*k)
	})
}

func TestResendingCanBeTurnedOff(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		const k = 20
		s := run(t, &testServer{stream: breaking(k, status.Error(codes.Unavailable, "gone"))}, kind)
		e := newTestExporter(t, kind, s.addr, func(cfg *Config) { cfg.ResendUnacked = false })
		e.export(0, k)
		require.Equal(t, int64(k), e.settled().Dropped[account.StreamLost])
		require.Len(t, s.seen(), k)
		e.export(k, 1)
		require.Equal(t, int64(1), e.settled().Acked)
	})
}

func TestDuplicatesAreBoundedByTheWindow(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		const window, breaks, n = 8, 10, 400
		s := run(t, &testServer{stream: func(p *peer) error {
			for i := 0; ; i++ {
				r, err := p.recv()
				if err != nil {
					return eof(err)
				}
				if p.number < breaks && i == 20 {
					return status.Error(codes.Unavailable, "gone") // received and not acknowledged
				}
				p.ack(r.id)
			}
		}}, kind)
		e := newTestExporter(t, kind, s.addr, func(cfg *Config) { cfg.InFlight.Requests = window })
		e.export(0, n)
		require.Equal(t, int64(n), e.settled().Acked)
		require.Len(t, s.names(), n, "at least once")
		require.LessOrEqual(t, len(s.seen())-n, window*breaks)
	})
}

func TestARequestThatBreaksStreamsIsFoundOut(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: func(p *peer) error {
			for {
				r, err := p.recv()
				if err != nil {
					return eof(err)
				}
				if r.name == batch(7) {
					return status.Error(codes.InvalidArgument, "poison")
				}
				p.ack(r.id)
			}
		}}, kind)
		e := newTestExporter(t, kind, s.addr)
		e.export(0, 30)
		b := e.settled()
		require.Equal(t, int64(29), b.Acked)
		require.Equal(t, int64(1), b.Dropped[account.Rejected])
		require.LessOrEqual(t, s.names()[batch(7)], 1+strikesOut)
	})
}

func TestAPayloadIsEncodedOnceAndSharedByAllAttempts(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: breaking(10, status.Error(codes.Unavailable, "gone"))}, kind)
		e := newTestExporter(t, kind, s.addr)
		data := slices.Clone(testRequest(t, batch(0)))
		req := &queue.Request{Data: slices.Clone(data), Items: 1}
		e.dest.account.Receive(1)
		e.export(1, 9)
		require.NoError(t, e.dest.deliver(context.Background(), req))
		e.settled()
		require.Equal(t, data, req.Data, "sending it twice has not changed it")
		require.Equal(t, 2, s.names()[batch(0)])
	})
}
