// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestShutdownWaitsForAcks(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		release := make(chan struct{})
		s := run(t, &server{stream: func(p *peer) error {
			r, err := p.recv()
			if err != nil {
				return err
			}
			<-release
			p.ack(r.id)
			return echo(p)
		}}, transport)
		e := newTestExporter(t, transport, s.addr)
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
		require.Equal(t, int64(5), e.balanced().acked)

		muted := run(t, &server{stream: mute}, transport)
		e = newTestExporter(t, transport, muted.addr, func(cfg *Config) { cfg.Shutdown.Timeout = 50 * time.Millisecond })
		e.export(0, 5)
		eventually(t, func() bool { return len(muted.seen()) == 5 }, "they arrive")
		require.NoError(t, e.Shutdown(context.Background()))
		require.Equal(t, int64(5), e.balanced().dropped[dropShutdown])
	})
}

func TestShutdownEndsWithItsContext(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		s := run(t, &server{stream: mute}, transport)
		e := newTestExporter(t, transport, s.addr)
		e.export(0, 1)
		eventually(t, func() bool { return len(s.seen()) == 1 }, "it arrives")
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		require.NoError(t, e.Shutdown(ctx))
		require.Equal(t, int64(1), e.balanced().dropped[dropShutdown])
	})
}

func TestWithoutWaitingShutdownCountsTheLoss(t *testing.T) {
	bothTransports(t, func(t *testing.T, transport string) {
		s := run(t, &server{stream: mute}, transport)
		e := newTestExporter(t, transport, s.addr, impatient, func(cfg *Config) { cfg.InFlight.Requests = 3 })
		e.export(0, 10)
		eventually(t, func() bool { return len(s.seen()) == 3 }, "the window is full")
		begun := time.Now()
		require.NoError(t, e.Shutdown(context.Background()))
		require.Less(t, time.Since(begun), patience/2)
		b := e.balanced()
		require.Equal(t, int64(10), b.dropped[dropShutdown], "pending and queued alike")
		require.Equal(t, b.received, b.dropped[dropShutdown])
	})
}
