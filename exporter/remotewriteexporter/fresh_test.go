// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/godwit-otel/godwit/internal/racetest"
)

// TestFreshDataIsFirstAfterAnOutage: new data arrives within a second or two, while the data of ten minutes still
// waits; in the end everything has arrived once.
func TestFreshDataIsFirstAfterAnOutage(t *testing.T) {
	for name, storage := range map[string]any{"memory": nil, "disk": storageID.String()} {
		t.Run(name, func(t *testing.T) {
			if storage == nil {
				racetest.SmallerIn(t, "TestAnOutageIsCaughtUpWithFast")
			}
			directory := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				d := &received{t: t, series: map[string][]point{}}
				host := newFiles(t, directory, nil)
				host[wayID] = &way{to: d, roundTrip: 200 * time.Millisecond}
				e := start(t, host, func(c *Config) {
					scaled(c)
					c.Endpoint, c.Shards.Max = "http://far.example.com", 1
					c.Queue.FreshFirstAfter = time.Minute
					require.NoError(t, confmap.NewFromStringMap(map[string]any{
						"http::auth::authenticator": wayID.String(), "queue::storage": storage,
						"compression": snappy,
					}).Unmarshal(c))
				})
				n := 0
				fly := func(seconds int) {
					for range seconds {
						md := gauges(flockSize, 1000*n)
						go func() { _ = e.ConsumeMetrics(t.Context(), md) }() // may wait for the storage
						time.Sleep(time.Second)
						n++
					}
				}
				d.fail(http.StatusServiceUnavailable)
				fly(600)
				began := n
				d.recover()
				for arrived := false; !arrived; {
					fly(1)
					require.Less(t, n, began+20, "the breaker's pause, and a second or two")
					d.mu.Lock()
					for _, points := range d.series {
						arrived = arrived || slices.ContainsFunc(points, func(p point) bool { return p.time >= gaugeTime(1000*began) })
					}
					d.mu.Unlock()
				}
				require.Greater(t, n*flockSize-d.samples(), 300*flockSize, "most of what waited still does")
				fly(60)
				time.Sleep(2 * time.Second)
				require.Equal(t, n*flockSize, d.samples())
				d.mu.Lock()
				defer d.mu.Unlock()
				for key, points := range d.series {
					require.Len(t, points, n, key)
					slices.SortFunc(points, func(a, b point) int { return int(a.time - b.time) })
					for i := 1; i < len(points); i++ {
						require.Equal(t, points[i-1].time+1000, points[i].time, key)
					}
				}
			})
		})
	}
}

// gaugeTime returns the time of a point of gauges, in milliseconds.
func gaugeTime(n int) int64 { return 1_700_000_000_000 + int64(n) }
