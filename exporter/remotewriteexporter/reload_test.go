// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
)

// TestReloadKeepsTheQueueInMemory: a reload shuts an exporter down and starts the next one in the same process. Each
// destination gets the rest of its data, in order; a new one gets nothing old.
func TestReloadKeepsTheQueueInMemory(t *testing.T) {
	healthy, down, later := newReceived(t, nil), newReceived(t, status(math.MaxInt, http.StatusServiceUnavailable)), newReceived(t, nil)
	to := func(destinations ...*received) func(*Config) {
		return func(c *Config) {
			c.ShutdownTimeout = 10 * time.Millisecond
			for _, d := range destinations {
				endpoint := EndpointConfig{HTTP: defaultClient()}
				endpoint.HTTP.Endpoint = d.URL
				c.Endpoints = append(c.Endpoints, endpoint)
			}
		}
	}
	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		to(healthy, down)(c)
		c.Shards.Max, c.CircuitBreaker.OpenFor = 1, time.Minute
	})
	for n := range 20 {
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, n)))
	}
	eventually(t, func() bool { return healthy.samples() == 200 }, "one destination has all")
	// A request whose response Shutdown does not wait for may be accepted later, and is sent again: it would count
	// twice.
	eventually(t, func() bool { return e.intake.queue.Stats(0).Blocks == 0 }, "and the exporter knows it")
	eventually(t, e.destinations[1].BreakerOpen, "the other is asked nothing")
	require.NoError(t, e.Shutdown(t.Context()))
	require.Equal(t, map[string]int64{"shutdown": 200}, e.telemetry.destinations[1].snapshot().Dropped, "should there be no other")

	down.recover()
	e = start(t, componenttest.NewNopHost(), to(later, down, healthy))
	for n := range 20 {
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 20+n)))
	}
	eventually(t, func() bool { return down.samples() == 400 && healthy.samples() == 400 && later.samples() == 200 }, "all have what they lack")
	eventually(t, func() bool { return e.intake.queue.Stats(1).Blocks == 0 }, "nothing is left")
	for _, d := range []*received{healthy, down, later} {
		d.requireOrdered(t)
	}
	require.Empty(t, left.take(e.set.ID, e.queue.Destinations()))
}

// TestAReloadThatLeavesADestinationOutSendsNothingTwice: if it is back soon it gets the data that was left for it, and
// the other one does not get that again.
func TestAReloadThatLeavesADestinationOutSendsNothingTwice(t *testing.T) {
	down := status(math.MaxInt, http.StatusServiceUnavailable)
	stays, leaves := newReceived(t, down), newReceived(t, down)
	to := func(destinations ...*received) func(*Config) {
		return func(c *Config) {
			c.ShutdownTimeout = 10 * time.Millisecond
			for _, d := range destinations {
				endpoint := EndpointConfig{HTTP: defaultClient()}
				endpoint.HTTP.Endpoint = d.URL
				c.Endpoints = append(c.Endpoints, endpoint)
			}
		}
	}
	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		to(stays, leaves)(c)
		c.CircuitBreaker.ConsecutiveFailures, c.CircuitBreaker.OpenFor = 1, time.Minute
	})
	require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 0)))
	// A request that Shutdown cuts off may reach the server after its recovery, and would count twice.
	eventually(t, func() bool { return e.destinations[0].BreakerOpen() && e.destinations[1].BreakerOpen() }, "nothing is on its way")
	require.NoError(t, e.Shutdown(t.Context()))

	stays.recover()
	e = start(t, componenttest.NewNopHost(), to(stays))
	eventually(t, func() bool { return stays.samples() == 10 && e.queue.Stats(0).Blocks == 0 }, "it has all")
	require.NoError(t, e.Shutdown(t.Context()))

	leaves.recover()
	e = start(t, componenttest.NewNopHost(), to(stays, leaves))
	eventually(t, func() bool { return leaves.samples() == 10 }, "and the other, too")
	eventually(t, func() bool { return e.queue.Stats(0).Blocks+e.queue.Stats(1).Blocks == 0 }, "nothing is left")
	require.Equal(t, 10, stays.samples())
}

// TestBlockEndsAfterItsTime: callers that wait for room in a queue get an error that they may retry, so that Shutdown,
// for which a receiver waits for its requests, ends.
func TestBlockEndsAfterItsTime(t *testing.T) {
	d := newReceived(t, status(math.MaxInt, http.StatusServiceUnavailable))
	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		c.Endpoint, c.Queue.Size, c.ShutdownTimeout = d.URL, 1, time.Millisecond
		c.Queue.BlockTimeout = 10 * time.Millisecond
	})
	require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 0)))
	eventually(t, func() bool { return e.Snapshot().Destinations[0].QueuedBlocks == 1 }, "the queue is full")
	err := e.ConsumeMetrics(t.Context(), gauges(10, 1))
	require.ErrorIs(t, err, errBlocked)
	require.False(t, consumererror.IsPermanent(err))
	require.Positive(t, NewDefaultConfig().Queue.BlockTimeout)
}
