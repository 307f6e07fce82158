// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/racetest"
)

// neighbours are consumers that break the promise not to change metrics, in every way that is detected.
var neighbours = map[string]func(pmetric.Metrics){
	"leaves them": func(pmetric.Metrics) {},
	"empties":     func(md pmetric.Metrics) { md.MoveTo(pmetric.NewMetrics()) },
	"empties, and goes on to use": func(md pmetric.Metrics) {
		mine := pmetric.NewMetrics()
		md.MoveTo(mine)
		eachMetric(mine, func(m pmetric.Metric) { m.SetName("mine") })
	},
	"moves resources": func(md pmetric.Metrics) {
		md.ResourceMetrics().RemoveIf(func(rm pmetric.ResourceMetrics) bool {
			rm.MoveTo(pmetric.NewResourceMetrics())
			return true
		})
	},
	"moves the insides of resources": func(md pmetric.Metrics) {
		for _, rm := range md.ResourceMetrics().All() {
			rm.MoveTo(pmetric.NewResourceMetrics())
		}
	},
	"removes a resource": func(md pmetric.Metrics) {
		removeFirst(md.ResourceMetrics().RemoveIf)
	},
	"adds a resource": func(md pmetric.Metrics) { md.ResourceMetrics().AppendEmpty() },
	"removes a scope": func(md pmetric.Metrics) { removeFirst(md.ResourceMetrics().At(0).ScopeMetrics().RemoveIf) },
	"adds a scope":    func(md pmetric.Metrics) { md.ResourceMetrics().At(0).ScopeMetrics().AppendEmpty() },
	"changes a resource": func(md pmetric.Metrics) {
		md.ResourceMetrics().At(0).Resource().Attributes().PutStr("service.name", "another")
	},
	"adds to a resource": func(md pmetric.Metrics) { md.ResourceMetrics().At(0).Resource().Attributes().PutStr("cluster", "c") },
	"renames a scope":    func(md pmetric.Metrics) { md.ResourceMetrics().At(0).ScopeMetrics().At(0).Scope().SetName("another") },
	"removes a metric":   func(md pmetric.Metrics) { removeFirst(firstMetrics(md).RemoveIf) },
	"removes all metrics": func(md pmetric.Metrics) {
		firstMetrics(md).RemoveIf(func(pmetric.Metric) bool { return true })
	},
	"adds a metric": func(md pmetric.Metrics) { firstMetrics(md).AppendEmpty().SetEmptyGauge().DataPoints().AppendEmpty() },
	"swaps metrics": func(md pmetric.Metrics) {
		sorted := 0
		firstMetrics(md).Sort(func(_, _ pmetric.Metric) bool { sorted++; return sorted%2 == 0 })
	},
	"reverses metrics": func(md pmetric.Metrics) {
		firstMetrics(md).Sort(func(a, b pmetric.Metric) bool { return a.Name() > b.Name() })
	},
	"renames metrics":      func(md pmetric.Metrics) { eachMetric(md, func(m pmetric.Metric) { m.SetName(m.Name() + "_x") }) },
	"changes descriptions": func(md pmetric.Metrics) { eachMetric(md, func(m pmetric.Metric) { m.SetDescription("another") }) },
	"changes units":        func(md pmetric.Metrics) { eachMetric(md, func(m pmetric.Metric) { m.SetUnit("By") }) },
	"adds to metadata":     func(md pmetric.Metrics) { eachMetric(md, func(m pmetric.Metric) { m.Metadata().PutStr("a", "b") }) },
	"changes types":        func(md pmetric.Metrics) { eachMetric(md, func(m pmetric.Metric) { m.SetEmptyExponentialHistogram() }) },
	"takes data":           func(md pmetric.Metrics) { eachMetric(md, func(m pmetric.Metric) { m.MoveTo(pmetric.NewMetric()) }) },
	"removes points":       func(md pmetric.Metrics) { eachPoints(md, func(s points) { s.clear() }) },
	"removes the first":    func(md pmetric.Metrics) { eachPoints(md, func(s points) { s.removeFirst() }) },
	"adds a point":         func(md pmetric.Metrics) { eachPoints(md, func(s points) { s.add() }) },
	"replaces the first":   func(md pmetric.Metrics) { eachPoints(md, func(s points) { s.removeFirst(); s.add() }) },
	"reverses points":      func(md pmetric.Metrics) { eachPoints(md, func(s points) { s.reverse() }) },
	"adds attributes":      func(md pmetric.Metrics) { eachAttributes(md, func(m pcommon.Map) { m.PutStr("a", "b") }) },
	"clears attributes":    func(md pmetric.Metrics) { eachAttributes(md, func(m pcommon.Map) { m.Clear() }) },
	"adds more than counts": func(md pmetric.Metrics) {
		eachAttributes(md, func(m pcommon.Map) { m.PutInt("a", 1); m.PutBool("b", true) })
	},
	"makes delta of cumulative": func(md pmetric.Metrics) {
		eachMetric(md, func(m pmetric.Metric) {
			switch m.Type() {
			case pmetric.MetricTypeSum:
				m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
			case pmetric.MetricTypeHistogram:
				m.Histogram().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
			default:
			}
		})
	},
	"makes sums fall": func(md pmetric.Metrics) {
		eachMetric(md, func(m pmetric.Metric) {
			if m.Type() == pmetric.MetricTypeSum {
				m.Sum().SetIsMonotonic(false)
			}
		})
	},
	"sets flags": func(md pmetric.Metrics) {
		eachNumber(md, func(dp pmetric.NumberDataPoint) { dp.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true)) })
	},
	"adds exemplars": func(md pmetric.Metrics) {
		eachNumber(md, func(dp pmetric.NumberDataPoint) { dp.Exemplars().AppendEmpty().SetDoubleValue(1) })
	},
	"makes integers": func(md pmetric.Metrics) {
		eachNumber(md, func(dp pmetric.NumberDataPoint) { dp.SetIntValue(1) })
	},
	"changes values and times": func(md pmetric.Metrics) {
		eachNumber(md, func(dp pmetric.NumberDataPoint) {
			dp.SetDoubleValue(-1)
			dp.SetTimestamp(1)
			dp.SetStartTimestamp(1)
		})
	},
	"changes buckets and quantiles": func(md pmetric.Metrics) {
		eachMetric(md, func(m pmetric.Metric) {
			switch m.Type() {
			case pmetric.MetricTypeHistogram:
				for _, dp := range m.Histogram().DataPoints().All() {
					dp.ExplicitBounds().FromRaw([]float64{1, 2, 3})
					dp.BucketCounts().FromRaw(nil)
					dp.SetSum(-1)
					dp.SetMin(-1)
				}
			case pmetric.MetricTypeSummary:
				for _, dp := range m.Summary().DataPoints().All() {
					dp.QuantileValues().RemoveIf(func(pmetric.SummaryDataPointValueAtQuantile) bool { return true })
				}
			default:
			}
		})
	},
	"overwrites all": handback.Overwrite,
	"copies over": func(md pmetric.Metrics) {
		other := pmetric.NewMetrics()
		other.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetEmptySummary()
		other.CopyTo(md)
	},
	"makes them read-only": func(md pmetric.Metrics) { md.MarkReadOnly() },
}

