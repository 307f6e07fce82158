// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

func TestSeriesKeepTheirOrderWhenShardsChange(t *testing.T) {
	// Responses with varying delays make shards overtake each other.
	d := newReceived(t, func(n int, _ http.ResponseWriter, _ *http.Request) bool {
		<-time.After(time.Duration(n%4) * time.Millisecond)
		return false
	})
	const calls, series = 1000, 20
	e := create(t, func(c *Config) {
		c.Endpoint, c.Batch.Timeout = d.URL, time.Millisecond
		c.Batch.MaxSamples = 10 * series // so that there are many rounds, however fast the calls are
	})
	rounds, counts := 0, map[int]bool{}
	e.intake.suitable = func() int {
		rounds++
		counts[e.intake.shards.count()] = true
		return []int{1, 2, 4, 8, 4, 2}[rounds/2%6]
	}
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	for n := range calls {
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(series, n)))
	}
	eventually(t, func() bool { return d.samples() == calls*series }, "all samples arrive")
	require.NoError(t, e.Shutdown(t.Context()))
	d.requireOrdered(t)
	require.Greater(t, len(counts), 2, "the number of shards changed")
}

func TestEachEndpointGetsEverything(t *testing.T) {
	healthy := newReceived(t, nil)
	old := newReceived(t, status(3, http.StatusUnsupportedMediaType))
	down := newReceived(t, status(1<<30, http.StatusServiceUnavailable))
	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		c.ShutdownTimeout = time.Millisecond
		for _, d := range []*received{healthy, old, down} {
			endpoint := EndpointConfig{HTTP: defaultClient()}
			endpoint.HTTP.Endpoint = d.URL
			c.Endpoints = append(c.Endpoints, endpoint)
		}
	})
	for n := range 20 {
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, n)))
	}
	for _, d := range []*received{healthy, old} {
		eventually(t, func() bool { return d.samples() == 200 }, "all samples arrive")
		d.requireOrdered(t)
	}
	s := e.Snapshot().Destinations
	require.Zero(t, s[0].Fallback)
	require.Equal(t, 3, s[1].Fallback)
	eventually(t, func() bool { return e.Snapshot().Destinations[2].QueuedBlocks > 0 }, "the other keeps its share")
}

func TestFullQueue(t *testing.T) {
	for policy, check := range map[string]func(t *testing.T, e *remoteWrite, full error){
		onFullBlock: func(t *testing.T, _ *remoteWrite, full error) {
			require.ErrorIs(t, full, context.DeadlineExceeded)
		},
		onFullDropNewest: func(t *testing.T, _ *remoteWrite, full error) {
			require.ErrorIs(t, full, errQueueFull)
		},
		onFullDropOldest: func(t *testing.T, e *remoteWrite, full error) {
			require.NoError(t, full)
			eventually(t, func() bool { return e.Snapshot().Destinations[0].Outcome.Dropped["queue_full"] > 0 }, "the oldest is dropped")
		},
	} {
		t.Run(policy, func(t *testing.T) {
			d := newReceived(t, status(1<<30, http.StatusServiceUnavailable))
			e := start(t, componenttest.NewNopHost(), func(c *Config) {
				c.Endpoint, c.Queue.Size, c.Queue.OnFull, c.ShutdownTimeout = d.URL, 1, policy, time.Millisecond
			})
			require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 0)))
			eventually(t, func() bool { return e.Snapshot().Destinations[0].QueuedBlocks == 1 }, "the queue is full")
			if policy == onFullDropOldest { // the first block is being sent and cannot be dropped
				require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 1)))
				eventually(t, func() bool { return e.Snapshot().Destinations[0].QueuedBlocks == 2 }, "another is queued")
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			check(t, e, e.ConsumeMetrics(ctx, gauges(10, 2)))
		})
	}
}

