// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	dto "github.com/prometheus/prometheus/prompb/io/prometheus/client"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/godwit-otel/godwit/internal/racetest"
)

// gauges returns a family of forty numbered gauges without some, and with a NaN that has this payload for others.
func gauges(without, odd func(i int) bool, payload uint64) string {
	f := &dto.MetricFamily{Name: "g", Type: dto.MetricType_GAUGE}
	for i := range 40 {
		if without(i) {
			continue
		}
		v := float64(i)
		if odd(i) {
			v = math.Float64frombits(payload)
		}
		f.Metric = append(f.Metric, dto.Metric{Label: []dto.LabelPair{{Name: "id", Value: fmt.Sprint(i)}}, Gauge: &dto.Gauge{Value: v}})
	}
	return framed(f)
}

func none(int) bool { return false }

func only(i int) func(int) bool { return func(j int) bool { return i == j } }

// notANumber are NaNs that a page in protobuf may have: that of the text formats, staleness markers, their neighbours,
// and others.
var notANumber = []uint64{
	0x7ff8000000000001, 0x7ff0000000000002, 0x7ff0000000000001, 0x7ff0000000000003, 0x7ff0000000000004, 0xfff0000000000003, 0x7fffffffffffffff,
}

// A value must not be mistaken for the state of its line: whatever the payload of a NaN, a scrape ends, and its metrics
// are those of a target with the same previous page.
func TestNoValueMeansThatThereIsNone(t *testing.T) {
	for _, payload := range notANumber {
		for _, reuse := range []bool{false, true} {
			cfg := Config{Scrape: testScrapeConfig(), Reuse: reuse}
			j := newTestJob(t, cfg)
			setParts(j, 3, 4)
			target := testTarget(j, 1)
			last := ""
			for n, page := range []string{
				gauges(none, none, 0), gauges(only(5), none, 0), gauges(only(5), only(7), payload),
				gauges(only(7), only(5), payload), gauges(only(5), only(6), payload), gauges(none, only(5), payload),
			} {
				fresh := testTarget(newTestJob(t, Config{Scrape: testScrapeConfig()}), 1)
				if last != "" {
					show(fresh, start, typeProto, last, 1<<20)
				}
				want := canon(show(fresh, start, typeProto, page, 1<<20).Metrics)
				require.Equal(t, want, canon(merged(t, show(target, start, typeProto, page, 1<<20))), "%x: page %d", payload, n)
				last = page
			}
		}
	}
}

// Each part of a large page has points, or is the last one, even if the count was wrong.
func TestPartsComeToAnEnd(t *testing.T) {
	j := newTestJob(t, Config{Scrape: testScrapeConfig()})
	setParts(j, 3, 4)
	r := show(testTarget(j, 1), start, typeProto, gauges(none, none, 0), 1<<20)
	r.parts.Pending += 1000
	for range 40 {
		if r.Pending() > 0 {
			r = r.Next()
		}
	}
	require.Zero(t, r.Pending())
}

func TestNaNsOfProtobufAgainstStock(t *testing.T) {
	racetest.Sequential(t)
	var seqs []sequence
	for _, payload := range notANumber {
		v := math.Float64frombits(payload)
		all := func(v float64) string {
			one := []dto.LabelPair{{Name: "a", Value: "b"}}
			metric := func(name string, typ dto.MetricType, m dto.Metric) string {
				m.Label = one
				return framed(&dto.MetricFamily{Name: name, Type: typ, Metric: []dto.Metric{m}})
			}
			return metric("c_total", dto.MetricType_COUNTER, dto.Metric{Counter: &dto.Counter{Value: v, Exemplar: &dto.Exemplar{Value: v}}}) +
				metric("g", dto.MetricType_GAUGE, dto.Metric{Gauge: &dto.Gauge{Value: v}}) +
				metric("s", dto.MetricType_SUMMARY, dto.Metric{Summary: &dto.Summary{SampleCount: 1, SampleSum: v, Quantile: []dto.Quantile{{Quantile: 0.5, Value: v}}}}) +
				metric("h", dto.MetricType_HISTOGRAM, dto.Metric{Histogram: &dto.Histogram{SampleCount: 1, SampleSum: v, Bucket: []dto.Bucket{{CumulativeCount: 1, UpperBound: 1}}}}) +
				metric("n", dto.MetricType_HISTOGRAM, dto.Metric{Histogram: &dto.Histogram{
					SampleCount: 1, SampleSum: v, Schema: 1, PositiveSpan: []dto.BucketSpan{{Length: 1}}, PositiveDelta: []int64{1},
				}})
		}
		seqs = append(seqs, sequence{name: fmt.Sprintf("%x", payload), media: typeProto, job: "scrape_native_histograms: true", pages: []string{
			all(1), all(v), all(2), all(v), framed(&dto.MetricFamily{Name: "other", Type: dto.MetricType_GAUGE, Metric: []dto.Metric{{Gauge: &dto.Gauge{Value: 1}}}}),
		}})
	}
	compareWithStock(t, receiverOptions{}, seqs)
}

