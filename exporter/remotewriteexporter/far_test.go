// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/racetest"
)

var wayID = component.MustNewID("way")

// way is an authentication extension that carries requests to a destination instead, without a network: so tests can
// use the time of synctest, in which computing takes none.
type way struct {
	component.StartFunc
	component.ShutdownFunc

	to        *received
	roundTrip time.Duration
}

func (w *way) RoundTripper(http.RoundTripper) (http.RoundTripper, error) { return w, nil }

func (w *way) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := w.pass(r.Context()); err != nil {
		return nil, err
	}
	answer := httptest.NewRecorder()
	w.to.serve(answer, r)
	if err := w.pass(r.Context()); err != nil {
		return nil, err
	}
	return answer.Result(), nil
}

// pass waits for half of the round trip.
func (w *way) pass(ctx context.Context) error {
	select {
	case <-time.After(w.roundTrip / 2):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// far runs f with an exporter whose destination is the given round trip away.
func far(t *testing.T, roundTrip time.Duration, change func(*Config), f func(t *testing.T, e *remoteWrite, d *received)) {
	t.Helper()
	directory := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := &received{t: t, series: map[string][]point{}}
		host := newFiles(t, directory, nil)
		host[wayID] = &way{to: d, roundTrip: roundTrip}
		f(t, start(t, host, func(c *Config) {
			conf := confmap.NewFromStringMap(map[string]any{
				"endpoint":                  "http://far.example.com",
				"http::auth::authenticator": wayID.String(),
				// zstd keeps encoders for other requests, which must not leave the bubble.
				"compression": snappy,
			})
			require.NoError(t, conf.Unmarshal(c))
			change(c)
		}), d)
		d.requireOrdered(t)
	})
}

// flock returns the nth page of 40 targets that are scraped in turn.
func flock(n int) pmetric.Metrics { return flockOf(flockSize, n) }

func flockOf(size, n int) pmetric.Metrics {
	md := gauges(size, n)
	md.ResourceMetrics().At(0).Resource().Attributes().PutStr("service.name", "flock-"+strconv.Itoa(n%40))
	return md
}

// A twentieth of 500,000 samples a second.
const (
	flockSize   = 250
	flocks      = 100 // per second
	fullRequest = 2500
)

func scaled(c *Config) { c.Batch.MaxSamples, c.Batch.Timeout = fullRequest, time.Second }

// fly sends flocks for a while, and calls see after each with the time since the start, and the number of samples that
// have not arrived.
func fly(t *testing.T, e *remoteWrite, d *received, see func(since time.Duration, missing int)) {
	t.Helper()
	began := time.Now()
	for n := 0; time.Since(began) < 6*time.Second; n++ {
		require.NoError(t, e.ConsumeMetrics(t.Context(), flock(n)))
		time.Sleep(time.Second / flocks)
		see(time.Since(began), (n+1)*flockSize-d.samples())
	}
}

func TestADistantDestinationKeepsUp(t *testing.T) {
	far(t, 200*time.Millisecond, scaled, func(t *testing.T, e *remoteWrite, d *received) {
		most := 0
		fly(t, e, d, func(since time.Duration, missing int) {
			most = max(most, e.Snapshot().Destinations[0].QueuedBlocks)
			if since > 2*time.Second {
				require.Less(t, missing, flocks*flockSize, "a second's worth is late after %v", since)
			}
		})
		assert.LessOrEqual(t, most, 16, "queued")
		assert.LessOrEqual(t, e.Snapshot().Shards, 5)
	})
}

func TestANearDestinationGetsFullRequestsFromOneShard(t *testing.T) {
	far(t, 10*time.Millisecond, scaled, func(t *testing.T, e *remoteWrite, d *received) {
		fly(t, e, d, func(since time.Duration, missing int) {
			require.LessOrEqual(t, missing, fullRequest+2*flockSize, "a request fills, another is on its way after %v", since)
		})
		assert.Equal(t, 1, e.Snapshot().Shards)
		assert.LessOrEqual(t, len(d.headers()), 6*flocks*flockSize/fullRequest)
	})
}

