// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/account"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/server"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
	"github.com/godwit-otel/godwit/internal/origin"
)

func originNamed(name string) (context.Context, origin.Origin) {
	md := client.NewMetadata(map[string][]string{"x-tenant": {name}})
	return client.NewContext(context.Background(), client.Info{Metadata: md}), origin.Of([]string{"x-tenant"}, md)
}

func byTenant(limit int) func(*Config) {
	return func(cfg *Config) {
		cfg.MetadataKeys = []string{"x-tenant"}
		cfg.MetadataCardinalityLimit = limit
	}
}

func TestPlacesOfOriginsAreBounded(t *testing.T) {
	s := run(t, &testServer{stream: echo}, transport.GRPC)
	e := newTestExporter(t, transport.GRPC, s.addr, byTenant(2))
	d, now := e.dest, time.Now()
	_, a := originNamed("a")
	_, b := originNamed("b")
	_, c := originNamed("c")
	first, second := d.lanes.enter(a, now), d.lanes.enter(b, now)
	require.NotNil(t, first)
	require.Nil(t, d.lanes.enter(c, now.Add(time.Hour)), "both are in use")
	require.Same(t, first, d.lanes.enter(a, now))
	d.lanes.leave(first)
	d.lanes.leave(first)
	require.Nil(t, d.lanes.enter(c, now), "it may come back at once")
	require.NotNil(t, d.lanes.enter(c, now.Add(time.Hour)))
	require.Equal(t, 2, d.lanes.origins())
	require.NotSame(t, first, d.lanes.enter("", now))
	d.lanes.leave(second)
	require.NotNil(t, d.lanes.enter(a, now.Add(time.Hour)), "the other is idle by now")
	require.Len(t, d.lanes.leaving, 2)
	d.lanes.sweep(now)
	require.Empty(t, d.lanes.leaving, "they had no streams")
}

func TestRequestsWithoutAPlaceAreCounted(t *testing.T) {
	hold := make(chan struct{})
	s := run(t, &testServer{stream: func(p *peer) error {
		for {
			r, err := p.recv()
			if err != nil {
				return eof(err)
			}
			<-hold
			p.ack(r.id)
		}
	}}, transport.GRPC)
	e := newTestExporter(t, transport.GRPC, s.addr, byTenant(1))
	for i, tenant := range []string{"a", "b"} {
		ctx, _ := originNamed(tenant)
		require.NoError(t, e.ConsumeTraces(ctx, spans(batch(i), 1)))
		eventually(t, func() bool { return len(s.seen()) == i+1 }, "it is there")
	}
	require.Equal(t, -1, s.seen()[1].stream, "as a unary request")
	require.Equal(t, int64(1), e.dest.tally.Crowded.Load())
	close(hold)
	require.Equal(t, int64(2), e.settled().Acked)
}

func TestAValueThatNoHeaderCanHaveIsRefused(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: echo}, kind)
		e := newTestExporter(t, kind, s.addr, byTenant(10))
		bad, _ := originNamed("line\nbreak")
		good, _ := originNamed("blue")
		require.NoError(t, e.ConsumeTraces(bad, spans("bad", 1)))
		require.NoError(t, e.ConsumeTraces(good, spans("good", 1)))
		b := e.settled()
		require.Equal(t, int64(1), b.Acked)
		require.Equal(t, int64(1), b.Dropped[account.Rejected])
	})
}

// Lanes are created and closed while their streams are lost, and no data is.
func TestOriginsComeAndGo(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: func(p *peer) error {
			for range 5 {
				r, err := p.recv()
				if err != nil {
					return eof(err)
				}
				p.ack(r.id)
			}
			return nil
		}}, kind)
		e := newTestExporter(t, kind, s.addr, byTenant(4), func(cfg *Config) {
			cfg.Mode, cfg.Streams, cfg.InFlight.Requests = server.Stream, 2, 16
		})
		const n = 400
		for i := range n {
			ctx, _ := originNamed(fmt.Sprint(i % 9))
			eventually(t, func() bool { return e.ConsumeTraces(ctx, spans(batch(i), 1)) == nil }, "there is room")
		}
		require.Equal(t, int64(n), e.settled().Acked)
		require.Len(t, s.names(), n)
		require.LessOrEqual(t, e.dest.lanes.origins(), 4)
	})
}

// A server that never ends its side of a stream does not keep the streams of clients that are gone for ever.
func TestStreamsOfAnOriginThatIsGoneAreCutOff(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: func(p *peer) error {
			if err := echo(p); err != nil {
				return err
			}
			<-p.ctx.Done()
			return p.ctx.Err()
		}}, kind)
		e := newTestExporter(t, kind, s.addr, byTenant(1), func(cfg *Config) { cfg.Mode = server.Stream })
		for i, tenant := range []string{"a", "b"} { // the second one replaces the first
			ctx, _ := originNamed(tenant)
			require.NoError(t, e.ConsumeTraces(ctx, spans(batch(i), 1)))
			e.settled()
		}
		draining := func() int { return e.Snapshot().Destinations[0].Draining }
		eventually(t, func() bool { return draining() == 1 }, "the first one's stream is closed from here")
		eventually(t, func() bool {
			e.expire(3 * e.cfg.AckTimeout)
			return draining() == 0
		}, "it is cut off")
		require.Equal(t, 1, e.Snapshot().Destinations[0].Open, "the other one's stays")
	})
}