// Whether a page exceeds the sample limit is the same on every scrape, and as in Prometheus: repeated lines without a
// timestamp do not count, those with one do.
func TestSampleLimitAgainstStock(t *testing.T) {
	racetest.Sequential(t)
	repeat := func(page string) []string { return []string{page, page, page, page} }
	at := func(n int) string {
		return times(n, func(i int) string { return fmt.Sprintf("a %d %d\n", i, 1_600_000_000_000+i) })
	}
	compareWithStock(t, receiverOptions{}, []sequence{
		{name: "duplicates", media: typeText, job: "sample_limit: 2", pages: repeat("a 1\na 1\nb 2\n")},
		{name: "duplicates, other values", media: typeText, job: "sample_limit: 2", pages: []string{"a 1\na 1\nb 2\n", "a 2\na 3\nb 3\n", "a 2\na 3\na 3\nb 3\n", "b 1\n", "a 1\na 1\nb 2\n"}},
		{name: "duplicates beyond", media: typeText, job: "sample_limit: 2", pages: repeat("a 1\na 1\nb 2\nc 1\n")},
		{name: "duplicates, dropped", media: typeText, job: "sample_limit: 1\nmetric_relabel_configs: [{source_labels: [__name__], regex: b, action: drop}]", pages: repeat("a 1\na 1\nb 2\nb 2\n")},
		{name: "duplicates by relabelling", media: typeText, job: "sample_limit: 1\nmetric_relabel_configs: [{regex: x, action: labeldrop}]", pages: repeat("a{x=\"1\"} 1\na{x=\"2\"} 2\n")},
		{name: "never fits", media: typeText, job: "sample_limit: 2", pages: repeat("a 1\nb 2\nc 3\n")},
		{name: "many at the limit", media: typeText, job: "sample_limit: 3", pages: repeat("a 1\na 2\na 3\nb 1\nb 2\nc 1\n")},
	})
	// A page over the limit has no points. The Collector's receiver keeps only one point for these, so its result
	// differs.
	for limit, fits := range map[uint]bool{999: false, 1000: true} {
		cfg := testScrapeConfig()
		cfg.SampleLimit = limit
		target := testTarget(newTestJob(t, Config{Scrape: cfg}), 1)
		for range 3 {
			r := show(target, start, typeText, at(1000), 1<<20)
			require.Equal(t, fits, r.Err == nil)
			require.Equal(t, fits, has(r.Metrics, "a"))
		}
	}
}

// A target's page does not depend on what other targets know: a TYPE after its samples is known from the second scrape
// on.
func TestLateTypesOfSharedPages(t *testing.T) {
	for _, page := range []string{"foo 1\n# TYPE foo counter\n", "a 1\nfoo 1\n# TYPE foo counter\n# HELP a Some.\n", "foo_count 1\nfoo_sum 1\n# TYPE foo summary\n"} {
		for _, reuse := range []bool{false, true} {
			cfg := Config{Scrape: testScrapeConfig(), Reuse: reuse}
			j := newTestJob(t, cfg)
			var shared, alone []*Target
			for n := range 4 {
				shared = append(shared, testTarget(j, n))
				alone = append(alone, testTarget(newTestJob(t, cfg), n))
			}
			for i := range 15 {
				for n := range min(i+2, len(shared)) { // two start together, each of the others a scrape later
					at := start.Add(time.Duration(i) * time.Second)
					want := show(alone[n], at, typeText, page, 100)
					got := show(shared[n], at, typeText, page, 100)
					require.Equal(t, canon(want.Metrics), canon(got.Metrics), "target %d, scrape %d", n, i)
					want.Release()
					got.Release()
				}
			}
		}
	}
}

