// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

func TestRequestsThatAreTooLargeAreSplitAndTheSizeIsRemembered(t *testing.T) {
	const limit = 4 << 10
	d := newReceived(t, func(_ int, w http.ResponseWriter, r *http.Request) bool {
		if r.ContentLength > limit {
			http.Error(w, "too large", http.StatusRequestEntityTooLarge)
		}
		return r.ContentLength > limit
	})
	e := start(t, componenttest.NewNopHost(), func(c *Config) { c.Endpoint, c.Compression = d.URL, snappy })
	for n := range 3 {
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(5000, n)))
		eventually(t, func() bool { return d.samples() == 5000*(n+1) }, "all samples arrive")
	}
	d.requireOrdered(t)
	o := e.Snapshot().Destinations[0].Outcome
	require.Empty(t, o.Dropped)
	require.Less(t, o.Requests[http.StatusRequestEntityTooLarge], int64(10))
}

// VictoriaMetrics answers 400 to a request whose content is larger than it accepts, in any format, and 204 to one of 2.0
// that is not.
func TestRequestsThatAreTooLargeForVictoriaMetricsAreSplit(t *testing.T) {
	const limit = 32 << 10
	for _, format := range []struct{ message, compression string }{{"auto", "auto"}, {"1.0", snappy}, {"1.0", zstd}} {
		t.Run(format.message+" "+format.compression, func(t *testing.T) {
			t.Parallel()
			d := newReceived(t, func(_ int, w http.ResponseWriter, r *http.Request) bool {
				version, raw, err := contentOf(r)
				assert.NoError(t, err)
				switch {
				case len(raw) > limit:
					http.Error(w, fmt.Sprintf("cannot decompress snappy-encoded request: too big data size %d exceeding %d bytes", len(raw), limit), http.StatusBadRequest)
				case version == promwrite.V2:
					w.WriteHeader(http.StatusNoContent)
				default:
					return false
				}
				return true
			})
			e := start(t, componenttest.NewNopHost(), func(c *Config) {
				c.Endpoint, c.ProtobufMessage, c.Compression = d.URL, format.message, format.compression
			})
			for n := range 3 {
				require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(5000, n)))
				eventually(t, func() bool { return d.samples() == 5000*(n+1) }, "all samples arrive")
			}
			d.requireOrdered(t)
			require.Empty(t, e.Snapshot().Destinations[0].Outcome.Dropped)
		})
	}
}

func TestWhoFindsEverythingTooLargeIsNotAskedForEver(t *testing.T) {
	d := newReceived(t, status(1<<30, http.StatusRequestEntityTooLarge))
	e := start(t, componenttest.NewNopHost(), func(c *Config) { c.Endpoint = d.URL })
	require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(1000, 0)))
	eventually(t, func() bool { return e.Snapshot().Destinations[0].Outcome.Dropped["too_large"] == 1000 }, "the block is given up")
	require.Less(t, len(d.headers()), 100)
}

// TestAProxyThatFindsAlmostEverythingTooLargeCostsNothing: in no format, not even requests that cannot be split any
// further; and later requests are as large as before.
func TestAProxyThatFindsAlmostEverythingTooLargeCostsNothing(t *testing.T) {
	for _, format := range []struct{ message, compression string }{
		{"2.0", zstd}, {"2.0", snappy}, {"1.0", zstd}, {"1.0", snappy},
	} {
		t.Run(format.message+" "+format.compression, func(t *testing.T) {
			t.Parallel()
			d := newReceived(t, nil)
			e := start(t, componenttest.NewNopHost(), func(c *Config) {
				c.Endpoint, c.ProtobufMessage, c.Compression = d.URL, format.message, format.compression
			})
			const batches = 20
			for n := range batches {
				if n == 5 {
					was := len(d.headers())
					d.setAnswer(func(n int, w http.ResponseWriter, _ *http.Request) bool {
						if n >= was+100 || n%29 == 0 {
							return false
						}
						http.Error(w, "too large", http.StatusRequestEntityTooLarge)
						return true
					})
				}
				require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(2000, n)))
			}
			eventually(t, func() bool { return d.samples() == 2000*batches }, "all samples arrive")
			d.requireOrdered(t)
			eventually(t, func() bool { return e.Snapshot().Destinations[0].Outcome.Samples == 2000*batches }, "all samples are counted")
			require.Empty(t, e.Snapshot().Destinations[0].Outcome.Dropped)
			raw, wire := e.destinations[0].Largest()
			require.Zero(t, raw+wire)
		})
	}
}

// TestLargeRequestsAreTriedAgain: a proxy that refused requests because of their size for a while is not remembered for
// ever.
func TestLargeRequestsAreTriedAgain(t *testing.T) {
	const limit = 2 << 10
	largest := 0
	var mu sync.Mutex
	small := true
	d := newReceived(t, func(_ int, w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if small && r.ContentLength > limit {
			http.Error(w, "too large", http.StatusRequestEntityTooLarge)
			return true
		}
		largest = max(largest, int(r.ContentLength))
		return false
	})
	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		c.Endpoint, c.Compression, c.ReprobeInterval = d.URL, snappy, 10*time.Millisecond
	})
	consume := func(n int) {
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(5000, n)))
		eventually(t, func() bool { return d.samples() == 5000*(n+1) }, "all samples arrive")
	}
	consume(0)
	mu.Lock()
	require.LessOrEqual(t, largest, limit)
	small = false
	mu.Unlock()
	n := 1
	for ; ; n++ {
		consume(n)
		if raw, wire := e.destinations[0].Largest(); raw == 0 && wire == 0 {
			break
		}
		require.Less(t, n, 100)
	}
	mu.Lock()
	largest = 0
	mu.Unlock()
	consume(n + 1)
	require.Greater(t, largest, 5*limit)
	d.requireOrdered(t)
	require.Empty(t, e.Snapshot().Destinations[0].Outcome.Dropped)
}
