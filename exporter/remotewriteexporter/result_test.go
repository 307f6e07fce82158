// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

func awaiting(url string) func(*Config) {
	return func(c *Config) {
		c.Endpoint, c.Queue.WaitForResult = url, true
		c.Batch.Timeout = 0
	}
}

func TestWhoWaitsForTheResultIsTold(t *testing.T) {
	d := newReceived(t, nil)
	e := start(t, componenttest.NewNopHost(), awaiting(d.URL))
	for n := range 20 {
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, n)))
		require.Equal(t, 10*(n+1), d.samples(), "it has arrived")
	}
	d.requireOrdered(t)

	d.setAnswer(status(2, http.StatusServiceUnavailable))
	require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 20)), "what is repeated is waited for")
	require.Equal(t, 210, d.samples())

	d.fail(http.StatusConflict)
	err := e.ConsumeMetrics(t.Context(), gauges(10, 21))
	require.ErrorContains(t, err, "409")
	require.True(t, consumererror.IsPermanent(err), "it will never be taken")

	d.fail(http.StatusServiceUnavailable)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err = e.ConsumeMetrics(ctx, gauges(10, 22))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.False(t, consumererror.IsPermanent(err))
	d.recover()
}

// Callers that wait delay the shutdown of everything in front of them: a processor with their data waits without a
// deadline.
func TestNobodyWaitsForAResultForEver(t *testing.T) {
	d := newReceived(t, nil)
	d.fail(http.StatusServiceUnavailable)
	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		awaiting(d.URL)(c)
		c.Queue.BlockTimeout = 20 * time.Millisecond
	})
	err := e.ConsumeMetrics(context.Background(), gauges(10, 0)) // without a deadline of its own
	require.ErrorIs(t, err, errNoResult)
	require.False(t, consumererror.IsPermanent(err))
	d.recover()
	require.Eventually(t, func() bool { return d.samples() == 10 }, 10*time.Second, time.Millisecond, "it stayed in the queue")
}

func TestWhatTookTooLongMayComeAgain(t *testing.T) {
	d := newReceived(t, nil)
	d.fail(http.StatusServiceUnavailable)
	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		awaiting(d.URL)(c)
		c.Retry.MaxElapsedTime = 20 * time.Millisecond
	})
	err := e.ConsumeMetrics(t.Context(), gauges(10, 0))
	require.ErrorContains(t, err, "max_elapsed_time")
	require.False(t, consumererror.IsPermanent(err))
}

// The result is one for all destinations: a retry is sent to each of them.
func TestResultIsOfAllDestinations(t *testing.T) {
	good, bad := newReceived(t, nil), newReceived(t, status(1<<30, http.StatusConflict))
	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		awaiting("")(c)
		for _, url := range []string{good.URL, bad.URL} {
			endpoint := EndpointConfig{HTTP: defaultClient()}
			endpoint.HTTP.Endpoint = url
			c.Endpoints = append(c.Endpoints, endpoint)
		}
	})
	require.ErrorContains(t, e.ConsumeMetrics(t.Context(), gauges(10, 0)), "409")
	eventually(t, func() bool { return good.samples() == 10 }, "the other has it")
}

// TestShutdownEndsTheWait: callers do not wait for data that is not delivered any more, and refused data is not left
// for the next exporter: they retry it.
func TestShutdownEndsTheWait(t *testing.T) {
	d := newReceived(t, nil)
	d.fail(http.StatusServiceUnavailable)
	change := func(c *Config) {
		awaiting(d.URL)(c)
		c.ShutdownTimeout = 10 * time.Millisecond
	}
	e := create(t, change)
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	var waiting sync.WaitGroup
	for n := range 4 {
		waiting.Go(func() {
			err := e.ConsumeMetrics(context.Background(), gauges(10, n))
			if err == nil || consumererror.IsPermanent(err) {
				t.Errorf("want an error that says to come again, got %v", err)
			}
		})
	}
	eventually(t, func() bool { return e.open() == 4 }, "all have come")
	require.NoError(t, e.Shutdown(t.Context()))
	waiting.Wait()
	require.Empty(t, left.take(e.set.ID, identities(e.cfg.clients())))
}

// open returns how many batches have no result yet.
func (e *remoteWrite) open() int64 { return e.queue.Open() }