// A destination whose latency is longer than the batch timeout gets larger requests, not an ever longer queue of small
// ones.
func TestSlowAnswersMakeRequestsLarger(t *testing.T) {
	for name, stored := range map[string]*component.ID{"memory": nil, "storage": &storageID} {
		t.Run(name, func(t *testing.T) {
			far(t, 500*time.Millisecond, func(c *Config) {
				c.Queue.Storage, c.Batch.Timeout = stored, 200*time.Millisecond
			}, func(t *testing.T, e *remoteWrite, d *received) {
				for n := range 600 { // one minute
					go func() { assert.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, n))) }()
					time.Sleep(100 * time.Millisecond)
					require.LessOrEqual(t, e.Snapshot().Destinations[0].QueuedBlocks, 3)
				}
				assert.Equal(t, 1, e.Snapshot().Shards, "more shards would make requests smaller")
				eventually(t, func() bool { return d.samples() == 6000 }, "all samples arrive")
			})
		})
	}
}

// Small requests after an outage are sent together in one round trip, otherwise they would be sent no faster than they
// were made.
func TestAnOutageIsCaughtUpWithFast(t *testing.T) {
	const outage, points = time.Minute, 10
	for name, test := range map[string]struct {
		roundTrip time.Duration
		storage   *component.ID
	}{
		"memory, 200 ms":  {200 * time.Millisecond, nil},
		"storage, 200 ms": {200 * time.Millisecond, &storageID},
		"storage, 800 ms": {800 * time.Millisecond, &storageID},
	} {
		t.Run(name, func(t *testing.T) {
			far(t, test.roundTrip, func(c *Config) {
				c.Queue.Storage, c.Batch.Timeout = test.storage, 200*time.Millisecond
				c.CircuitBreaker.OpenFor = time.Second
			}, func(t *testing.T, e *remoteWrite, d *received) {
				d.answer = status(1<<30, http.StatusServiceUnavailable)
				came := 0
				bring := func() {
					n := came / points
					go func() { assert.NoError(t, e.ConsumeMetrics(t.Context(), gauges(points, n))) }()
					time.Sleep(100 * time.Millisecond)
					came += points
				}
				for range 10 * int(outage.Seconds()) {
					bring()
				}
				require.Greater(t, e.Snapshot().Destinations[0].QueuedBlocks, 50)
				d.recover()
				for d.samples() == 0 {
					bring()
				}
				left, began := came-d.samples(), time.Now()
				for came-d.samples() > 30*points { // three seconds' worth
					bring()
					require.Less(t, time.Since(began), outage)
				}
				// New data is sent in addition, without making the backlog longer.
				times := 1 + float64(left)/(10*points)/time.Since(began).Seconds()
				t.Logf("%.0f times as fast as it came", times)
				require.GreaterOrEqual(t, times, 5.0)
				eventually(t, func() bool { return d.samples() == came }, "all samples arrive")
			})
		})
	}
}

// A destination that only accepts small requests would never catch up after an outage.
func TestAnOutageIsCaughtUpWithSlowlyWhereMuchAtATimeTakesTooLong(t *testing.T) {
	const points, timely = 10, 300
	far(t, 50*time.Millisecond, func(c *Config) {
		c.Batch.Timeout, c.Timeout, c.CircuitBreaker.OpenFor = 200*time.Millisecond, 2*time.Second, time.Second
		c.Retry.InitialInterval, c.Retry.MaxInterval = 100*time.Millisecond, time.Second
	}, func(t *testing.T, e *remoteWrite, d *received) {
		came := 0
		bring := func(rounds int) {
			for range rounds {
				require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(points, came/points)))
				time.Sleep(250 * time.Millisecond)
				came += points
			}
		}
		d.fail(http.StatusServiceUnavailable)
		bring(400)
		d.setAnswer(func(_ int, _ http.ResponseWriter, r *http.Request) bool {
			series, err := decode(r)
			if err != nil {
				t.Error(err)
			}
			samples := 0
			for i := range series {
				samples += len(series[i].Samples)
			}
			if samples <= timely {
				return false
			}
			time.Sleep(3 * time.Second)
			return true
		})
		began := time.Now()
		for d.samples() < came {
			time.Sleep(time.Second)
			require.Less(t, time.Since(began), 2*time.Minute)
		}
		o := e.Snapshot().Destinations[0].Outcome
		require.Less(t, o.Requests[0], o.Requests[http.StatusNoContent], "requests that were late, and those that were not")
		require.Empty(t, e.Snapshot().Destinations[0].Outcome.Dropped)
	})
}

