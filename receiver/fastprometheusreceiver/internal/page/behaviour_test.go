// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func find(t *testing.T, md pmetric.Metrics, name string) pmetric.Metric {
	t.Helper()
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() == name {
					return m
				}
			}
		}
	}
	t.Fatalf("no metric %s in %v", name, canon(md))
	return pmetric.Metric{}
}

func has(md pmetric.Metrics, name string) bool {
	for _, s := range canon(md) {
		if strings.Contains(s, "| "+name+" ") {
			return true
		}
	}
	return false
}

const histogram3 = "# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"2\"} 2\nh_bucket{le=\"+Inf\"} 3\nh_sum 3\nh_count 3\n"

func TestAVanishedBucketLeavesTheHistogramAlive(t *testing.T) {
	target := testTarget(newTestJob(t, Config{Scrape: testScrapeConfig()}), 1)
	show(target, start, typeText, histogram3, 100)
	r := show(target, start, typeText, strings.Replace(histogram3, "h_bucket{le=\"2\"} 2\n", "", 1), 100)
	dp := find(t, r.Metrics, "h").Histogram().DataPoints().At(0)
	require.False(t, dp.Flags().NoRecordedValue())
	require.Equal(t, []float64{1}, dp.ExplicitBounds().AsRaw())
	require.Equal(t, []uint64{1, 2}, dp.BucketCounts().AsRaw())
}

// A histogram whose metric gets another type ends as a histogram, so that each of its series ends.
func TestAHistogramThatBecomesAGaugeEnds(t *testing.T) {
	for _, becomes := range []string{"# TYPE h gauge\nh 7\n", "# TYPE h counter\nh 7\n", "# TYPE h gauge\nh{a=\"b\"} 7\n", "# TYPE h gauge\n"} {
		for before, kind := range map[string]pmetric.MetricType{
			histogram3: pmetric.MetricTypeHistogram, "# TYPE h summary\nh{quantile=\"0.5\"} 1\nh_sum 3\nh_count 3\n": pmetric.MetricTypeSummary,
		} {
			job := newTestJob(t, Config{Scrape: testScrapeConfig()})
			for i := range 3 { // targets that share lines
				target := testTarget(job, i)
				show(target, start, typeText, before, 100)
				r := show(target, start, typeText, becomes, 100)
				ended := 0
				for _, rm := range r.Metrics.ResourceMetrics().All() {
					for _, sm := range rm.ScopeMetrics().All() {
						for _, m := range sm.Metrics().All() {
							switch {
							case m.Name() != "h":
							case m.Type() == pmetric.MetricTypeHistogram:
								require.True(t, m.Histogram().DataPoints().At(0).Flags().NoRecordedValue())
								ended++
							case m.Type() == pmetric.MetricTypeSummary:
								require.True(t, m.Summary().DataPoints().At(0).Flags().NoRecordedValue())
								ended++
							case m.Type() == pmetric.MetricTypeGauge:
								for _, dp := range m.Gauge().DataPoints().All() {
									_, isQuantile := dp.Attributes().Get(model.QuantileLabel) // its series has the name of the gauge
									require.Equal(t, isQuantile, dp.Flags().NoRecordedValue(), "%v", canon(r.Metrics))
								}
							}
						}
					}
				}
				require.Equal(t, 1, ended, "%q %v: %v", becomes, kind, canon(r.Metrics))
			}
		}
	}
}

func TestAVanishedCountEndsTheHistogram(t *testing.T) {
	target := testTarget(newTestJob(t, Config{Scrape: testScrapeConfig()}), 1)
	show(target, start, typeText, histogram3, 100)
	r := show(target, start, typeText, strings.Replace(histogram3, "h_count 3\n", "", 1), 100)
	require.True(t, find(t, r.Metrics, "h").Histogram().DataPoints().At(0).Flags().NoRecordedValue())
}

func TestFallingBucketsAreNoHistogram(t *testing.T) {
	for _, reuse := range []bool{false, true} {
		target := testTarget(newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: reuse}), 1)
		falling := strings.Replace(histogram3, "le=\"1\"} 1", "le=\"1\"} 9", 1)
		for i, page := range []string{falling, histogram3, histogram3, histogram3, falling, histogram3} {
			r := show(target, start, typeText, page, 100)
			require.Equal(t, page == histogram3, has(r.Metrics, "h"), "page %d", i)
			r.Release()
		}
	}
}