func TestTenantsAreKeptApart(t *testing.T) {
	byResource := func(tenants ...string) pmetric.Metrics {
		md := pmetric.NewMetrics()
		for i, tenant := range tenants {
			part := gauges(1, i)
			if tenant != "" {
				part.ResourceMetrics().At(0).Resource().Attributes().PutStr("tenant", tenant)
			}
			part.ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
		}
		return md
	}
	byMetadata := func(tenant string) context.Context {
		return client.NewContext(context.Background(), client.Info{Metadata: client.NewMetadata(map[string][]string{"X-Tenant": {tenant}})})
	}
	for name, test := range map[string]struct {
		change func(*TenantConfig)
		send   func(t *testing.T, e *remoteWrite)
	}{
		"resource attribute": {
			func(c *TenantConfig) { c.FromResourceAttribute = "tenant" },
			func(t *testing.T, e *remoteWrite) {
				require.False(t, e.Capabilities().MutatesData)
				require.NoError(t, e.ConsumeMetrics(t.Context(), byResource("a", "b", "", "a")))
			},
		},
		"client metadata": {
			func(c *TenantConfig) { c.FromMetadata = "x-tenant" },
			func(t *testing.T, e *remoteWrite) {
				require.False(t, e.Capabilities().MutatesData)
				for i, tenant := range []string{"a", "b", "", "a"} {
					require.NoError(t, e.ConsumeMetrics(byMetadata(tenant), gauges(1, i)))
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			tenants := map[string]bool{}
			d := newReceived(t, func(_ int, _ http.ResponseWriter, r *http.Request) bool {
				mu.Lock()
				defer mu.Unlock()
				tenants[r.Header.Get("X-Scope-Orgid")] = true
				return false
			})
			e := start(t, componenttest.NewNopHost(), func(c *Config) {
				c.Endpoint, c.Tenant.Header, c.Tenant.Default = d.URL, "X-Scope-OrgID", "nobody"
				test.change(&c.Tenant)
			})
			test.send(t, e)
			eventually(t, func() bool { return d.samples() == 4 }, "all samples arrive")
			mu.Lock()
			defer mu.Unlock()
			require.Equal(t, map[string]bool{"a": true, "b": true, "nobody": true}, tenants)
		})
	}
}

func TestRequestsGoThroughTheProxyWithTheirHeaders(t *testing.T) {
	const endpoint = "http://elsewhere.example.com/api/v1/write"
	asked := make(chan string, 1)
	d := newReceived(t, func(_ int, _ http.ResponseWriter, r *http.Request) bool {
		asked <- r.URL.String() + " for " + r.Header.Get("X-Team")
		return false
	})
	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		c.Endpoint = endpoint
		conf := confmap.NewFromStringMap(map[string]any{"http::proxy_url": d.URL, "http::headers::X-Team": "ours"})
		require.NoError(t, conf.Unmarshal(c))
	})
	require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 0)))
	eventually(t, func() bool { return d.samples() == 10 }, "the samples arrive")
	require.Equal(t, endpoint+" for ours", <-asked)
}

func TestShutdownSendsWhatIsQueued(t *testing.T) {
	d := newReceived(t, func(int, http.ResponseWriter, *http.Request) bool {
		<-time.After(10 * time.Millisecond)
		return false
	})
	e := create(t, func(c *Config) { c.Endpoint, c.Batch.Timeout = d.URL, time.Hour })
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	e.consumeAll(t, 20)
	require.NoError(t, e.Shutdown(t.Context()))
	require.Equal(t, 200, d.samples())
	require.Error(t, e.ConsumeMetrics(t.Context(), gauges(1, 99)))
}

func TestConcurrentCallersLoseNothing(t *testing.T) {
	d := newReceived(t, nil)
	e := start(t, componenttest.NewNopHost(), func(c *Config) { c.Endpoint, c.Batch.MaxSamples = d.URL, 100 })
	var callers sync.WaitGroup
	for caller := range 8 {
		callers.Go(func() {
			for n := range 50 {
				md := gauges(10, n)
				md.ResourceMetrics().At(0).Resource().Attributes().PutStr("service.name", string(rune('a'+caller)))
				if err := e.ConsumeMetrics(context.Background(), md); err != nil {
					t.Error(err)
				}
			}
		})
	}
	callers.Wait()
	eventually(t, func() bool { return d.samples() == 8*50*10 }, "all samples arrive")
	d.requireOrdered(t)
}

func TestShardsFollowLoad(t *testing.T) {
	s := newShards(ShardsConfig{Min: 1, Max: 6})
	after := func(seconds, came float64, want int, loads ...load) {
		t.Helper()
		s.now.Store(int64(s.adapt(look{loads: loads, elapsed: seconds, came: came, over: seconds})))
		require.Equal(t, want, s.count())
	}
	f := func(want int, loads ...load) { // ten full requests a second
		t.Helper()
		after(1, 10, want, loads...)
	}
	quiet := load{}
	late := func(latency float64) load { return load{busy: 1, latency: latency, waiting: 100} }
	f(1, late(0.1))
	f(1, quiet) // a short disturbance
	f(1, late(0.1))
	f(2, late(0.1)) // twice the minimum
	f(2, late(0.12))
	f(2, late(0.12)) // the backlog is from when there were fewer: these are enough
	f(2, quiet, late(0.2))
	f(4, late(0.2), quiet)
	f(4, late(0.9))
	f(6, late(0.9))
	f(6, late(0.9))
	f(6, late(0.9))
	f(6, load{busy: 100, latency: 9, waiting: 100, failing: true})
	f(6, load{busy: 100, latency: 9, waiting: 3}) // keeps up
	s = newShards(s.cfg)
	for range 10 { // more requests are not needed, only larger ones
		after(1, 0.1, 1, late(2))
	}
	s.now.Store(4)
	s.idle = 0
	for i := range 60 { // busy for more than a quarter of the time
		f(4, load{busy: float64(3 * (i % 2))})
	}
	for i := range 59 { // bursts that leave them idle most of the time
		f(4, load{busy: float64(3 * (i % 4 / 3))})
	}
	f(2, quiet)
	after(90, 0, 2, quiet, load{failing: true})
	after(59, 0, 2, quiet)
	after(1, 0, 1, quiet)
	after(90, 0, 1, quiet)
}