func firstMetrics(md pmetric.Metrics) pmetric.MetricSlice {
	return md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
}

func removeFirst[P any](removeIf func(func(P) bool)) {
	removed := false
	removeIf(func(P) bool {
		was := removed
		removed = true
		return !was
	})
}

func eachMetric(md pmetric.Metrics, f func(pmetric.Metric)) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				f(m)
			}
		}
	}
}

// points has the operations that points of all types share.
type points struct {
	clear, removeFirst, add, reverse func()
	attributes                       []pcommon.Map
}

func eachPoints(md pmetric.Metrics, f func(points)) {
	eachMetric(md, func(m pmetric.Metric) {
		switch m.Type() {
		case pmetric.MetricTypeGauge:
			f(pointsOf(m.Gauge().DataPoints()))
		case pmetric.MetricTypeSum:
			f(pointsOf(m.Sum().DataPoints()))
		case pmetric.MetricTypeHistogram:
			f(pointsOf(m.Histogram().DataPoints()))
		case pmetric.MetricTypeSummary:
			f(pointsOf(m.Summary().DataPoints()))
		case pmetric.MetricTypeExponentialHistogram:
			f(pointsOf(m.ExponentialHistogram().DataPoints()))
		default:
		}
	})
}

func pointsOf[P interface {
	comparable
	Attributes() pcommon.Map
}, S interface {
	At(i int) P
	AppendEmpty() P
	RemoveIf(f func(P) bool)
	Len() int
	Sort(less func(a, b P) bool)
}](s S) points {
	var maps []pcommon.Map
	order := map[P]int{}
	for i := range s.Len() {
		maps = append(maps, s.At(i).Attributes())
		order[s.At(i)] = i
	}
	return points{
		clear:       func() { s.RemoveIf(func(P) bool { return true }) },
		removeFirst: func() { removeFirst(s.RemoveIf) },
		add:         func() { s.AppendEmpty() },
		reverse:     func() { s.Sort(func(a, b P) bool { return order[a] > order[b] }) },
		attributes:  maps,
	}
}