func TestASummaryMayBeNamedAsACountIs(t *testing.T) {
	for _, name := range []string{"pods_count", "pods_sum"} {
		page := strings.ReplaceAll("# TYPE N summary\nN{quantile=\"0.5\"} 2\nN{quantile=\"0.9\"} 7\nN_sum 9\nN_count 3\n", "N", name)
		job := newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: true})
		for i := range 3 {
			target := testTarget(job, i)
			for range 3 {
				r := show(target, start, typeText, page, 100)
				dp := find(t, r.Metrics, name).Summary().DataPoints().At(0)
				require.Equal(t, uint64(3), dp.Count())
				require.InDelta(t, 9, dp.Sum(), 0)
				require.Equal(t, 2, dp.QuantileValues().Len())
				require.InDelta(t, 7, dp.QuantileValues().At(1).Value(), 0)
				r.Release()
			}
			r := show(target, start, typeText, strings.Replace(page, name+"{quantile=\"0.9\"} 7\n", "", 1), 100)
			dp := find(t, r.Metrics, name).Summary().DataPoints().At(0)
			require.False(t, dp.Flags().NoRecordedValue())
			require.Equal(t, 1, dp.QuantileValues().Len())
			r.Release()
		}
	}
}

func TestARenamedMetricKeepsItsType(t *testing.T) {
	cfg := testScrapeConfig()
	cfg.MetricRelabelConfigs = []*relabel.Config{{
		SourceLabels: model.LabelNames{"__name__"}, Regex: relabel.MustNewRegexp("(.*)"), TargetLabel: "__name__", Replacement: "my_$1",
		Action: relabel.Replace, Separator: ";", NameValidationScheme: cfg.MetricNameValidationScheme,
	}}
	target := testTarget(newTestJob(t, Config{Scrape: cfg}), 1)
	r := show(target, start, typeText, histogram3+"# TYPE c counter\nc 1\n", 100)
	require.Equal(t, pmetric.MetricTypeHistogram, find(t, r.Metrics, "my_h").Type())
	require.Equal(t, pmetric.MetricTypeSum, find(t, r.Metrics, "my_c").Type())
}

func TestASeriesMayHaveSeveralTimestamps(t *testing.T) {
	target := testTarget(newTestJob(t, Config{Scrape: testScrapeConfig()}), 1)
	page := "a 1 1000\na 2 2000\na 3 2000\nb 1\nb 2\n"
	for range 3 {
		r := show(target, start, typeText, page, 100)
		dps := find(t, r.Metrics, "a").Gauge().DataPoints()
		require.Equal(t, 2, dps.Len())
		require.InDelta(t, 1, dps.At(0).DoubleValue(), 0)
		require.Equal(t, time.UnixMilli(1000).UnixNano(), int64(dps.At(0).Timestamp()))
		require.InDelta(t, 3, dps.At(1).DoubleValue(), 0, "of one time, the last counts")
		require.InDelta(t, 1, find(t, r.Metrics, "b").Gauge().DataPoints().At(0).DoubleValue(), 0, "without one, the first")
		require.Equal(t, 5, r.Samples)
	}
}

func TestPagesWithTimestampsArePlannedToo(t *testing.T) {
	target := testTarget(newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: true}), 1)
	for i := range 4 {
		page := fmt.Sprintf("a{x=\"1\"} 1 %d\na{x=\"2\"} 1 %d\nb 1\n", 1000+i, 2000+i)
		r := show(target, start, typeText, page, 100)
		require.Equal(t, int64(1000+i)*1e6, int64(find(t, r.Metrics, "a").Gauge().DataPoints().At(0).Timestamp()))
		r.Release()
	}
	require.True(t, target.Settled)
	s := target.begin(start, textFormat)
	require.NoError(t, s.Feed([]byte("a{x=\"1\"} 1 1\na{x=\"2\"} 1 2\nb 1\n")))
	require.True(t, (&ending{Scrape: s}).exact())
	s.End(Report{})
}

func TestAFailedPageEndsEverySeries(t *testing.T) {
	target := testTarget(newTestJob(t, Config{Scrape: testScrapeConfig()}), 1)
	show(target, start, typeText, "a 1\nb 1\n", 100)
	r := show(target, start, typeText, "a 1\nc 1\nb 1 x\n", 100)
	require.Error(t, r.Err)
	require.Equal(t, 2, r.Samples)
	for _, n := range []string{"a", "b"} {
		require.True(t, find(t, r.Metrics, n).Gauge().DataPoints().At(0).Flags().NoRecordedValue())
	}
	require.False(t, has(r.Metrics, "c"))
	require.InDelta(t, 0, find(t, r.Metrics, "up").Gauge().DataPoints().At(0).DoubleValue(), 0)
}