func TestEndsAgainstStock(t *testing.T) {
	racetest.Sequential(t)
	const summary = "# TYPE s summary\ns{quantile=\"0.5\"} 1\n"
	dropID := "metric_relabel_configs:\n- {regex: id, action: labeldrop}"
	one, two, other := "e{id=\"1\"} 1\ne{id=\"2\"} 2\n", "e{id=\"2\"} 2\ne{id=\"1\"} 1\n", "e{id=\"3\"} 3\n"
	compareWithStock(t, receiverOptions{}, []sequence{
		{name: "a sum", media: typeText, pages: []string{summary + "s_sum 1000\ns_count 6\n", summary + "s_count 7\n", summary + "s_count 8\n", summary + "s_sum 1010\ns_count 8\n", summary + "s_count 8\n"}},
		{name: "sums of several", media: typeText, pages: []string{
			summary + "s_sum 1\ns_count 6\ns_sum{a=\"b\"} 1\ns_count{a=\"b\"} 1\n", summary + "s_count 7\ns_count{a=\"b\"} 2\ns_sum{a=\"b\"} 2\n",
			summary + "s_count 7\ns_count{a=\"b\"} 2\n",
		}},
		{name: "a gauge's name", media: typeText, pages: []string{
			"# TYPE h gauge\nh 5\nh{a=\"b\"} 6\n", histogram3, histogram3, "a 1\n",
		}},
		{name: "a gauge's name, other lines", media: typeText, pages: []string{
			"a 1\nb 1\n# TYPE h gauge\nh 5\n", "a 1\nb 1\n# TYPE h gauge\nh 5\nh{x=\"1\"} 2\n", "a 1\nb 1\n" + histogram3, "a 1\nb 1\n",
		}},
		{name: "duplicates in turn", media: typeText, job: dropID, pages: []string{one, one, two, two, one, one + other, other + one, two + other, other + two, two}},
		{name: "duplicates in turn, typed", media: typeText, job: dropID, pages: []string{
			"# TYPE e counter\n" + one, "# TYPE e counter\n" + two, "# TYPE e counter\n" + one, "# TYPE e counter\n" + two + "x 1\n",
		}},
	})
}

// A series is new only once, on the first page with it, even if that fails after it.
func TestSeriesOfFailedPagesAreNewOnce(t *testing.T) {
	type scrape struct {
		page  string
		added int
	}
	for name, k := range map[string]struct {
		job     string
		scrapes []scrape
	}{
		"malformed": {"", []scrape{
			{"a 1\nb 1\n", 2},
			{"a 1\nc 1\nd 1 x\n", 1},
			{"a 1\nc 1\nd 1 x\n", 0},
			{"a 1\nc 1\ne 1\nd 1 x\n", 1},
			{errorPage, 0},
			{"a 1\nb 1\nc 1\nd 1\n", 1},
			{"e 1\n!\n", 1},
			{"e 1\n!\n", 0},
			{"e 1\na 1\n", 0},
			{"e 1\nb 1\n", 1},
		}},
		"limited": {"  sample_limit: 2\n", []scrape{
			{"a 1\nb 2\nc 3\n", 2},
			{"a 1\nb 2\nc 3\n", 0},
			{"b 1\nc 2\na 3\n", 1},
			{"a 1\na 2\nb 2\n", 0},
			{"a 1\na 2\nb 2\n", 0},
			{"d 1\nd 1 5\nd 1 6\n", 1},
			{"d 1\n", 0},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			target := testTarget(newTestJob(t, Config{Scrape: scrapeConfig(t, k.job)}), 1)
			for i, s := range k.scrapes {
				require.Equal(t, s.added, show(target, start, typeText, s.page, 100).Added, "scrape %d", i)
			}
		})
	}
	// What is remembered of failed pages is limited to the size of a page, or a few times that of the last good one.
	target := testTarget(newTestJob(t, Config{Scrape: testScrapeConfig()}), 1)
	for i := range 50 {
		show(target, start, typeText, times(100, func(j int) string { return fmt.Sprintf("m%d_%d 1\n", i, j) })+"!\n", 100)
		require.LessOrEqual(t, len(target.Failed), 1000)
	}
	require.NoError(t, show(target, start, typeText, "a 1\n", 100).Err)
	require.Empty(t, target.Failed)
}