// Full requests cannot be merged: after an outage they have to be in as many lanes as needed to catch up.
func TestABacklogOfFullRequestsIsCaughtUpWithFast(t *testing.T) {
	racetest.SmallerIn(t, "TestAnOutageIsCaughtUpWithFast")
	const outage, pause, size = 20 * time.Second, 100 * time.Millisecond, flockSize * flocks / 10
	for name, stored := range map[string]*component.ID{"memory": nil, "storage": &storageID} {
		t.Run(name, func(t *testing.T) {
			far(t, 200*time.Millisecond, func(c *Config) {
				scaled(c)
				c.Queue.Storage, c.Queue.Size, c.CircuitBreaker.OpenFor = stored, 1<<30, time.Second
				if stored != nil {
					c.Batch.Timeout = storageTimeout
				}
			}, func(t *testing.T, e *remoteWrite, d *received) {
				came := 0
				bring := func(least time.Duration) {
					for began := time.Now(); time.Since(began) < least; came += size {
						n := came / size
						go func() { assert.NoError(t, e.ConsumeMetrics(context.Background(), flockOf(size, n))) }()
						time.Sleep(pause)
					}
				}
				bring(5 * time.Second)
				d.fail(http.StatusServiceUnavailable)
				bring(outage)
				d.recover()
				for before := d.samples(); d.samples() == before; {
					bring(pause)
				}
				left, began := came-d.samples(), time.Now()
				for came-d.samples() > 3*size*int(time.Second/pause) { // three seconds' worth
					bring(pause)
					require.Less(t, time.Since(began), outage, "%d of %d are left", came-d.samples(), left)
				}
				times := 1 + float64(left)/float64(size)*pause.Seconds()/time.Since(began).Seconds()
				t.Logf("%.1f times as fast as it came, by %d shards", times, e.Snapshot().Shards)
				require.GreaterOrEqual(t, times, 5.0)
				eventually(t, func() bool { return d.samples() == came }, "all samples arrive")
			})
		})
	}
}

// Callers that wait until data is stored wait no longer than a few timeouts, whatever the destination does.
func TestAcknowledgementsDoNotWaitForADestination(t *testing.T) {
	const timeout = 200 * time.Millisecond
	wait := func(t *testing.T, e *remoteWrite, n int) time.Duration {
		t.Helper()
		began := time.Now()
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, n)))
		return time.Since(began)
	}
	durable := func(c *Config) {
		c.Queue.Storage, c.Batch.Timeout, c.Timeout = &storageID, timeout, time.Minute
		c.ShutdownTimeout = time.Millisecond
	}
	t.Run("that hangs", func(t *testing.T) {
		far(t, time.Hour, durable, func(t *testing.T, e *remoteWrite, _ *received) {
			for n := range 10 {
				require.LessOrEqual(t, wait(t, e, n), maxHold*timeout)
			}
		})
	})
	t.Run("that fails", func(t *testing.T) {
		far(t, time.Millisecond, durable, func(t *testing.T, e *remoteWrite, d *received) {
			d.answer = status(1<<30, http.StatusServiceUnavailable)
			for n := range 10 {
				require.LessOrEqual(t, wait(t, e, n), timeout)
			}
		})
	})
}

// Data that is added after a round has ended must not be in its blocks, whose result its caller would not get.
func TestLateDataIsOfTheNextRound(t *testing.T) {
	far(t, time.Millisecond, func(c *Config) { c.Batch.Timeout = time.Hour }, func(t *testing.T, e *remoteWrite, _ *received) {
		in := e.intake
		cut := func() []string {
			in.mu.Lock()
			defer in.mu.Unlock()
			_, tenants := in.next()
			return tenants
		}
		samples := func(tenants []string) (n int) {
			for _, b := range in.encode(tenants) {
				n += b.Samples
			}
			return n
		}
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 0)))
		synctest.Wait() // the loop waits until the hour ends
		tenants := cut()
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(3, 1)))
		require.Equal(t, 10, samples(tenants))
		require.Equal(t, 3, samples(cut()))
	})
}
