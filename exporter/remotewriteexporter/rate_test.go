// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRateIsKept: data above the rate of a destination waits in the queue, and is sent in order.
func TestRateIsKept(t *testing.T) {
	far(t, 10*time.Millisecond, func(c *Config) {
		c.RateLimit.SamplesPerSecond = 1000
		c.Batch.MaxSamples, c.Batch.Timeout = 100, 100*time.Millisecond
	}, func(t *testing.T, e *remoteWrite, d *received) {
		began := time.Now()
		for n := range 100 {
			require.NoError(t, e.ConsumeMetrics(t.Context(), flockOf(100, n)))
		}
		for d.samples() < 100*100 {
			time.Sleep(10 * time.Millisecond)
			allowed := 1000*time.Since(began).Seconds() + 1000
			require.LessOrEqual(t, float64(d.samples()), allowed+100)
		}
		require.Less(t, time.Since(began), 11*time.Second, "and no slower than allowed")
	})
}

// TestRepeatedRequestsCountForTheRate: a destination that fails does not get more requests because of that.
func TestRepeatedRequestsCountForTheRate(t *testing.T) {
	far(t, 10*time.Millisecond, func(c *Config) {
		c.RateLimit.SamplesPerSecond = 100
		c.Retry.InitialInterval, c.Retry.MaxInterval = time.Millisecond, time.Millisecond
		c.CircuitBreaker.ConsecutiveFailures = 0
		c.Batch.Timeout = time.Millisecond
	}, func(t *testing.T, e *remoteWrite, d *received) {
		d.fail(http.StatusTooManyRequests)
		require.NoError(t, e.ConsumeMetrics(t.Context(), flockOf(100, 0)))
		time.Sleep(10 * time.Second)
		require.InDelta(t, 10, len(d.headers()), 2)
		d.recover()
		time.Sleep(2 * time.Second)
		require.Equal(t, 100, d.samples())
	})
}

func TestRatesOfEndpoints(t *testing.T) {
	cfg := loadConfig(t, "remotewrite/several")
	clients := cfg.clients()
	require.Equal(t, RateLimitConfig{BytesPerSecond: 1_000_000}, clients[0].rate, "the exporter's")
	require.Equal(t, RateLimitConfig{SamplesPerSecond: 50_000}, clients[1].rate, "its own")
	cfg.Endpoints[1].RateLimit.SamplesPerSecond = -1
	require.ErrorContains(t, cfg.Validate(), "`rate_limit` of `endpoints[1].endpoint`")
}
