// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// The cost of many tenants in one batch is proportional to their number, not to that of pairs.
func TestManyTenantsTakeTheirTime(t *testing.T) {
	in := create(t, func(c *Config) {
		c.Endpoint, c.Tenant.Header, c.Tenant.FromResourceAttribute = "http://127.0.0.1:1", "X-Scope-OrgID", "tenant"
		c.Tenant.Max = 1 // all others are refused, which costs the same for each
	}).intake
	took := func(times, tenants int) time.Duration {
		var all []pmetric.Metrics
		for range times {
			md := pmetric.NewMetrics()
			for i := range tenants {
				md.ResourceMetrics().AppendEmpty().Resource().Attributes().PutStr("tenant", fmt.Sprint(i))
			}
			all = append(all, md)
		}
		began := time.Now()
		for _, md := range all {
			_ = in.addByResource(md) // there are too many of them, which may be reported
			require.Equal(t, tenants, md.ResourceMetrics().Len(), "they stay where they are")
		}
		return time.Since(began)
	}
	few, many := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for range 5 { // on a busy machine the minimum of several is the best estimate
		few, many = min(few, took(16, 500)), min(many, took(1, 16*500))
		t.Logf("%v for a few at a time, %v for all", few, many)
		if many < 4*few {
			return
		}
	}
	require.Less(t, many, 4*few)
}

func of(tenant string) context.Context {
	return client.NewContext(context.Background(), client.Info{Metadata: client.NewMetadata(map[string][]string{"X-Tenant": {tenant}})})
}

// refusing returns a destination that does not serve the tenant "bad" until the function is called.
func refusing(t *testing.T, code int, header ...string) (d *received, serve func()) {
	var served atomic.Bool
	answer := status(math.MaxInt, code, header...)
	d = newReceived(t, func(n int, w http.ResponseWriter, r *http.Request) bool {
		return r.Header.Get("X-Scope-Orgid") == "bad" && !served.Load() && answer(n, w, r)
	})
	return d, func() { served.Store(true) }
}

func byMetadata(url string) func(*Config) {
	return func(c *Config) {
		c.Endpoint, c.Tenant.Header, c.Tenant.FromMetadata = url, "X-Scope-OrgID", "x-tenant"
		c.Batch.Timeout = time.Millisecond
		c.Retry.InitialInterval, c.Retry.MaxInterval = time.Millisecond, 5*time.Millisecond
	}
}

// TestRefusedTenantHoldsUpNoOther: however a destination responds to one tenant, the data of others is delivered, and
// that of the one waits, in order, until it is served.
func TestRefusedTenantHoldsUpNoOther(t *testing.T) {
	for _, code := range []int{401, 403, 404, 405, 407, 408, 421, 429, 500, 503} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			d, serve := refusing(t, code)
			e := start(t, componenttest.NewNopHost(), byMetadata(d.URL))
			for n := range 30 {
				require.NoError(t, e.ConsumeMetrics(of("bad"), gauges(10, n)))
				require.NoError(t, e.ConsumeMetrics(of(fmt.Sprint("good ", n%3)), gauges(10, 1000+n)))
				eventually(t, func() bool { return d.samples() == 10*(n+1) }, "the data of others arrives")
			}
			serve()
			eventually(t, func() bool { return d.samples() == 600 }, "what waited arrives")
			eventually(t, func() bool { return e.Snapshot().Destinations[0].QueuedBlocks == 0 }, "nothing is left")
			require.Empty(t, e.Snapshot().Destinations[0].Outcome.Dropped)
		})
	}
}

// TestTenantsForWhomADestinationFailsOpenNoBreaker: not while it serves others, however many they are.
func TestTenantsForWhomADestinationFailsOpenNoBreaker(t *testing.T) {
	var down atomic.Bool
	d := newReceived(t, func(_ int, w http.ResponseWriter, r *http.Request) bool {
		fails := down.Load() || r.Header.Get("X-Scope-Orgid") != "good"
		if fails {
			w.WriteHeader(http.StatusInternalServerError)
		}
		return fails
	})
	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		byMetadata(d.URL)(c)
		c.CircuitBreaker.ConsecutiveFailures, c.CircuitBreaker.OpenFor = 1, 2*time.Second
		c.ShutdownTimeout = time.Millisecond
	})
	for n := range 30 {
		require.NoError(t, e.ConsumeMetrics(of("good"), gauges(10, n)))
		eventually(t, func() bool { return d.samples() == 10*(n+1) }, "the data of others arrives")
		require.NoError(t, e.ConsumeMetrics(of(fmt.Sprint("bad ", n)), gauges(10, n)))
		require.False(t, e.Snapshot().Destinations[0].BreakerOpen)
	}
	down.Store(true)
	require.NoError(t, e.ConsumeMetrics(of("good"), gauges(10, 30)))
	eventually(t, func() bool { return e.Snapshot().Destinations[0].BreakerOpen }, "it fails for all")
}

// TestRetryAfterOfATenantIsItsAlone: a pause of an hour for one tenant does not apply to others.
func TestRetryAfterOfATenantIsItsAlone(t *testing.T) {
	d, _ := refusing(t, 429, "Retry-After", "3600")
	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		byMetadata(d.URL)(c)
		c.ShutdownTimeout = time.Millisecond
	})
	require.NoError(t, e.ConsumeMetrics(of("bad"), gauges(10, 0)))
	eventually(t, func() bool { return len(d.headers()) == 1 }, "it is refused")
	for n := range 20 {
		require.NoError(t, e.ConsumeMetrics(of("good"), gauges(10, n)))
		require.NoError(t, e.ConsumeMetrics(of("bad"), gauges(10, n+1)))
	}
	eventually(t, func() bool { return d.samples() == 200 }, "the data of others arrives")
	refused := 0
	for _, h := range d.headers() {
		if h.Get("X-Scope-Orgid") == "bad" {
			refused++
		}
	}
	require.Equal(t, 1, refused, "it is not asked again")
}

// TestRefusedTenantFillsItsShareOnly: in the end, only callers with data of a tenant that is not served wait.
func TestRefusedTenantFillsItsShareOnly(t *testing.T) {
	d, serve := refusing(t, 403)
	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		byMetadata(d.URL)(c)
		c.Queue.Size = 20_000
	})
	sent := 0
	for {
		ctx, cancel := context.WithTimeout(of("bad"), 50*time.Millisecond)
		err := e.ConsumeMetrics(ctx, gauges(10, sent))
		cancel()
		if err != nil {
			break
		}
		sent++
		require.Less(t, sent, 10_000)
	}
	for n := range 20 {
		require.NoError(t, e.ConsumeMetrics(of("good"), gauges(10, 20_000+n)))
		eventually(t, func() bool { return d.samples() == 10*(n+1) }, "the data of others arrives")
	}
	require.Positive(t, sent)
	serve()
	eventually(t, func() bool { return d.samples() == 200+10*sent }, "what waited arrives")
	require.NoError(t, e.ConsumeMetrics(of("bad"), gauges(10, 50_000)))
}
