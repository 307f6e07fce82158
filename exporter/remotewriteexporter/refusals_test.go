// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.uber.org/zap/zaptest/observer"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

func TestPoisonIsDroppedAndCountedAndBlocksNothing(t *testing.T) {
	for name, code := range map[string]int{"400": 400, "410": 410, "409": 409, "422": 422} {
		t.Run(name, func(t *testing.T) {
			d := newReceived(t, func(_ int, w http.ResponseWriter, r *http.Request) bool {
				series, err := decode(r)
				isBad := err != nil || slices.ContainsFunc(series[0].Samples, func(s promwrite.Sample) bool { return s.Value == 1 })
				if isBad {
					http.Error(w, "out of order", code)
				}
				return isBad
			})
			e := start(t, componenttest.NewNopHost(), func(c *Config) { c.Endpoint = d.URL })
			for n := range 3 {
				require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, n)))
				eventually(t, func() bool {
					o := e.Snapshot().Destinations[0].Outcome
					return o.Samples+o.Dropped["rejected"] == int64(10*(n+1))
				}, "the block's fate is sealed")
			}
			require.Equal(t, 20, d.samples())
			require.Equal(t, map[string]int64{"rejected": 10}, e.Snapshot().Destinations[0].Outcome.Dropped)
		})
	}
}

// Blocks that were sent together are sent one by one if the destination refuses them as a whole.
func TestRefusalsOfSeveralBlocksSealTheFateOfEach(t *testing.T) {
	const blocks, size = 6, 1000
	for name, test := range map[string]struct {
		refuse  func(r *http.Request) int
		arrives int
		dropped map[string]int64
	}{
		"poison": {func(r *http.Request) int {
			series, err := decode(r)
			for i := range series {
				if err != nil || slices.ContainsFunc(series[i].Samples, func(s promwrite.Sample) bool { return s.Value == 3 }) {
					return http.StatusBadRequest
				}
			}
			return 0
		}, (blocks - 1) * size, map[string]int64{"rejected": size}},
		"too large": {func(r *http.Request) int {
			if r.ContentLength > 10<<10 {
				return http.StatusRequestEntityTooLarge
			}
			return 0
		}, blocks * size, map[string]int64{}},
	} {
		t.Run(name, func(t *testing.T) {
			release, largest := make(chan struct{}), 0
			d := newReceived(t, func(n int, w http.ResponseWriter, r *http.Request) bool {
				if n == 0 {
					<-release
					return false
				}
				if series, err := decode(r); err == nil {
					largest = max(largest, len(series))
				}
				code := test.refuse(r)
				if code != 0 {
					http.Error(w, "no thanks", code)
				}
				return code != 0
			})
			e := start(t, componenttest.NewNopHost(), func(c *Config) {
				c.Endpoint, c.Compression, c.Batch.Timeout = d.URL, snappy, time.Millisecond
			})
			for n := range blocks {
				md := gauges(size, n)
				points := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints()
				for i := range points.Len() {
					points.At(i).SetDoubleValue(float64(n))
				}
				require.NoError(t, e.ConsumeMetrics(t.Context(), md))
				eventually(t, func() bool { return e.Snapshot().Destinations[0].QueuedBlocks == n+1 }, "the block is queued")
			}
			close(release)
			eventually(t, func() bool { return e.Snapshot().Destinations[0].QueuedBlocks == 0 }, "the fate of all is sealed")
			require.Equal(t, test.arrives, d.samples())
			require.Equal(t, test.dropped, e.Snapshot().Destinations[0].Outcome.Dropped)
			d.requireOrdered(t)
			require.Equal(t, (blocks-1)*size, largest, "they went together first")
		})
	}
}

// TestWhatWasWrittenTogetherIsNotSentAgain: a destination that writes all but one sample of several blocks that were
// sent together reports what it has. Single blocks would be older than the data it has already, and would be counted as
// lost.
func TestWhatWasWrittenTogetherIsNotSentAgain(t *testing.T) {
	const blocks, size = 6, 100
	for _, message := range []string{"1.0", auto} {
		t.Run(message, func(t *testing.T) {
			release := make(chan struct{})
			var d *received
			d = newReceived(t, func(n int, w http.ResponseWriter, r *http.Request) bool {
				if n == 0 {
					<-release
					return false
				}
				written, err := d.take(r)
				if err != nil {
					http.Error(w, err.Error(), http.StatusInternalServerError)
					return true
				}
				written.Samples-- // one was too old
				written.SetHeaders(w.Header())
				http.Error(w, "out of order sample", http.StatusBadRequest)
				return true
			})
			e := start(t, componenttest.NewNopHost(), func(c *Config) {
				c.Endpoint, c.Compression, c.ProtobufMessage, c.Batch.Timeout = d.URL, snappy, message, time.Millisecond
			})
			for n := range blocks {
				require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(size, n)))
				eventually(t, func() bool { return e.Snapshot().Destinations[0].QueuedBlocks == n+1 }, "the block is queued")
			}
			close(release)
			eventually(t, func() bool { return e.Snapshot().Destinations[0].QueuedBlocks == 0 }, "the fate of all is sealed")
			o := e.Snapshot().Destinations[0].Outcome
			require.Equal(t, map[string]int64{"rejected": 1}, o.Dropped)
			require.Equal(t, int64(blocks*size-1), o.Samples)
			require.Len(t, d.headers(), 2)
			d.requireOrdered(t)
		})
	}
}

func TestWhatWasNotWrittenIsCounted(t *testing.T) {
	for name, test := range map[string]struct {
		code   int
		reason string
	}{"partial 2xx": {http.StatusNoContent, "partial"}, "partial 400": {http.StatusBadRequest, "rejected"}} {
		t.Run(name, func(t *testing.T) {
			d := newReceived(t, status(1, test.code, "X-Prometheus-Remote-Write-Samples-Written", "7"))
			e := start(t, componenttest.NewNopHost(), func(c *Config) { c.Endpoint = d.URL })
			require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 0)))
			eventually(t, func() bool { return e.Snapshot().Destinations[0].Outcome.Samples == 7 }, "what was written is counted")
			require.Equal(t, map[string]int64{test.reason: 3}, e.Snapshot().Destinations[0].Outcome.Dropped)
		})
	}
}

// TestTheLogSaysThatWhatIsRefusedMayBeThere: Prometheus refuses a request that it wrote before, and whose answer was lost,
// as out of order.
func TestTheLogSaysThatWhatIsRefusedMayBeThere(t *testing.T) {
	for name, isRepeated := range map[string]bool{"first attempt": false, "repeated": true} {
		t.Run(name, func(t *testing.T) {
			d := newReceived(t, func(n int, w http.ResponseWriter, r *http.Request) bool {
				if n == 0 && isRepeated {
					return resets(1, true)(n, w, r)
				}
				w.Header().Set("X-Prometheus-Remote-Write-Samples-Written", "1")
				http.Error(w, "out of order sample", http.StatusBadRequest)
				return true
			})
			e, _, logs := instrumentedOn(t, componenttest.NewNopHost(), d.URL, func(*Config) {})
			require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 0)))
			lost := func() []observer.LoggedEntry { return logs.FilterMessageSnippet("lost data of a block").All() }
			eventually(t, func() bool { return len(lost()) == 1 }, "it is logged")
			_, says := lost()[0].ContextMap()["or not"]
			require.Equal(t, isRepeated, says)
		})
	}
}
