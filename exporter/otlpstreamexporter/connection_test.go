// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/server"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/tally"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
)

// forgetful forwards connections, and swallows everything on the first one after forgot was set.
type forgetful struct {
	addr    string
	dialled atomic.Int64
	forgot  atomic.Bool
}

func newForgetful(t *testing.T, target string) *forgetful {
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	f := &forgetful{addr: listener.Addr().String()}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				client.Close()
				continue
			}
			context.AfterFunc(ctx, func() { client.Close(); server.Close() })
			first := f.dialled.Add(1) == 1
			go f.carry(server, client, first)
			go f.carry(client, server, first)
		}
	}()
	return f
}

func (f *forgetful) carry(to io.WriteCloser, from io.Reader, first bool) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		swallowed := first && f.forgot.Load()
		if !swallowed {
			if _, failed := to.Write(buf[:n]); failed != nil {
				return
			}
		}
		if err != nil {
			if !swallowed {
				to.Close()
			}
			return
		}
	}
}

// The kernel sees nothing wrong with a connection whose bytes are acknowledged and discarded.
func TestAConnectionThatIsForgottenIsDialledAnew(t *testing.T) {
	for _, mode := range []string{server.Stream, server.Unary} {
		t.Run(mode, func(t *testing.T) {
			bothTransports(t, func(t *testing.T, kind string) {
				s := run(t, &testServer{stream: echo}, kind)
				f := newForgetful(t, s.addr)
				e := newTestExporter(t, kind, f.addr, func(cfg *Config) {
					cfg.Mode = mode
					cfg.AckTimeout = time.Second
					cfg.Connections = 1
				})
				e.export(0, 10)
				require.Equal(t, int64(10), e.settled().Acked)
				f.forgot.Store(true)
				e.export(10, 10)
				require.Equal(t, int64(20), e.settled().Acked)
				require.Len(t, s.names(), 20)
				require.Greater(t, f.dialled.Load(), int64(1))
			})
		})
	}
}

// A stream without responses is no reason to give up a connection on which another one gets responses.
func TestAConnectionOnWhichAnythingIsHeardStays(t *testing.T) {
	release := make(chan struct{})
	s := run(t, &testServer{stream: func(p *peer) error {
		if p.number == 0 {
			<-release
			return nil
		}
		return echo(p)
	}}, transport.GRPC)
	t.Cleanup(func() { close(release) })
	f := newForgetful(t, s.addr)
	e := newTestExporter(t, transport.GRPC, f.addr, func(cfg *Config) {
		cfg.Mode = server.Stream
		cfg.AckTimeout = time.Second
		cfg.Streams, cfg.Connections = 2, 1
	})
	i := 0
	eventually(t, func() bool {
		e.export(i, 1)
		i++
		return e.dest.tally.Closed[tally.Silent].Load() == 1
	}, "the stream that is silent ends")
	require.Equal(t, int64(i), e.settled().Acked)
	require.Equal(t, int64(1), f.dialled.Load())
}

// A connection with several addresses is established anew when one of them is silent, however many responses come from
// the others: otherwise each new stream might be opened there.
func TestAnAddressThatIsForgottenIsDialledAnewBesideOthers(t *testing.T) {
	for _, mode := range []string{server.Stream, server.Unary} {
		t.Run(mode, func(t *testing.T) {
			s := run(t, &testServer{stream: echo}, transport.GRPC)
			stuck, well := newForgetful(t, s.addr), newForgetful(t, s.addr)
			names.set("two-"+mode, stuck.addr, well.addr)
			e := newTestExporter(t, transport.GRPC, "names:///two-"+mode, func(cfg *Config) {
				cfg.Mode = mode
				cfg.AckTimeout = time.Second
				cfg.Streams, cfg.Connections = 2, 1
				cfg.Rebalance.Requests = 5
			})
			i := 0
			more := func() { e.export(i, 1); i++ }
			eventually(t, func() bool { more(); return stuck.dialled.Load() == 1 && well.dialled.Load() == 1 }, "it is connected to both")
			require.Equal(t, int64(i), e.settled().Acked)
			stuck.forgot.Store(true)
			eventually(t, func() bool { more(); return stuck.dialled.Load() == 2 }, "the one that is silent is dialled anew")
			require.Equal(t, int64(i), e.settled().Acked)
		})
	}
}
