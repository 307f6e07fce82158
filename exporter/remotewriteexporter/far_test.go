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
)

var wayID = component.MustNewID("way")

// way is an extension that is asked to authenticate requests, and carries them to a destination instead, without a
// network: so time can be synctest's, in which work takes none.
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

// pass takes half of the round trip.
func (w *way) pass(ctx context.Context) error {
	select {
	case <-time.After(w.roundTrip / 2):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// far runs f with an exporter whose destination is a round trip away.
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
				// What zstd keeps for the next request is of one time only.
				"compression": snappy,
			})
			require.NoError(t, conf.Unmarshal(c))
			change(c)
		}), d)
		d.requireOrdered(t)
	})
}

// flock is the nth page of 40 targets that are scraped in turn.
func flock(n int) pmetric.Metrics {
	md := gauges(flockSize, n)
	md.ResourceMetrics().At(0).Resource().Attributes().PutStr("service.name", "flock-"+strconv.Itoa(n%40))
	return md
}

// A twentieth of 500,000 samples a second.
const (
	flockSize   = 250
	flocks      = 100 // a second
	fullRequest = 2500
)

func scaled(c *Config) { c.Batch.MaxSamples, c.Batch.Timeout = fullRequest, time.Second }

// fly sends flocks for a while, and calls see after each with the time since it began, and how many samples are yet to
// arrive.
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

// A destination that takes longer to answer than data waits gets larger requests, not an ever longer queue of small ones.
func TestSlowAnswersMakeRequestsLarger(t *testing.T) {
	for name, stored := range map[string]*component.ID{"memory": nil, "storage": &storageID} {
		t.Run(name, func(t *testing.T) {
			far(t, 500*time.Millisecond, func(c *Config) {
				c.Queue.Storage, c.Batch.Timeout = stored, 200*time.Millisecond
			}, func(t *testing.T, e *remoteWrite, d *received) {
				for n := range 600 { // a minute
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

// Whoever waits until data is stored waits no longer than a few timeouts, whatever the destination does.
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

// What comes after a round has ended must not be in its blocks, whose fate is not told to those who brought it.
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
		synctest.Wait() // the loop waits for the hour to end
		tenants := cut()
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(3, 1)))
		require.Equal(t, 10, samples(tenants))
		require.Equal(t, 3, samples(cut()))
	})
}
