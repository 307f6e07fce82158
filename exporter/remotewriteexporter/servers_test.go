// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

// knowsLittle responds with a code to everything except 1.0 with snappy.
func knowsLittle(code int) func(int, http.ResponseWriter, *http.Request) bool {
	return func(_ int, w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Content-Type") == "application/x-protobuf" && r.Header.Get("Content-Encoding") == snappy {
			return false
		}
		http.Error(w, "no thanks", code)
		return true
	}
}

// TestServersOfTwoVersionsBehindOneAddressLoseNothing: what one of them refuses is accepted by another one, or by
// itself in another format.
func TestServersOfTwoVersionsBehindOneAddressLoseNothing(t *testing.T) {
	for _, code := range []int{400, 404, 406, 415, 422, 500} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			r, old := rand.New(rand.NewPCG(uint64(code), 1)), knowsLittle(code)
			d := newReceived(t, nil)
			d.setAnswer(func(n int, w http.ResponseWriter, request *http.Request) bool {
				d.mu.Lock()
				isOld := n > 0 && r.IntN(2) == 0
				d.mu.Unlock()
				return isOld && old(n, w, request)
			})
			e := start(t, componenttest.NewNopHost(), func(c *Config) { c.Endpoint = d.URL })
			const batches = 60
			for n := range batches {
				require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, n)))
				eventually(t, func() bool { return d.samples() == 10*(n+1) }, "the samples arrive")
			}
			d.requireOrdered(t)
			eventually(t, func() bool { return e.Snapshot().Destinations[0].Outcome.Samples == 10*batches }, "all samples are counted")
			require.Empty(t, e.Snapshot().Destinations[0].Outcome.Dropped)
		})
	}
}

// TestAServerThatGoesBackLosesNothing: if another server with fewer formats replaces it, a few requests show that.
func TestAServerThatGoesBackLosesNothing(t *testing.T) {
	for _, code := range []int{400, 415, 422} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			d := newReceived(t, nil)
			e := start(t, componenttest.NewNopHost(), func(c *Config) { c.Endpoint = d.URL })
			for n := range 60 {
				if n == 20 {
					d.setAnswer(knowsLittle(code))
				}
				require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, n)))
				eventually(t, func() bool { return d.samples() == 10*(n+1) }, "the samples arrive")
			}
			d.requireOrdered(t)
			eventually(t, func() bool { return e.Snapshot().Destinations[0].Outcome.Samples == 600 }, "all samples are counted")
			o := e.Snapshot().Destinations[0].Outcome
			require.Empty(t, o.Dropped)
			require.Less(t, o.Requests[code], int64(6))
			require.Equal(t, 3, e.Snapshot().Destinations[0].Fallback)
		})
	}
}

// TestBadContentIsSentTwiceAtTheMost: a destination that only knows 2.0, and refuses a bad block, does not get it for
// ever, however it responds to 1.0; and the first response counts.
func TestBadContentIsSentTwiceAtTheMost(t *testing.T) {
	for _, code := range []int{400, 404, 405, 415, 500} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			d := newReceived(t, nil)
			d.setAnswer(func(_ int, w http.ResponseWriter, r *http.Request) bool {
				if r.Header.Get("Content-Type") == "application/x-protobuf" {
					http.Error(w, "what is that", code)
					return true
				}
				series, err := decode(r)
				isBad := err != nil || slices.ContainsFunc(series[0].Samples, func(s promwrite.Sample) bool { return s.Value == 3 })
				if isBad {
					http.Error(w, "out of order", http.StatusBadRequest)
				}
				return isBad
			})
			e := start(t, componenttest.NewNopHost(), func(c *Config) { c.Endpoint = d.URL })
			for n := range 6 {
				require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, n)))
				eventually(t, func() bool {
					o := e.Snapshot().Destinations[0].Outcome
					return o.Samples+o.Dropped["rejected"] == int64(10*(n+1))
				}, "the block's fate is sealed")
			}
			require.Equal(t, 50, d.samples())
			require.Zero(t, e.Snapshot().Destinations[0].Fallback)
			o := e.Snapshot().Destinations[0].Outcome
			require.Equal(t, map[string]int64{"rejected": 10}, o.Dropped)
			require.LessOrEqual(t, len(d.headers()), 6+3)
		})
	}
}

// TestATenantForWhomAllIsTooLargeSlowsDownNoOther: the requests of the others keep their size.
func TestATenantForWhomAllIsTooLargeSlowsDownNoOther(t *testing.T) {
	d, _ := refusing(t, http.StatusRequestEntityTooLarge)
	e := start(t, componenttest.NewNopHost(), byMetadata(d.URL))
	for n := range 10 {
		require.NoError(t, e.ConsumeMetrics(of("good"), gauges(2000, n)))
		eventually(t, func() bool { return d.samples() == 2000*(n+1) }, "the data of the other arrives")
		require.NoError(t, e.ConsumeMetrics(of("bad"), gauges(1000, n)))
		eventually(t, func() bool { return e.Snapshot().Destinations[0].Outcome.Dropped["too_large"] == int64(1000*(n+1)) }, "it is given up")
	}
	raw, wire := e.destinations[0].Largest()
	require.Zero(t, raw+wire)
	good, refused := 0, 0
	for _, h := range d.headers() {
		if h.Get("X-Scope-Orgid") == "good" {
			good++
		} else {
			refused++
		}
	}
	require.Equal(t, 10, good)
	t.Logf("%d requests of the tenant were refused", refused)
}

// TestTenantsThatGetNoAnswerHoldUpNoOther, although there are more of them than senders, and each has data in every
// shard.
func TestTenantsThatGetNoAnswerHoldUpNoOther(t *testing.T) {
	var served atomic.Bool
	d := newReceived(t, func(_ int, _ http.ResponseWriter, r *http.Request) bool {
		if served.Load() || r.Header.Get("X-Scope-Orgid") == "good" {
			return false
		}
		_, _ = io.Copy(io.Discard, r.Body) // otherwise a closed connection is not noticed
		<-r.Context().Done()
		return true
	})
	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		byMetadata(d.URL)(c)
		c.Timeout = 300 * time.Millisecond
		c.Shards = ShardsConfig{Min: 2, Max: 4}
		c.Retry.InitialInterval, c.Retry.MaxInterval = c.Timeout, c.Timeout
	})
	require.NoError(t, e.ConsumeMetrics(of("good"), gauges(10, 0)))
	eventually(t, func() bool { return d.samples() == 10 }, "the first data arrives")
	const tenants, rounds = 12, 20
	for n := 1; n <= rounds; n++ {
		for i := range tenants {
			require.NoError(t, e.ConsumeMetrics(of(fmt.Sprint("silent ", i)), gauges(10, n)))
		}
		require.NoError(t, e.ConsumeMetrics(of("good"), gauges(10, n)))
		eventually(t, func() bool { return d.samples() == 10*(n+1) }, "the data of the other arrives")
		require.False(t, e.Snapshot().Destinations[0].BreakerOpen)
	}
	served.Store(true)
	eventually(t, func() bool { return d.samples() == 10+10*rounds*(tenants+1) }, "what waited arrives")
	eventually(t, func() bool { return e.Snapshot().Destinations[0].QueuedBlocks == 0 }, "nothing is left")
	require.Empty(t, e.Snapshot().Destinations[0].Outcome.Dropped)
}