func eachAttributes(md pmetric.Metrics, f func(pcommon.Map)) {
	eachPoints(md, func(s points) {
		for _, m := range s.attributes {
			f(m)
		}
	})
}

func eachNumber(md pmetric.Metrics, f func(pmetric.NumberDataPoint)) {
	eachMetric(md, func(m pmetric.Metric) {
		switch m.Type() {
		case pmetric.MetricTypeGauge:
			for _, dp := range m.Gauge().DataPoints().All() {
				f(dp)
			}
		case pmetric.MetricTypeSum:
			for _, dp := range m.Sum().DataPoints().All() {
				f(dp)
			}
		default:
		}
	})
}

// mixedPage returns a page with all types, several series of each, and series that come and go.
func mixedPage(n int, honored bool) string {
	var b strings.Builder
	b.WriteString("# HELP g Help.\n# TYPE g gauge\n")
	for i := range 5 + n%2 {
		fmt.Fprintf(&b, "g{a=\"%d\"} %d\n", i, i*n)
	}
	b.WriteString("# TYPE c_total counter\n")
	for i := range 4 {
		fmt.Fprintf(&b, "c_total{a=\"%d\",b=\"x\"} %d\n", i, i+n)
	}
	b.WriteString("# TYPE h histogram\n")
	for i := range 3 {
		fmt.Fprintf(&b, "h_bucket{a=\"%d\",le=\"1\"} %d\nh_bucket{a=\"%d\",le=\"+Inf\"} %d\nh_sum{a=\"%d\"} %d\nh_count{a=\"%d\"} %d\n", i, n, i, 2*n+i, i, n, i, 2*n+i)
	}
	b.WriteString("# TYPE s summary\n")
	for i := range 3 {
		fmt.Fprintf(&b, "s{a=\"%d\",quantile=\"0.5\"} %d\ns_sum{a=\"%d\"} %d\ns_count{a=\"%d\"} %d\n", i, n+i, i, n, i, n)
	}
	if honored {
		fmt.Fprintf(&b, "other{job=\"another\",instance=\"i\"} %d\nscoped{otel_scope_name=\"scope\"} %d\n", n, n)
	}
	return b.String()
}

// Whatever a consumer does to metrics, the next ones are not affected, and the change is detected. If changes of
// attributes are undone, they count as harmless.
func TestNeighboursThatBreakTheirPromise(t *testing.T) {
	racetest.Sequential(t)
	harmless := []string{"leaves them", "makes them read-only"}
	changing := []string{"changes a resource", "adds to a resource", "adds attributes", "clears attributes", "adds more than counts"}
	// With processors that remove metrics, resources are written anew each time. What was moved out of removed ones is
	// not looked for.
	removing := []string{
		"moves resources", "removes a resource", "removes a scope", "removes a metric", "removes all metrics",
		"removes points", "removes the first", "changes a resource", "adds to a resource",
	}
	for _, told := range []handback.Changes{{}, both, {Removes: true}, everything} {
		for _, poison := range []bool{false, true} {
			for name, touch := range neighbours {
				for _, kind := range neighbourhoods {
					t.Run(fmt.Sprintf("%s/%s/put back=%s/poison=%v", name, kind, told, poison), func(t *testing.T) {
						t.Cleanup(handback.Poison(poison))
						said := testNeighbour(t, kind, told, touch)
						switch {
						case slices.Contains(harmless, name), told.Points && slices.Contains(changing, name), told.Removes && slices.Contains(removing, name):
							require.False(t, said)
						case kind != "large" && !poison:
							require.True(t, said, "a change is told from none")
						}
					})
				}
			}
		}
	}
}

// neighbourhoods are kinds of pages.
var neighbourhoods = []string{"one scope", "several", "large"}

