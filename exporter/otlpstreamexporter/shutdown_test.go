// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/exporter/exportertest"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/account"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/metadata"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/server"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
)

func TestShutdownWaitsForAcks(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		release := make(chan struct{})
		s := run(t, &testServer{stream: func(p *peer) error {
			r, err := p.recv()
			if err != nil {
				return err
			}
			<-release
			p.ack(r.id)
			return echo(p)
		}}, kind)
		e := newTestExporter(t, kind, s.addr)
		e.export(0, 5)
		eventually(t, func() bool { return len(s.seen()) == 1 }, "it arrives")
		stopped := make(chan error)
		go func() { stopped <- e.Shutdown(context.Background()) }()
		select {
		case <-stopped:
			require.Fail(t, "it must wait")
		case <-time.After(20 * time.Millisecond):
		}
		close(release)
		require.NoError(t, <-stopped)
		require.Equal(t, int64(5), e.balanced().Acked)

		muted := run(t, &testServer{stream: mute}, kind)
		e = newTestExporter(t, kind, muted.addr, func(cfg *Config) { cfg.Shutdown.Timeout = 50 * time.Millisecond })
		e.export(0, 5)
		eventually(t, func() bool { return len(muted.seen()) == 5 }, "they arrive")
		require.NoError(t, e.Shutdown(context.Background()))
		require.Equal(t, int64(5), e.balanced().Dropped[account.Shutdown])
	})
}

func TestShutdownEndsWithItsContext(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: mute}, kind)
		e := newTestExporter(t, kind, s.addr)
		e.export(0, 1)
		eventually(t, func() bool { return len(s.seen()) == 1 }, "it arrives")
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		require.NoError(t, e.Shutdown(ctx))
		require.Equal(t, int64(1), e.balanced().Dropped[account.Shutdown])
	})
}

func TestWithoutWaitingShutdownCountsTheLoss(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: mute}, kind)
		e := newTestExporter(t, kind, s.addr, impatient, func(cfg *Config) { cfg.InFlight.Requests = 3 })
		e.export(0, 10)
		eventually(t, func() bool { return len(s.seen()) == 3 }, "the window is full")
		begun := time.Now()
		require.NoError(t, e.Shutdown(context.Background()))
		require.Less(t, time.Since(begun), patience/2)
		b := e.balanced()
		require.Equal(t, int64(10), b.Dropped[account.Shutdown], "pending and queued alike")
		require.Equal(t, b.Received, b.Dropped[account.Shutdown])
	})
}

// With a queue on disk there is nothing to wait for if the server is unreachable, whether that was known before or is
// detected at shutdown.
func TestShutdownWaitsForNoServerThatIsAway(t *testing.T) {
	for _, mode := range []string{server.Stream, server.Unary} {
		t.Run(mode, func(t *testing.T) {
			bothTransports(t, func(t *testing.T, kind string) {
				for name, known := range map[string]bool{"known": true, "not known": false} {
					t.Run(name, func(t *testing.T) {
						const n, window = 50, 5
						storage := &disk{data: map[string][]byte{}}
						set := exportertest.NewNopSettings(metadata.Type)
						configure := func(addr string) *Config {
							return testConfig(kind, addr, onDisk, func(cfg *Config) { cfg.Mode, cfg.InFlight.Requests = mode, window })
						}
						e := startExporter(t, set, storage, configure(freePort(t)))
						e.export(0, n)
						if known {
							eventually(t, func() bool { return !e.dest.server.IsHealthy() }, "nobody is there")
						}
						begun := time.Now()
						require.NoError(t, e.Shutdown(context.Background()))
						require.Less(t, time.Since(begun), patience/2)
						require.Equal(t, int64(n), e.balanced().Queued)

						s := run(t, &testServer{stream: echo, unary: func(context.Context, string) error { return nil }}, kind)
						next := startExporter(t, set, storage, configure(s.addr))
						eventually(t, func() bool { return len(s.names()) == n }, "the next run has all of it")
						next.settled()
						require.Len(t, s.seen(), n, "once")
					})
				}
			})
		})
	}
}

// Shutdown waits for sent requests, otherwise they would be sent again by the next run.
func TestShutdownWaitsForAnswersOfAServerThatFails(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		const n, window = 20, 5
		release := make(chan struct{})
		s := run(t, &testServer{stream: func(p *peer) error {
			for range window {
				r, err := p.recv()
				if err != nil {
					return err
				}
				defer p.ack(r.id)
			}
			<-release
			return nil
		}}, kind)
		e := startExporter(t, exportertest.NewNopSettings(metadata.Type), &disk{data: map[string][]byte{}},
			testConfig(kind, s.addr, onDisk, func(cfg *Config) { cfg.InFlight.Requests = window }))
		e.export(0, n)
		eventually(t, func() bool { return len(s.seen()) == window }, "the window is full")
		e.dest.server.Fault(time.Now(), errors.New("another stream has broken"))
		stopped := make(chan error)
		go func() { stopped <- e.Shutdown(context.Background()) }()
		select {
		case <-stopped:
			require.Fail(t, "it must wait")
		case <-time.After(20 * time.Millisecond):
		}
		close(release)
		require.NoError(t, <-stopped)
		b := e.balanced()
		require.Equal(t, int64(window), b.Acked)
		require.Equal(t, int64(n-window), b.Queued)
		require.Len(t, s.seen(), window)
	})
}

// The Collector shuts down the exporters of one configuration one after the other.
func TestSignalsHaveOneTimeToEndIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e ending
		e.join()
		e.join()
		require.Equal(t, 10*time.Second, e.begin(10*time.Second))
		time.Sleep(7 * time.Second)
		e.leave()
		require.Equal(t, 3*time.Second, e.begin(10*time.Second))
		e.leave()
		e.join()
		require.Equal(t, 10*time.Second, e.begin(10*time.Second), "another run has its own")
	})

	s := run(t, &testServer{stream: mute}, transport.GRPC)
	cfg := testConfig(transport.GRPC, s.addr)
	set := exportertest.NewNopSettings(metadata.Type)
	logs, err := createLogs(context.Background(), set, cfg)
	require.NoError(t, err)
	e := startExporter(t, set, newDisks(), cfg)
	e.export(0, 5)
	eventually(t, func() bool { return len(s.seen()) == 5 }, "they arrive")
	cfg.ending.begun = time.Now().Add(-patience) // the logs' end began
	begun := time.Now()
	require.NoError(t, e.Shutdown(context.Background()))
	require.Less(t, time.Since(begun), patience/2)
	require.Equal(t, int64(5), e.balanced().Dropped[account.Shutdown])
	require.NoError(t, logs.Shutdown(context.Background()))
	require.Zero(t, cfg.ending.alive)
}
