// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cardinalityprocessor

import (
	"hash/maphash"
	"math"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
)

// Two runs, with GOMAXPROCS=1 and GOMAXPROCS=2, show how dropping and adding up scale: as many senders as CPUs have
// batches ready, each with series of its own, of the same metrics. (-cpu 1,2 does not work: the first run of a
// benchmark with Loop is over before it takes effect.) If the CPUs are also used by others, only CPU time is
// meaningful: the same CPU time per point with two CPUs means 2x, if nothing waited.
const (
	parallelBatches = 20
	parallelPoints  = 1000
)

func benchmarkParallel(b *testing.B, r *rig, k kind) {
	benchmarkTogether(b, r, k, func(md pmetric.Metrics) { _, _ = r.process(b.Context(), md) })
}

// benchmarkTogether makes as many senders as CPUs run do for each of their batches, at the same time. It also reports
// the fastest iteration, which is not disturbed unless others use the CPUs all the time.
func benchmarkTogether(b *testing.B, r *rig, k kind, do func(pmetric.Metrics)) {
	senders := runtime.GOMAXPROCS(0)
	batches := make([][]pmetric.Metrics, senders)
	for i := range batches {
		template := pmetric.NewMetrics()
		appendPoint(template, point{name: "m", kind: k, attrs: attrs{"http.route": "/orders", "sender": int64(i), "id": int64(0)}})
		m := onlyMetricOf(template)
		for j := 1; j < parallelPoints; j++ {
			amount.AppendPointOf(m, m)
			amount.AttributesAt(m, j).PutInt("id", int64(j))
		}
		batches[i] = make([]pmetric.Metrics, parallelBatches)
		batches[i][0] = template
	}
	value, start, points, cpu := int64(0), r.clock, 0, time.Duration(0)
	prepare := func() {
		for _, of := range batches {
			template := pmetric.NewMetrics()
			of[0].CopyTo(template)
			for i := range of {
				of[i] = pmetric.NewMetrics()
				template.CopyTo(of[i])
				for j := range parallelPoints {
					setPoint(onlyMetricOf(of[i]), j, start, r.clock.Add(time.Duration(i)*time.Second), value+int64(i))
				}
			}
		}
		value += parallelBatches
		r.clock = r.clock.Add(parallelBatches * time.Second)
	}
	least, each := time.Duration(math.MaxInt64), senders*parallelBatches*parallelPoints
	for b.Loop() {
		b.StopTimer()
		templates := make([]pmetric.Metrics, senders)
		for i, of := range batches {
			templates[i] = pmetric.NewMetrics()
			of[0].CopyTo(templates[i])
		}
		prepare()
		runtime.GC() // the data's garbage is not the limiter's, and one CPU would collect it while the other works
		b.StartTimer()
		begin, began := cpuTime(b), time.Now()
		var done sync.WaitGroup
		for _, of := range batches {
			done.Go(func() {
				for _, md := range of {
					do(md)
				}
			})
		}
		done.Wait()
		least = min(least, time.Since(began))
		cpu += cpuTime(b) - begin
		b.StopTimer()
		for i, of := range batches {
			of[0] = templates[i]
		}
		points += each
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(points), "ns/point")
	b.ReportMetric(float64(least.Nanoseconds())/float64(each), "least-ns/point")
	b.ReportMetric(float64(cpu.Nanoseconds())/float64(points), "cpu-ns/point")
}

// BenchmarkControlParallel shows how the machine scales, by work without shared data: only computing, and reading the
// same points.
func BenchmarkControlParallel(b *testing.B) {
	for _, c := range []struct {
		name string
		kind kind
		do   func(pmetric.Metrics)
	}{
		{"computing", cumulative, func(pmetric.Metrics) { spin() }},
		{"reading", cumulative, func(md pmetric.Metrics) { hashed.Add(hashAll(md)) }},
		{"reading-histograms", histogram, func(md pmetric.Metrics) { hashed.Add(readAll(md)) }},
	} {
		b.Run(c.name, func(b *testing.B) { benchmarkTogether(b, newRig(b, threeLimits), c.kind, c.do) })
	}
}

var hashed atomic.Uint64 // keeps the work from being optimized away

// readAll reads the values of histograms.
func readAll(md pmetric.Metrics) (sum uint64) {
	for _, dp := range onlyMetricOf(md).Histogram().DataPoints().All() {
		for key, value := range dp.Attributes().All() {
			sum += maphash.String(hashSeed, key) ^ maphash.String(hashSeed, value.Str())
		}
		for _, n := range dp.BucketCounts().All() {
			sum += n
		}
		for _, bound := range dp.ExplicitBounds().All() {
			sum += uint64(bound)
		}
	}
	return sum
}

// spin takes about as long as a batch.
func spin() {
	sum := uint64(1)
	for range 100 * parallelPoints {
		sum = ident.Mix(sum, ident.MixB)
	}
	hashed.Add(sum)
}

// cpuTime returns the CPU time of the process.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkRejectedParallel measures dropped points.
func BenchmarkRejectedParallel(b *testing.B) {
	for _, told := range []bool{false, true} {
		b.Run("statistics="+strconv.FormatBool(told), func(b *testing.B) {
			r := newRig(b, func(c *Config) { threeLimits(c); c.Memory.MaxSeries, c.Statistics.Enabled = 1, told })
			r.send(point{name: "first"})
			benchmarkParallel(b, r, cumulative)
		})
	}
}

// BenchmarkOverflowParallel measures points that are added up.
func BenchmarkOverflowParallel(b *testing.B) {
	for _, told := range []bool{false, true} {
		for name, k := range map[string]kind{"delta": delta, "cumulative": cumulative, "histogram": histogram} {
			b.Run(name+"/statistics="+strconv.FormatBool(told), func(b *testing.B) {
				r := newRig(b, func(c *Config) { overflowing(1)(c); c.Statistics.Enabled = told })
				r.send(point{name: "first"})
				benchmarkParallel(b, r, k)
			})
		}
	}
}
