// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/alloctest"
	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/internal/slab"
	"github.com/godwit-otel/godwit/receiver/remotewritereceiver/internal/admission"
)

// nodes returns a request like those of agents: some targets, each with the same series.
func nodes(targets, series int) *writev2.Request { return nodesFrom(0, targets, series) }

func nodesFrom(first, targets, series int) *writev2.Request {
	req := newV2()
	for target := first; target < first+targets; target++ {
		for i := range series {
			req.series(sample(float64(i)+0.5, 1_700_000_000_000, 1_699_000_000_000), counter, "Seconds the CPUs spent in each mode.", "",
				"__name__", fmt.Sprintf("node_%d_total", i/10), "cluster", "eu-1", "cpu", fmt.Sprint(i%10),
				"instance", fmt.Sprintf("node-%d:9100", target), "job", "node", "mode", "idle", "region", "eu", "zone", "a")
		}
	}
	return &req.Request
}

// BenchmarkReceiver sends the same request through a socket repeatedly.
func BenchmarkReceiver(b *testing.B) {
	const targets, series = 20, 500
	body, err := nodes(targets, series).Marshal()
	require.NoError(b, err)
	for _, encoding := range []promwrite.Encoding{promwrite.Snappy, promwrite.Zstd} {
		b.Run("encoding="+encoding.String(), func(b *testing.B) {
			var points atomic.Int64
			next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
				points.Add(int64(md.DataPointCount()))
				return nil
			})
			require.NoError(b, err)
			url, wire := start(b, settings(), next), compress(b, encoding, body)
			client := http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			b.ReportAllocs()
			for b.Loop() {
				req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(wire))
				require.NoError(b, err)
				req.Header.Set("Content-Type", promwrite.ContentTypeV2)
				req.Header.Set("Content-Encoding", encoding.String())
				resp, err := client.Do(req)
				require.NoError(b, err)
				require.NoError(b, resp.Body.Close())
				require.Equal(b, http.StatusNoContent, resp.StatusCode)
			}
			require.Equal(b, int64(b.N)*targets*series, points.Load())
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(points.Load()), "ns/sample")
		})
	}
}

// The garbage of a request is the metrics it became. If their memory is reused, there is none.
func TestTranslationAllocatesByTheMetricsItMakes(t *testing.T) {
	body, err := nodes(2, 500).Marshal()
	require.NoError(t, err)
	for _, reused := range []bool{false, true} {
		if reused && (!slab.Places() || handback.Poisons()) {
			continue // in this build points have attributes of their own
		}
		w, err := newWorker(sized(1<<20), newKnown(1<<20, reused))
		require.NoError(t, err)
		held := admission.New(64 << 20).Held()
		into := newTree(reused)
		work := func() pmetric.Metrics {
			if !reused {
				into = newTree(false)
			}
			b, err := w.work(t.Context(), promwrite.V2, promwrite.Identity, body, &held, nil, into)
			require.NoError(t, err)
			require.Equal(t, 1000, b.metrics.DataPointCount())
			require.Equal(t, reused, b.tree.takeBack())
			held.Done()
			return b.metrics
		}
		var md pmetric.Metrics
		for range 5 { // after which series in the same order are known
			md = work()
		}
		total := alloctest.PerRun(func() { work() })
		metrics := alloctest.PerRun(func() { md.CopyTo(pmetric.NewMetrics()) })
		switch {
		case reused:
			require.Less(t, total, 30.)
		case slab.Places():
			require.Less(t, total, metrics/2)
		default: // one by one
			require.Less(t, total, metrics*1.25)
		}
		runtime.KeepAlive(md)
	}
}

// BenchmarkWork measures samples of known series from snappy-compressed bytes to metrics, and back: four targets per
// request, in turn. With parts whose values are left unwritten, points are not written, and not read. The time of
// snappy is reported separately, for comparison between machines.
func BenchmarkWork(b *testing.B) {
	const perRequest, series = 4, 500
	for _, version := range []promwrite.Version{promwrite.V1, promwrite.V2} {
		for _, targets := range []int{4, 20, 100, 1000} {
			for _, defers := range []bool{false, slab.Places()} {
				b.Run(fmt.Sprintf("version=%s/targets=%d/defers=%t", version, targets, defers), func(b *testing.B) {
					var bodies [][]byte
					for first := 0; first < targets; first += perRequest {
						bodies = append(bodies, compress(b, promwrite.Snappy, bodyOf(version, nodesFrom(first, perRequest, series))))
					}
					w, err := newWorker(sized(8<<20), newKnown(8<<20, slab.Places()))
					require.NoError(b, err)
					held, into := admission.New(256<<20).Held(), newTree(slab.Places())
					into.mayDefer = defers
					n := 0
					work := func() {
						got, err := w.work(b.Context(), version, promwrite.Snappy, bodies[n%len(bodies)], &held, nil, into)
						n++
						require.NoError(b, err)
						require.Equal(b, perRequest*series, got.written.Samples)
						handback.LoanOf(into.lend(b.Context(), got.written.Samples), got.metrics).Defers()
						require.True(b, into.takeBack() || !slab.Places())
						if !slab.Places() {
							into = newTree(false)
						}
						held.Done()
					}
					for range 2 * len(bodies) {
						work()
					}
					b.ReportAllocs()
					for b.Loop() {
						work()
					}
					perSample := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / float64(b.N) / perRequest / series }
					all := perSample(b.Elapsed())
					begun := time.Now()
					for i := range b.N {
						_, err := w.decompressor.Decompress(w.plain, promwrite.Snappy, bodies[i%len(bodies)])
						require.NoError(b, err)
					}
					b.ReportMetric(all, "ns/sample")
					b.ReportMetric(perSample(time.Since(begun)), "snappy-ns/sample")
				})
			}
		}
	}
}