func TestRetire(t *testing.T) {
	j := newTestJob(t, Config{Scrape: testScrapeConfig()})
	never := testTarget(j, 1)
	require.Zero(t, never.Retire(start).Metrics)
	target := testTarget(j, 2)
	show(target, start, typeText, node, 100)
	r := target.Retire(start)
	for _, s := range canon(r.Metrics) {
		require.Contains(t, s, "flags 1")
	}
	for _, n := range []string{"up", "temp", "lat", "req", "up_total", "scrape_series_added"} {
		require.True(t, has(r.Metrics, n), n)
	}
	require.Equal(t, Stats{}, j.Stats())
}

func TestNoStaleMarkers(t *testing.T) {
	target := testTarget(newTestJob(t, Config{Scrape: testScrapeConfig(), NoStaleMarkers: true}), 1)
	show(target, start, typeText, "a 1\nb 1\n", 100)
	r := show(target, start, typeText, "b 1\n", 100)
	require.False(t, has(r.Metrics, "a"))
	require.Zero(t, target.Retire(start).Metrics)
}

func TestSeriesLimit(t *testing.T) {
	j := newTestJob(t, Config{Scrape: testScrapeConfig(), SeriesLimit: 2})
	target := testTarget(j, 1)
	for i := range 4 {
		r := show(target, start, typeText, "a 1\nb 1\nc 1\n", 100)
		require.NoError(t, r.Err)
		require.Equal(t, []bool{true, true, false}, []bool{has(r.Metrics, "a"), has(r.Metrics, "b"), has(r.Metrics, "c")}, i)
		require.Equal(t, 1, r.Limited, i)
	}
	other := testTarget(j, 2)
	r := show(other, start, typeText, "c 1\n", 100)
	require.True(t, has(r.Metrics, "c"), "the limit is each target's own")
}

func TestTargetsShareWhatTheyMay(t *testing.T) {
	j := newTestJob(t, Config{Scrape: testScrapeConfig()})
	for i := range 10 {
		target := testTarget(j, i, "pod", fmt.Sprint("pod", i))
		for range 2 {
			r := show(target, start, typeText, node, 100)
			a, _ := find(t, r.Metrics, "bare").Gauge().DataPoints().At(0).Attributes().Get("pod")
			require.Equal(t, fmt.Sprint("pod", i), a.Str())
		}
	}
	require.Equal(t, 1, j.Stats().Plans)
	cfg := testScrapeConfig()
	cfg.MetricRelabelConfigs = []*relabel.Config{{
		SourceLabels: model.LabelNames{"pod"}, Regex: relabel.MustNewRegexp("pod1"), Action: relabel.Drop, Separator: ";",
		NameValidationScheme: cfg.MetricNameValidationScheme,
	}}
	j = newTestJob(t, Config{Scrape: cfg})
	for i := range 3 {
		r := show(testTarget(j, i, "pod", fmt.Sprint("pod", i)), start, typeText, node, 100)
		require.Equal(t, i != 1, has(r.Metrics, "bare"))
	}
	require.Equal(t, 1, j.Stats().Cohorts)
	require.Equal(t, 2, j.Stats().Plans, "of those the rule keeps, and of the one it drops")
}

func TestTargetsScrapeConcurrently(t *testing.T) {
	j := newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: true})
	var done sync.WaitGroup
	for i := range 8 {
		done.Go(func() {
			target := testTarget(j, i, "pod", fmt.Sprint("pod", i))
			g := newGenerator(uint64(i/2), i%4 > 1, false)
			for n := range 40 {
				r := show(target, start.Add(time.Duration(n)*time.Second), media(g.openMetrics), g.page(), 50)
				_ = canon(r.Metrics)
				r.Release()
				if n%3 == 0 {
					g.change()
				}
			}
			target.Retire(start)
		})
	}
	done.Wait()
	require.Equal(t, Stats{}, j.Stats())
}

func TestReportedErrorFailsTheScrape(t *testing.T) {
	target := testTarget(newTestJob(t, Config{Scrape: testScrapeConfig()}), 1)
	s, err := target.Begin(start, typeText)
	require.NoError(t, err)
	require.NoError(t, s.Feed([]byte("a 1\n")))
	tooLarge := errors.New("body size limit exceeded")
	r := s.End(Report{Err: tooLarge, BodyBytes: -1})
	require.ErrorIs(t, r.Err, tooLarge)
	require.False(t, has(r.Metrics, "a"))
}

// The cost of hostile pages is in proportion to their size.
func TestHugeLines(t *testing.T) {
	target := testTarget(newTestJob(t, Config{Scrape: testScrapeConfig()}), 1)
	quote := "a{x=\"" + strings.Repeat("\n", 4<<20)
	begun := time.Now()
	require.Error(t, show(target, start, typeText, quote, 4<<10).Err)
	require.Error(t, show(target, start, typeText, strings.Repeat("a", 4<<20), 4<<10).Err)
	require.Less(t, time.Since(begun), 20*time.Second)
}
