// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"context"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/queue"
)

// TestAShutdownSitsOutNoPause: data on disk can wait, so Shutdown does not wait for a destination that is down.
func TestAShutdownSitsOutNoPause(t *testing.T) {
	for name, test := range map[string]func(*Config){
		"after a failure": func(c *Config) { c.Retry.InitialInterval, c.Retry.MaxInterval = time.Hour, time.Hour },
		"of the breaker":  func(c *Config) { c.CircuitBreaker.ConsecutiveFailures, c.CircuitBreaker.OpenFor = 1, time.Hour },
		"of a limit":      func(c *Config) { c.RateLimit.BytesPerSecond = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			d := newReceived(t, status(math.MaxInt, http.StatusServiceUnavailable))
			e := start(t, componenttest.NewNopHost(), func(c *Config) {
				c.Endpoint, c.Queue.Directory, c.ShutdownTimeout = d.URL, directory, time.Hour
				test(c)
			})
			require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 0)))
			eventually(t, func() bool { return len(d.headers()) > 0 }, "it is tried")
			require.NoError(t, e.Shutdown(t.Context()))

			d.recover()
			start(t, componenttest.NewNopHost(), func(c *Config) { c.Endpoint, c.Queue.Directory = d.URL, directory })
			eventually(t, func() bool { return d.samples() == 10 }, "it arrives")
		})
	}
}

// TestAShutdownWaitsForARequestUnderWay: otherwise its data would be sent again.
func TestAShutdownWaitsForARequestUnderWay(t *testing.T) {
	directory := t.TempDir()
	arrived, release := make(chan struct{}), make(chan struct{})
	d := newReceived(t, func(n int, _ http.ResponseWriter, _ *http.Request) bool {
		if n == 0 {
			close(arrived)
			<-release
		}
		return false
	})
	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		c.Endpoint, c.Queue.Directory, c.Timeout, c.ShutdownTimeout = d.URL, directory, time.Hour, time.Hour
	})
	require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 0)))
	<-arrived
	ended := make(chan error)
	go func() { ended <- e.Shutdown(context.Background()) }()
	_, err := e.queue.Next(t.Context(), 0, queue.Bound{}) // returns when the queue is closed: its only block is in progress
	require.ErrorIs(t, err, queue.ErrClosed)
	close(release)
	require.NoError(t, <-ended)
	require.Equal(t, 10, d.samples())

	e = start(t, componenttest.NewNopHost(), func(c *Config) { c.Endpoint, c.Queue.Directory = d.URL, directory })
	require.Zero(t, e.Snapshot().Destinations[0].QueuedBlocks, "it was delivered")
}