// If relabelling merges two histograms, the last one counts, and each bound occurs once.
func TestDoubledHistograms(t *testing.T) {
	cfg := scrapeConfig(t, "  metric_relabel_configs: [{regex: x, action: labeldrop}]\n")
	h := func(x string, n int) string {
		return fmt.Sprintf("h_bucket{x=%[1]q,le=\"1\"} %[2]d\nh_bucket{x=%[1]q,le=\"+Inf\"} %[3]d\nh_sum{x=%[1]q} 3\nh_count{x=%[1]q} %[3]d\n", x, n, 2*n)
	}
	target := testTarget(newTestJob(t, Config{Scrape: cfg}), 1)
	for i, page := range []string{h("1", 1) + h("2", 10), h("2", 1) + h("1", 10), "", ""} {
		r := show(target, start, typeText, "# TYPE h histogram\n"+page, 100)
		if i == 3 {
			require.False(t, has(r.Metrics, "h"))
			break
		}
		dps := find(t, r.Metrics, "h").Histogram().DataPoints()
		require.Equal(t, 1, dps.Len())
		require.Equal(t, []float64{1}, dps.At(0).ExplicitBounds().AsRaw())
		if i < 2 {
			require.Equal(t, []uint64{10, 10}, dps.At(0).BucketCounts().AsRaw())
		} else {
			require.True(t, dps.At(0).Flags().NoRecordedValue())
		}
	}
}

func TestABoundThatIsNoNumberIsNone(t *testing.T) {
	target := testTarget(newTestJob(t, Config{Scrape: testScrapeConfig()}), 1)
	for range 3 {
		r := show(target, start, typeText, histogram3+"h_bucket{le=\"NaN\"} 1\n# TYPE s summary\ns{quantile=\"nan\"} 1\ns_count 1\n", 100)
		require.Equal(t, []float64{1, 2}, find(t, r.Metrics, "h").Histogram().DataPoints().At(0).ExplicitBounds().AsRaw())
		require.Zero(t, find(t, r.Metrics, "s").Summary().DataPoints().At(0).QuantileValues().Len())
	}
}

// Histograms that are omitted are counted, and logged when that begins and when it ends.
func TestBrokenHistogramsAreCounted(t *testing.T) {
	falling := strings.Replace(histogram3, "le=\"1\"} 1", "le=\"1\"} 9", 1)
	for _, kind := range []string{"fresh", "reuse", "parts", "passing"} {
		t.Run(kind, func(t *testing.T) {
			core, logs := observer.New(zap.InfoLevel)
			var count atomic.Int64
			j := newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: kind != "fresh", Logger: zap.New(core), BrokenHistograms: &count})
			switch kind {
			case "parts":
				setParts(j, 1, 1)
			case "passing":
				j.tree.Idle = noTrees
			}
			target := testTarget(j, 1)
			var messages []string
			for _, page := range []string{histogram3, falling, falling, strings.NewReplacer("h_", "g_", " h ", " g ").Replace(falling) + falling, histogram3, histogram3, falling} {
				r := show(target, start, typeText, page, 100)
				for {
					r.Release()
					if r.Pending() == 0 {
						break
					}
					r = r.Next()
				}
				for _, e := range logs.TakeAll() {
					messages = append(messages, fmt.Sprint(e.Message, count.Load()))
				}
			}
			require.Equal(t, int64(5), count.Load())
			const begins, ends = "Dropping histograms: their buckets fall, exceed the count or are not numbers", "No more histograms are dropped"
			require.Equal(t, []string{begins + "1", ends + "4", begins + "5"}, messages)
		})
	}
}

