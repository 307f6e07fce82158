// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/prometheus/prompb/io/prometheus/client"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/racetest"
)

// The default limits, divided by the same factor.
const (
	hostileBody   = 256 << 20 / 128
	hostileMemory = 2 << 30 / 128
)

// A worst is a kind of page with a high cost for its length. Its lines are numbered across pages.
type worst struct {
	name, media string
	head, tail  string
	line        func(i int) string
	passes      bool // it stays below the limit
}

func (w worst) page(first, length int) []byte {
	b := []byte(w.head)
	for i := first; len(b) < length-len(w.tail); i++ {
		b = append(b, w.line(i)...)
	}
	return append(b, w.tail...)
}

func framed(f *dto.MetricFamily) string {
	b, err := f.Marshal()
	if err != nil {
		panic(err)
	}
	return string(append(binary.AppendUvarint(nil, uint64(len(b))), b...))
}

// nativeOf returns a histogram with this many adjacent buckets, and one at a distance.
func nativeOf(name string, buckets int, gap int32) string {
	deltas := make([]int64, buckets+1)
	deltas[0] = 1 // the same count in all of them
	h := &dto.Histogram{
		SampleCount: uint64(buckets), SampleSum: 1, Schema: 1, ZeroThreshold: 1,
		PositiveSpan:  []dto.BucketSpan{{Length: uint32(buckets)}, {Offset: gap, Length: 1}},
		PositiveDelta: deltas,
	}
	return framed(&dto.MetricFamily{Name: name, Type: dto.MetricType_HISTOGRAM, Metric: []dto.Metric{{Histogram: h}}})
}

// counters returns a family of n counters with a label.
func counters(name string, n int) string {
	f := &dto.MetricFamily{Name: name, Type: dto.MetricType_COUNTER}
	for i := range n {
		f.Metric = append(f.Metric, dto.Metric{Label: []dto.LabelPair{{Name: "a", Value: fmt.Sprintf("%x", i)}}, Counter: &dto.Counter{Value: 1}})
	}
	return framed(f)
}

func labelsOf(first, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "l%x=\"v\",", first*n+i)
	}
	return b.String()
}

var worsts = func() []worst {
	f := func(format string, n int) func(int) string {
		return func(i int) string {
			args := make([]any, n)
			for k := range args {
				args[k] = i
			}
			return fmt.Sprintf(format, args...)
		}
	}
	const om, pb = typeOM, typeProto
	return []worst{
		{name: "names", line: f("m%x 1\n", 1)},
		{name: "names with types", line: f("# TYPE m%x gauge\nm%x 1\n", 2)},
		{name: "types", line: f("# TYPE m%x gauge\n", 1)},
		{name: "helps", line: f("# HELP m%x h\n", 1)},
		{name: "helps of one metric", line: f("# HELP m h%x\n", 1)},
		{name: "values", line: f("a{b=\"%x\"} 1\n", 1)},
		{name: "labels", line: f("a{b%x=\"c\"} 1\n", 1)},
		{name: "one series", line: f("a 1\n", 0)},
		{name: "one series at many times", line: f("a 1 %d\n", 1)},
		{name: "series of many labels", line: func(i int) string { return "a{" + labelsOf(i, 10_000) + "} 1\n" }},
		{name: "series of many labels, the same", line: func(i int) string { return fmt.Sprintf("a{%sx=\"%d\"} 1\n", labelsOf(0, 1000), i) }},
		{name: "scopes", line: f("a{otel_scope_name=\"%x\"} 1\n", 1)},
		{name: "targets", line: f("target_info{a=\"%x\"} 1\n", 1)},
		{name: "buckets of a histogram", head: "# TYPE h histogram\nh_count 1\n", line: f("h_bucket{le=\"%d\"} 1\n", 1)},
		{name: "histograms", head: "# TYPE h histogram\n", line: f("h_count{b=\"%x\"} 1\n", 1)},
		{name: "quantiles", head: "# TYPE s summary\n", line: f("s{b=\"%x\",quantile=\"1\"} 1\ns_count{b=\"%x\"} 1\n", 2)},
		{name: "since when", media: om, head: "# TYPE c counter\n", tail: "# EOF\n", line: f("c_total{b=\"%x\"} 1\nc_created{b=\"%x\"} 1\n", 2)},
		{name: "exemplars", media: om, head: "# TYPE a counter\n", tail: "# EOF\n", line: f("a_total 1 # {} 1\n", 0)},
		{name: "exemplars with labels", media: om, head: "# TYPE a counter\n", tail: "# EOF\n", line: f("a_total 1 # {a=\"%x\",b=\"\",c=\"\"} 1\n", 1)},
		{name: "a line", head: "a{b=\"", tail: "\"} 1\n", line: f("%08x", 1), passes: true},
		{name: "long lines", line: func(i int) string { return fmt.Sprintf("a{b=\"%x%s\"} 1\n", i, strings.Repeat("x", 100<<10)) }, passes: true},
		{name: "no lines", line: f("\n", 0), passes: true},
		{name: "protobuf", media: pb, line: func(i int) string { return counters(fmt.Sprintf("c%d", i), 1000) }},
		{name: "protobuf, names", media: pb, line: func(i int) string { return counters(fmt.Sprintf("c%x", i), 1) }},
		{name: "protobuf, nothing", media: pb, line: f("\x00", 0), passes: true},
		{name: "protobuf, empty metrics", media: pb, line: func(int) string { return "\x83\x40\x0a\x01a" + strings.Repeat("\x22\x00", 1<<12) }},
		{name: "protobuf, a wide histogram", media: pb, line: func(i int) string { return nativeOf(fmt.Sprintf("h%d", i), 10, 1<<30) }},
		{name: "protobuf, histograms of many buckets", media: pb, line: func(i int) string { return nativeOf(fmt.Sprintf("h%d", i), 100_000, 1) }},
		{name: "protobuf, a histogram of many buckets", media: pb, line: func(i int) string { return nativeOf(fmt.Sprintf("h%d", i), hostileBody, 1) }},
	}
}()