func TestShardsAreReadyForTheEndOfAnOutage(t *testing.T) {
	s := newShards(ShardsConfig{Min: 1, Max: 100})
	f := func(came float64, want int, l load) { // in full requests a second
		t.Helper()
		l.failing = true
		s.now.Store(int64(s.adapt(look{loads: []load{l}, elapsed: 1, came: came, over: 1})))
		require.Equal(t, want, s.count())
	}
	for range 5 {
		f(0.1, 1, load{}) // few small requests can be merged
	}
	s = newShards(s.cfg)
	for range 5 {
		f(10, 1, load{latency: 0.01}) // a short latency
	}
	f(10, 1, load{latency: 0.1})
	f(10, 6, load{latency: 0.1})
	f(10, 6, load{})
	f(10, 12, load{}) // unknown latency
	f(10, 12, load{latency: 0.2})
	f(10, 12, load{latency: 0.8})
	f(10, 48, load{latency: 0.8})
	for range 100 {
		f(0, 48, load{latency: 0.8}) // as long as necessary
	}
}

func TestRequestsStayFullHoweverManyShards(t *testing.T) {
	const shards, samples, rounds = 4, 1000, 3
	d := newReceived(t, nil)
	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		c.Endpoint, c.Batch.Timeout, c.Batch.MaxSamples = d.URL, 2*time.Second, samples
		c.Shards = ShardsConfig{Min: shards, Max: shards}
	})
	for n := range rounds * shards {
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(samples, n)))
	}
	eventually(t, func() bool { return d.samples() == rounds*shards*samples }, "all samples arrive")
	requests := 0
	for _, n := range e.Snapshot().Destinations[0].Outcome.Requests {
		requests += int(n)
	}
	require.LessOrEqual(t, requests, 2*rounds*shards, "requests that shards make small")
}

// A shard that gets more than the others must not split each round into two requests, which take twice as long.
func TestUnevenShardsGetOneRequestInARound(t *testing.T) {
	const shards, birds, pages = 4, 10, 4000
	d := newReceived(t, nil)
	e := create(t, func(c *Config) {
		c.Endpoint, c.Batch.Timeout, c.Batch.MaxSamples = d.URL, time.Hour, 500
		c.Shards = ShardsConfig{Min: shards, Max: shards}
	})
	rounds := 0
	e.intake.suitable = func() int { rounds++; return shards }
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	for n := range pages {
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(birds, n)))
	}
	require.NoError(t, e.Shutdown(t.Context()))
	require.Equal(t, pages*birds, d.samples())
	require.Greater(t, rounds, 20)
	require.LessOrEqual(t, len(d.headers()), shards*rounds+shards, "requests of %d rounds", rounds)
}

func TestWhatDoesNotFitIntoARoundEndsIt(t *testing.T) {
	d := newReceived(t, nil)
	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		c.Endpoint, c.Batch.Timeout, c.Batch.MaxSamples = d.URL, time.Hour, 100
	})
	// Small parts may still be added when a large one does not fit, and the large one does not wait until the hour
	// ends.
	for n, points := range []int{10, 40, 90} {
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(points, n)))
	}
	eventually(t, func() bool { return d.samples() == 140 }, "both rounds are sent")
}

func TestPartsOfALargePageFillRequests(t *testing.T) {
	d := newReceived(t, nil)
	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		c.Endpoint, c.Batch.Timeout, c.Batch.MaxSamples = d.URL, time.Hour, 1000
	})
	const parts, points = 30, 160 // six to a request
	for n := range parts {
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(points, n)))
	}
	eventually(t, func() bool { return d.samples() == parts*points }, "all samples arrive")
	requests := 0
	for _, n := range e.Snapshot().Destinations[0].Outcome.Requests {
		requests += int(n)
	}
	require.LessOrEqual(t, requests, 6, "requests that the cut of rounds makes small")
}