// testNeighbour scrapes pages for two targets, with and without a consumer that changes metrics. It returns whether
// changes were reported.
func testNeighbour(t *testing.T, kind string, told handback.Changes, touch func(pmetric.Metrics)) (said bool) {
	t.Helper()
	var targets [2][2]*Target
	for i, reuse := range []bool{false, true} {
		cfg := testScrapeConfig()
		cfg.HonorLabels = kind == "several"
		j := newTestJob(t, Config{Scrape: cfg, Reuse: reuse, Changes: told})
		if kind == "large" {
			setParts(j, 4, 8)
		}
		targets[i] = [2]*Target{testTarget(j, 1), testTarget(j, 2)}
	}
	for n := range 8 {
		page, at := mixedPage(n/2, kind == "several"), start.Add(time.Duration(n)*time.Second)
		for k := range 2 { // both share a plan and its trees
			want, is := show(targets[0][k], at, typeText, page, 1<<20), show(targets[1][k], at, typeText, page, 1<<20)
			require.Equal(t, kind == "large", is.parts != nil)
			for {
				require.Equal(t, canon(want.Metrics), canon(is.Metrics), "page %d of target %d", n, k)
				if is.Metrics.DataPointCount() > 0 {
					touch(is.Metrics)
				}
				if is.Pending() == 0 {
					break
				}
				want, is = want.Next(), is.Next()
			}
			is.Release()
		}
	}
	return targets[1][0].cohort.job.tree.Changed.Load()
}

// Metrics that are handed back unchanged are reused for the next scrape.
func TestMetricsThatComeBackAreFilledAgain(t *testing.T) {
	for _, poison := range []bool{false, true} {
		t.Cleanup(handback.Poison(poison))
		target := testTarget(newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: true}), 1)
		var last pmetric.Metrics
		for n := range 5 {
			r := show(target, start.Add(time.Duration(n)*time.Second), typeText, mixedPage(0, false), 1<<20)
			if n > 1 {
				require.Equal(t, last, r.Metrics)
				require.True(t, last == r.Metrics) //nolint:testifylint // the same, not equal
			}
			last = r.Metrics
			r.Release()
		}
	}
}

// A consumer that keeps metrics after handing them back finds them overwritten, for all kinds of pages.
func TestKeepersFindPoison(t *testing.T) {
	t.Cleanup(handback.Poison(true))
	for _, kind := range []string{"tree", "passing", "large"} {
		j := newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: true})
		large := kind == "large"
		switch kind {
		case "large":
			setParts(j, 4, 8)
		case "passing":
			j.tree.Idle = noTrees
		}
		target := testTarget(j, 1)
		var kept []pmetric.NumberDataPoint
		for r := show(target, start, typeText, mixedPage(3, false), 1<<20); ; r = r.Next() {
			eachNumber(r.Metrics, func(dp pmetric.NumberDataPoint) { kept = append(kept, dp) })
			if r.Pending() == 0 {
				r.Release()
				break
			}
		}
		found := 0
		for _, dp := range kept {
			if handback.IsPoison(dp.DoubleValue()) {
				found++
			}
		}
		require.GreaterOrEqual(t, found, 4, "the last of a large page's parts, and all of another's")
		if !large {
			require.Len(t, kept, found)
		}
	}
}

// What a consumer moved out of metrics belongs to it from then on, although it had promised not to change them.
func TestWhatWasMovedAwayIsLeftAlone(t *testing.T) {
	for _, move := range []func(md, mine pmetric.Metrics){
		func(md, mine pmetric.Metrics) { md.MoveTo(mine) },
		func(md, mine pmetric.Metrics) { md.ResourceMetrics().MoveAndAppendTo(mine.ResourceMetrics()) },
		func(md, mine pmetric.Metrics) {
			firstMetrics(md).MoveAndAppendTo(mine.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics())
		},
	} {
		for _, part := range []int{4, 1000} {
			j := newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: true})
			if part == 4 {
				setParts(j, 4, 8)
			}
			target := testTarget(j, 1)
			var moved []pmetric.Metrics
			var were [][]string
			for n := range 4 {
				r := show(target, start, typeText, mixedPage(n, false), 1<<20)
				for more := true; more; {
					mine := pmetric.NewMetrics()
					move(r.Metrics, mine)
					moved, were = append(moved, mine), append(were, canon(mine))
					if more = r.Pending() > 0; more {
						r = r.Next()
					}
				}
				r.Release()
			}
			for i, mine := range moved {
				require.Equal(t, were[i], canon(mine))
			}
		}
	}
}

// Trees that are overwritten when they are handed back, and restored before their reuse, have the same results.
func TestPoisonChangesNothing(t *testing.T) {
	racetest.Sequential(t)
	t.Cleanup(handback.Poison(true))
	for seed := range uint64(16) {
		checkSequence(t, seed, 20)
	}
}
