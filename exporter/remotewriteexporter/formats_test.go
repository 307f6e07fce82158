// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

func TestFormatsAreTriedInOrder(t *testing.T) {
	d := newReceived(t, status(3, http.StatusUnsupportedMediaType))
	e := start(t, componenttest.NewNopHost(), func(c *Config) { c.Endpoint = d.URL })
	for n := range 2 {
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, n)))
		eventually(t, func() bool { return d.samples() == 10*(n+1) }, "the samples arrive")
	}
	var got []string
	for _, h := range d.headers() {
		got = append(got, h.Get("X-Prometheus-Remote-Write-Version")+h.Get("X-Victoriametrics-Remote-Write-Version")+" "+h.Get("Content-Encoding"))
	}
	require.Equal(t, []string{"2.0.0 zstd", "2.0.0 snappy", "1 zstd", "0.1.0 snappy", "0.1.0 snappy"}, got)
	require.Equal(t, 3, e.Snapshot().Destinations[0].Fallback)
}

// TestServersThatFailAtFormats: however a destination responds to a format that it does not know, every sample arrives.
func TestServersThatFailAtFormats(t *testing.T) {
	for _, code := range []int{400, 404, 406, 415, 422, 500, 501, 502} {
		for name, unknown := range map[string]func(http.Header) bool{
			"zstd":            func(h http.Header) bool { return h.Get("Content-Encoding") == zstd },
			"the new version": func(h http.Header) bool { return h.Get("X-Prometheus-Remote-Write-Version") == "2.0.0" },
			"all but 1.0 with snappy": func(h http.Header) bool {
				return h.Get("Content-Encoding") == zstd || h.Get("X-Prometheus-Remote-Write-Version") == "2.0.0"
			},
		} {
			t.Run(fmt.Sprint(code, " ", name), func(t *testing.T) {
				t.Parallel()
				d := newReceived(t, func(_ int, w http.ResponseWriter, r *http.Request) bool {
					if unknown(r.Header) {
						http.Error(w, "no idea", code)
					}
					return unknown(r.Header)
				})
				e := start(t, componenttest.NewNopHost(), func(c *Config) { c.Endpoint = d.URL })
				for n := range 5 {
					require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, n)))
				}
				eventually(t, func() bool { return d.samples() == 50 }, "all samples arrive")
				eventually(t, func() bool { return e.Snapshot().Destinations[0].QueuedBlocks == 0 }, "nothing is left")
				require.Empty(t, e.Snapshot().Destinations[0].Outcome.Dropped)
				d.requireOrdered(t)
			})
		}
	}
}

func TestBetterFormatsAreProbedAgain(t *testing.T) {
	d := newReceived(t, status(3, http.StatusUnsupportedMediaType))
	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		c.Endpoint = d.URL
		c.ReprobeInterval = 50 * time.Millisecond
	})
	n := 0
	eventually(t, func() bool {
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, n)))
		n++
		return e.Snapshot().Destinations[0].Fallback == 0 && d.samples() > 0 &&
			d.headers()[len(d.headers())-1].Get("Content-Encoding") == zstd
	}, "the best format is spoken again")
	eventually(t, func() bool { return d.samples() == 10*n }, "nothing is lost")
	d.requireOrdered(t)
}

func TestPinnedFormatIsKept(t *testing.T) {
	d := newReceived(t, func(_ int, w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusNoContent)
		return true
	})
	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		c.Endpoint, c.ProtobufMessage, c.Compression = d.URL, "2.0", snappy
	})
	require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 0)))
	eventually(t, func() bool { return e.Snapshot().Destinations[0].Outcome.Dropped["unwritten"] == 10 }, "a 2xx without counts is none")
	require.Len(t, d.headers(), 1)
}

// TestWhatAFormatCannotSayIsCountedOnce: 1.0 has no histograms with custom buckets. They are lost, and everything else
// is delivered, whether or not the destination reports what it has written.
func TestWhatAFormatCannotSayIsCountedOnce(t *testing.T) {
	for _, counts := range []bool{false, true} {
		t.Run(fmt.Sprint("it counts: ", counts), func(t *testing.T) {
			var d *received
			d = newReceived(t, func(_ int, w http.ResponseWriter, r *http.Request) bool {
				if r.Header.Get("Content-Type") == promwrite.ContentTypeV2 {
					w.WriteHeader(http.StatusUnsupportedMediaType)
					return true
				}
				written, err := d.take(r)
				if err != nil {
					t.Error(err)
				}
				if counts {
					written.Samples--
					written.SetHeaders(w.Header())
				}
				w.WriteHeader(http.StatusNoContent)
				return true
			})
			e, tel, _ := instrumented(t, d.URL, func(c *Config) { c.Points.ConvertExplicitHistogramsToNHCB = true })
			md := gauges(10, 0)
			for i := range 3 {
				m := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().AppendEmpty()
				m.SetName(fmt.Sprint("latency_", i))
				h := m.SetEmptyHistogram()
				h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
				p := h.DataPoints().AppendEmpty()
				p.SetTimestamp(md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).Timestamp())
				p.SetCount(1)
				p.ExplicitBounds().FromRaw([]float64{1})
				p.BucketCounts().FromRaw([]uint64{1, 0})
			}
			require.NoError(t, e.ConsumeMetrics(t.Context(), md))
			eventually(t, func() bool { return d.samples() == 10 && e.Snapshot().Destinations[0].QueuedBlocks == 0 }, "it arrives")
			wrote, dropped := 10, map[string]int64{"format": 3}
			if counts {
				wrote, dropped = 9, map[string]int64{"format": 3, "partial": 1}
			}
			got := e.Snapshot().Destinations[0].Outcome
			require.EqualValues(t, wrote, got.Samples)
			require.Zero(t, got.Histograms)
			require.Equal(t, dropped, got.Dropped)
			require.InDelta(t, wrote, value(t, tel, "otelcol_exporter_sent_metric_points"), 0)
			require.InDelta(t, 13-wrote, value(t, tel, "otelcol_exporter_send_failed_metric_points"), 0)
		})
	}
}