// highest runs f and returns about how much more heap was live meanwhile than before: what collections found, of which
// there are many. What is in use between them depends on how soon a busy machine collects.
func highest(f func()) int64 {
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	before := heap()
	stop, peak := make(chan struct{}), make(chan int64)
	go func() {
		sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		for most := uint64(0); ; {
			metrics.Read(sample)
			most = max(most, sample[0].Value.Uint64())
			select {
			case <-stop:
				peak <- int64(most) - before
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	f()
	close(stop)
	return <-peak
}

// Whatever is on a page, a target takes no more memory than a page may; or twice that, if the page is within the limit
// and the next one is different. After a page that takes too much, its memory is freed.
func TestWorstPagesTakeNoMoreThanTheyMay(t *testing.T) {
	racetest.Sequential(t)
	const slack = 4 << 20                                // for garbage that is not collected yet
	defer debug.SetMaxStack(debug.SetMaxStack(64 << 20)) // a larger stack ends the process
	for _, w := range worsts {
		t.Run(w.name, func(t *testing.T) {
			if w.media == "" {
				w.media = typeText
			}
			native := true
			cfg := testScrapeConfig()
			cfg.ScrapeNativeHistograms = &native
			target := testTarget(newTestJob(t, Config{Scrape: cfg, MaxMemory: hostileMemory, Reuse: true}), 1)
			before := heap()
			first := 0
			scrape := func(length int, most int64) error {
				var r Result
				body := w.page(first, length)
				first += 1 << 22
				peak := highest(func() {
					for r = showBytes(target, start, w.media, body); r.Pending() > 0; {
						r = r.Next()
					}
					r.Release()
				})
				t.Logf("%d KiB for a page of %d KiB with %d samples: %v", peak>>10, len(body)>>10, r.Samples, r.Err)
				require.LessOrEqual(t, peak, most+slack)
				return r.Err
			}
			length := hostileBody
			err := scrape(length, hostileMemory)
			require.Equal(t, w.passes, err == nil)
			for ; err != nil && length > 1<<10; length /= 4 {
				require.ErrorIs(t, err, ErrMemory)
				require.ErrorContains(t, err, "`max_page_memory`")
				err = scrape(length/4, hostileMemory)
			}
			for range 2 {
				require.Equal(t, err, scrape(length, 2*hostileMemory))
			}
			r := show(target, start, typeText, "small 1\n", 1<<20)
			require.NoError(t, r.Err)
			require.True(t, has(r.Metrics, "small"))
			r.Release()
			stays := heap() - before
			t.Logf("%d KiB stay", stays>>10)
			require.LessOrEqual(t, stays, int64(hostileMemory+slack))
			runtime.KeepAlive(target)
		})
	}
}

// A known native histogram, the last one on its page, may change to one with billions of buckets.
func TestKnownHistogramThatGrowsIsWithinTheLimit(t *testing.T) {
	native := true
	cfg := testScrapeConfig()
	cfg.ScrapeNativeHistograms = &native
	target := testTarget(newTestJob(t, Config{Scrape: cfg, MaxMemory: hostileMemory}), 1)
	for range 3 {
		require.NoError(t, show(target, start, typeProto, nativeOf("h", 3, 1), 1<<20).Err)
	}
	r := show(target, start, typeProto, nativeOf("h", 3, hostileMemory/8), 1<<20)
	require.ErrorIs(t, r.Err, ErrMemory)
	require.NoError(t, show(target, start, typeProto, nativeOf("h", 3, 1), 1<<20).Err)
}