// Empty buckets are removed from large histograms as in Prometheus' parser.
func TestLargeHistogramsAreCompacted(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 2000 {
		h := &histogram.Histogram{Schema: 1}
		var spans []dto.BucketSpan
		var deltas []int64
		var counts []float64
		last := int64(0)
		for i := range 1 + r.IntN(5) {
			s := histogram.Span{Offset: int32(r.IntN(3)), Length: uint32(r.IntN(5))}
			if i == 0 {
				s.Offset -= 2
			}
			h.PositiveSpans = append(h.PositiveSpans, s)
			spans = append(spans, dto.BucketSpan{Offset: s.Offset, Length: s.Length})
			for range s.Length {
				count := int64(r.IntN(3) * r.IntN(3))
				deltas = append(deltas, count-last)
				counts = append(counts, float64(count))
				last = count
			}
		}
		h.PositiveBuckets = append([]int64{}, deltas...)
		fh := &histogram.FloatHistogram{Schema: 1, PositiveSpans: append([]histogram.Span{}, h.PositiveSpans...), PositiveBuckets: append([]float64{}, counts...)}
		h.Compact(0)
		fh.Compact(0)
		same := func(want []histogram.Span, got []dto.BucketSpan) {
			require.Len(t, got, len(want))
			for i := range want {
				require.Equal(t, histogram.Span{Offset: got[i].Offset, Length: got[i].Length}, want[i])
			}
		}
		gotSpans, gotDeltas := compactDeltas(spans, deltas)
		same(h.PositiveSpans, gotSpans)
		require.ElementsMatch(t, h.PositiveBuckets, gotDeltas)
		gotSpans, gotCounts := compactFloats(spans, counts)
		same(fh.PositiveSpans, gotSpans)
		require.ElementsMatch(t, fh.PositiveBuckets, gotCounts)
	}
}

// If an untyped metric in protobuf omits its value, because that is zero, Prometheus' decoder uses the value of the
// previous one.
func TestUntypedZeros(t *testing.T) {
	untyped := func(name string, values ...float64) string {
		f := &dto.MetricFamily{Name: name, Type: dto.MetricType_UNTYPED}
		for i, v := range values {
			f.Metric = append(f.Metric, dto.Metric{Label: []dto.LabelPair{{Name: "id", Value: fmt.Sprint(i)}}, Untyped: &dto.Untyped{Value: v}})
		}
		return framed(f)
	}
	r := show(testTarget(newTestJob(t, Config{Scrape: testScrapeConfig()}), 1), start, typeProto, untyped("a", 1, 0, 2, 0)+untyped("b", 0, 3), 100)
	for name, want := range map[string][]float64{"a": {1, 0, 2, 0}, "b": {0, 3}} {
		dps := find(t, r.Metrics, name).Gauge().DataPoints()
		for i, v := range want {
			require.InDelta(t, v, dps.At(i).DoubleValue(), 0)
		}
	}
}

// A page with large histograms is read completely.
func TestLargeHistogramsAmongOthers(t *testing.T) {
	large := &dto.Histogram{SampleCount: 3000, SampleSum: 1, Schema: 8, ZeroThreshold: 1, PositiveSpan: []dto.BucketSpan{{Length: 6000}}}
	for range 3000 {
		large.PositiveDelta = append(large.PositiveDelta, 1, -1)
	}
	page := delimited(protoCounter) + protoHistogram(large, protoLabels(2)...) + delimited(protoGauge, protoNative)
	r := show(testTarget(newTestJob(t, Config{Scrape: scrapeConfig(t, "  scrape_native_histograms: true\n")}), 1), start, typeProto, page, 100)
	require.NoError(t, r.Err)
	dp := find(t, r.Metrics, "h").ExponentialHistogram().DataPoints().At(0)
	require.Equal(t, 2, dp.Attributes().Len())
	counts := dp.Positive().BucketCounts().AsRaw()
	require.Len(t, counts, 5999)
	for i, n := range counts {
		require.Equal(t, uint64((i+1)%2), n)
	}
	for _, name := range []string{"c_total", "g", "n"} {
		require.True(t, has(r.Metrics, name))
	}
	require.Error(t, show(testTarget(newTestJob(t, Config{Scrape: testScrapeConfig()}), 1), start, typeProto,
		framedBytes("\x0a\x01a\x1b"+strings.Repeat("\x22\x00", largeMetric)), 1<<20).Err, "a field of a group")
}

func framedBytes(b string) string { return string(binary.AppendUvarint(nil, uint64(len(b)))) + b }