func TestBatchesAreBounded(t *testing.T) {
	for _, policy := range []string{onFullDropNewest, onFullBlock} {
		t.Run(policy, func(t *testing.T) {
			d := newReceived(t, nil)
			d.fail(http.StatusServiceUnavailable)
			e := start(t, componenttest.NewNopHost(), func(c *Config) {
				c.Endpoint, c.Queue.OnFull, c.Queue.MaxBatches = d.URL, policy, 3
				c.Queue.BlockTimeout = 20 * time.Millisecond
			})
			for n := range 3 {
				require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, n)))
			}
			require.ErrorContains(t, e.ConsumeMetrics(t.Context(), gauges(10, 3)), "`queue.on_full`")
			d.recover()
			eventually(t, func() bool { return d.samples() == 30 && e.open() == 0 }, "all that was taken arrives")
			for n := range 50 {
				eventually(t, func() bool { return e.ConsumeMetrics(t.Context(), gauges(10, 4+n)) == nil }, "there is room again")
			}
			eventually(t, func() bool { return d.samples() == 530 && e.open() == 0 }, "and stays")
			d.requireOrdered(t)
		})
	}
}

// TestAFullQueueIsNotHeldOpen: when there is room for no more batches, a round does not wait for more data.
func TestAFullQueueIsNotHeldOpen(t *testing.T) {
	d := newReceived(t, nil)
	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		c.Endpoint, c.Queue.OnFull, c.Queue.MaxBatches, c.Batch.Timeout = d.URL, onFullDropNewest, 2, time.Hour
	})
	for n := range 20 {
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 2*n)))
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 2*n+1)))
		eventually(t, func() bool { return e.open() == 0 }, "they are delivered")
	}
	require.Equal(t, 400, d.samples())
	d.requireOrdered(t)
}

// TestWhoIsRefusedIsAlone: callers of the same round get the result of their own tenant's data, whatever happens to
// that of others.
func TestWhoIsRefusedIsAlone(t *testing.T) {
	for code, reason := range map[int]string{http.StatusConflict: "409", http.StatusForbidden: "max_elapsed_time"} {
		t.Run(strconv.Itoa(code), func(t *testing.T) {
			d, _ := refusing(t, code)
			e := start(t, componenttest.NewNopHost(), func(c *Config) {
				byMetadata(d.URL)(c)
				c.Queue.WaitForResult, c.Batch.Timeout = true, 50*time.Millisecond // so that they are in one round
				c.Retry.MaxElapsedTime = 20 * time.Millisecond
			})
			const callers = 6
			results := make([]error, callers)
			var waiting sync.WaitGroup
			for n := range callers {
				waiting.Go(func() {
					tenant := []string{"good", "bad", "other"}[n%3]
					results[n] = e.ConsumeMetrics(of(tenant), gauges(10, n))
				})
			}
			waiting.Wait()
			for n, err := range results {
				if n%3 != 1 {
					require.NoError(t, err)
					continue
				}
				require.ErrorContains(t, err, reason)
				require.Equal(t, code == http.StatusConflict, consumererror.IsPermanent(err))
			}
			require.Equal(t, 10*callers*2/3, d.samples())
			require.Zero(t, e.open())
		})
	}
}

// TestWhatMayComeAgainDoes: a call with data of several tenants gets a retryable error if one of them may be served
// later.
func TestWhatMayComeAgainDoes(t *testing.T) {
	d := newReceived(t, func(_ int, w http.ResponseWriter, r *http.Request) bool {
		switch r.Header.Get("X-Scope-Orgid") {
		case "never":
			w.WriteHeader(http.StatusConflict)
		case "later":
			w.WriteHeader(http.StatusForbidden)
		default:
			return false
		}
		return true
	})
	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		awaiting(d.URL)(c)
		c.Tenant.Header, c.Tenant.FromResourceAttribute = "X-Scope-OrgID", "tenant"
		c.Retry.InitialInterval, c.Retry.MaxInterval, c.Retry.MaxElapsedTime = time.Millisecond, 5*time.Millisecond, 20*time.Millisecond
	})
	call := func(tenants ...string) error {
		md := pmetric.NewMetrics()
		for n, tenant := range tenants {
			one := gauges(10, n)
			one.ResourceMetrics().At(0).Resource().Attributes().PutStr("tenant", tenant)
			one.ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
		}
		return e.ConsumeMetrics(t.Context(), md)
	}
	require.NoError(t, call("one", "two"))
	require.True(t, consumererror.IsPermanent(call("one", "never")))
	err := call("never", "one", "later")
	require.Error(t, err)
	require.False(t, consumererror.IsPermanent(err))
}
