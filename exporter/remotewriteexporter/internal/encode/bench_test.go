// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package encode

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
	"testing"

	"github.com/golang/snappy"
	contrib "github.com/open-telemetry/opentelemetry-collector-contrib/pkg/translator/prometheusremotewrite"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/internal/racetest"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

// cpuTime returns the CPU time of the process: on a busy machine it is more meaningful than the clock.
func cpuTime(t testing.TB) int64 {
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkKnownPages measures the hot loop: every point is known, and compression is included, except for `raw`.
// `lent` uses metrics whose memory is reused, like those of our receivers. Of a thousand targets with an interval of
// ten seconds, 20 are one batch with a timeout of 200 ms, and 100 one with a timeout of a second; all at once exceed
// the caches.
func BenchmarkKnownPages(b *testing.B) {
	for _, targets := range []int{20, 100, 1000} {
		pages, total := labPages(b, targets)
		raw := block.Format{Version: promwrite.V2, Compression: promwrite.Identity}
		b.Run(fmt.Sprintf("v2/zstd/lent/targets=%d", targets), func(b *testing.B) { benchmarkPages(b, pages, total, v2Zstd, true, nil) })
		b.Run(fmt.Sprintf("v2/raw/lent/targets=%d", targets), func(b *testing.B) { benchmarkPages(b, pages, total, raw, true, nil) })
		for _, f := range []struct {
			name   string
			format block.Format
		}{
			{"v2/zstd", v2Zstd},
			{"v2/zstd2", block.Format{Version: v2Zstd.Version, Compression: v2Zstd.Compression, Level: 2}},
			{"v2/snappy", v2Snappy},
			{"v2/raw", raw},
			{"v1/zstd", v1Zstd},
			{"v1/snappy", v1Snappy},
		} {
			b.Run(fmt.Sprintf("%s/targets=%d", f.name, targets), func(b *testing.B) { benchmarkPages(b, pages, total, f.format, false, nil) })
		}
	}
}

// BenchmarkRules is the same with write_relabel_configs: none, rules that do not use values of resources, those that
// use the job, which all targets share, and those that use the instance, which makes the series of each target its own.
func BenchmarkRules(b *testing.B) {
	pages, total := labPages(b, 100)
	drop := func(regex string, names ...labelName) relabel.Config {
		return rule(relabel.Drop, func(c *relabel.Config) { c.SourceLabels, c.Regex = names, relabel.MustNewRegexp(regex) })
	}
	for _, r := range []struct {
		name  string
		rules []relabel.Config
	}{
		{"none", nil},
		{"names", []relabel.Config{drop("nothing_.*", "__name__"), drop("nowhere;.*", "device", "__name__")}},
		{"job", []relabel.Config{drop("nobody;.*", "job", "__name__")}},
		{"instance", []relabel.Config{drop("nowhere;.*", "instance", "__name__")}},
		{"changed", []relabel.Config{rule(relabel.Replace, func(c *relabel.Config) {
			c.SourceLabels, c.TargetLabel = []labelName{"__name__"}, "copy"
		})}},
	} {
		b.Run("rules="+r.name, func(b *testing.B) {
			before := live()
			e := benchmarkPages(b, pages, total, v2Zstd, false, func(c *Config) { c.Rules = r.rules })
			b.ReportMetric(float64(live()-before)/float64(total), "heapB/series")
			b.ReportMetric(float64(e.Stats().Series), "known")
		})
	}
}

func benchmarkPages(b *testing.B, pages []pmetric.Metrics, total int, f block.Format, lent bool, change func(*Config)) *Encoder {
	e, _ := newEncoder(b, change)
	var blocks []block.Block
	loans := make([]*handback.Loan, len(pages))
	if lent {
		for i := range loans {
			loans[i] = new(handback.Loan)
		}
	}
	round := func() (wire, samples int) {
		for i, md := range pages {
			if lent {
				handback.Lend(context.Background(), loans[i], md)
			}
			if err := e.AddLent(md, "", loans[i]); err != nil {
				b.Fatal(err)
			}
		}
		blocks = e.Flush(0, "", f, blocks[:0])
		for _, bl := range blocks {
			wire += len(bl.Body())
			samples += bl.Samples
		}
		return wire, samples
	}
	for range 3 { // until both buffers and all scratch memory have their size
		round()
	}
	b.ReportAllocs()
	wire, samples := 0, 0
	cpu := cpuTime(b)
	for b.Loop() {
		wire, samples = round()
	}
	if samples != total {
		b.Fatalf("%d samples left of %d", samples, total)
	}
	b.ReportMetric(float64(cpuTime(b)-cpu)/float64(b.N)/float64(samples), "cpu-ns/sample")
	b.ReportMetric(float64(wire)/float64(samples), "wireB/sample")
	return e
}

// BenchmarkLargePage encodes one page of 310,000 known points in requests of several sizes: each repeats the symbols.
func BenchmarkLargePage(b *testing.B) {
	const pods, width = 5000, 62
	md := clusterPage(pods, width)
	for _, size := range []int{25_000, 50_000, 100_000, pods * width} {
		b.Run(fmt.Sprintf("samples=%d", size), func(b *testing.B) {
			e, _ := newEncoder(b, func(c *Config) {
				c.MaxSamples, c.MaxRawBytes, c.MaxCompressedBytes = size, 64<<20, 64<<20
			})
			var blocks []block.Block
			round := func() (raw, wire, samples int) {
				if err := e.Add(md, ""); err != nil {
					b.Fatal(err)
				}
				blocks = e.Flush(0, "", v2Zstd, blocks[:0])
				for _, bl := range blocks {
					raw += bl.RawSize
					wire += len(bl.Body())
					samples += bl.Samples
				}
				return raw, wire, samples
			}
			for range 3 {
				round()
			}
			b.ReportAllocs()
			raw, wire, samples := 0, 0, 0
			cpu := cpuTime(b)
			for b.Loop() {
				raw, wire, samples = round()
			}
			if samples != pods*width {
				b.Fatalf("%d samples left of %d", samples, pods*width)
			}
			b.ReportMetric(float64(cpuTime(b)-cpu)/float64(b.N)/float64(samples), "cpu-ns/sample")
			b.ReportMetric(float64(raw)/float64(samples), "rawB/sample")
			b.ReportMetric(float64(wire)/float64(samples), "wireB/sample")
		})
	}
}

// BenchmarkContrib measures contrib's translation of the same pages, marshalled and compressed like in its exporter.
func BenchmarkContrib(b *testing.B) {
	pages, total := labPages(b, 100)
	for _, f := range []struct {
		name string
		page func(pmetric.Metrics) (wire, samples int)
	}{
		{"v2", contribV2},
		{"v1", contribV1},
	} {
		b.Run(f.name, func(b *testing.B) {
			b.ReportAllocs()
			wire, samples := 0, 0
			cpu := cpuTime(b)
			for b.Loop() {
				wire, samples = 0, 0
				for _, md := range pages {
					w, s := f.page(md)
					wire += w
					samples += s
				}
			}
			if samples < total {
				b.Fatalf("%d samples left of %d", samples, total)
			}
			b.ReportMetric(float64(cpuTime(b)-cpu)/float64(b.N)/float64(samples), "cpu-ns/sample")
			b.ReportMetric(float64(wire)/float64(samples), "wireB/sample")
		})
	}
}

func contribV2(md pmetric.Metrics) (wire, samples int) {
	list, symbols, err := contrib.FromMetricsV2(md, contrib.Settings{AddMetricSuffixes: true, DisableScopeInfo: true})
	if err != nil {
		return 0, 0
	}
	r := writev2.Request{Symbols: symbols.Symbols()}
	for _, ts := range list {
		r.Timeseries = append(r.Timeseries, *ts)
		samples += len(ts.Samples)
	}
	raw, err := r.Marshal()
	if err != nil {
		return 0, 0
	}
	return len(snappy.Encode(nil, raw)), samples
}

func contribV1(md pmetric.Metrics) (wire, samples int) {
	list, err := contrib.FromMetrics(md, contrib.Settings{AddMetricSuffixes: true, DisableScopeInfo: true})
	if err != nil {
		return 0, 0
	}
	var r prompb.WriteRequest
	for _, ts := range list {
		r.Timeseries = append(r.Timeseries, *ts)
		samples += len(ts.Samples)
	}
	raw, err := r.Marshal()
	if err != nil {
		return 0, 0
	}
	return len(snappy.Encode(nil, raw)), samples
}

// TestFarCheaperThanContrib compares something that does not depend on the machine: the bytes allocated for the same
// pages.
func TestFarCheaperThanContrib(t *testing.T) {
	racetest.Sequential(t)
	pages, _ := labPages(t, 20)
	allocated := func(f func()) uint64 {
		f()
		f()
		least := ^uint64(0)
		for range 3 {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			f()
			runtime.ReadMemStats(&after)
			least = min(least, after.TotalAlloc-before.TotalAlloc)
		}
		return least
	}
	e, _ := newEncoder(t, nil)
	var blocks []block.Block
	ours := allocated(func() {
		for _, md := range pages {
			require.NoError(t, e.Add(md, ""))
		}
		blocks = e.Flush(0, "", v2Zstd, blocks[:0])
	})
	theirs := allocated(func() {
		for _, md := range pages {
			contribV2(md)
		}
	})
	t.Logf("%d bytes allocated, contrib %d", ours, theirs)
	require.Less(t, 20*ours, theirs)
}
