// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	rand "math/rand/v2"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
)

// Each of these tests is about a known defect of limiters.

// A limiter that does not count the series that it is asked about never limits.
func TestLimitHoldsInSteadyState(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Rules = []RuleConfig{{Name: "r", GroupBy: []string{"service"}, MaxSeries: 10}}
	})
	for round := range 100 {
		passed := map[string]bool{}
		for i := range 50 {
			p := aSeries(i*100 + round%100)
			p.resource = attrs{"service": "a"}
			for _, id := range r.send(p, aSeries(i)) {
				passed[id] = true
			}
		}
		require.LessOrEqual(t, len(passed), 20)
		require.LessOrEqual(t, r.gaugeNow("r"), int64(20))
		r.epochs(1)
	}
}

// A key without the metric's name counts two metrics as one; one that only reads strings misses ids that are numbers.
func TestSeriesKeyIsWhole(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Memory.MaxSeries = 4 })
	a, b := aSeries(1), aSeries(1)
	b.name = "other"
	require.Equal(t, []bool{true, true, true, true, false, false}, r.passes(
		a, b, aSeries(2), point{name: "m", attrs: attrs{"i": 1.0}},
		point{name: "m", attrs: attrs{"i": true}}, point{name: "m", attrs: attrs{"i": ""}},
	))
}

// Points of one metric may belong to different rules and groups: the first one does not decide for the rest.
func TestEachPointIsDecidedByItself(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Rules = []RuleConfig{{
			Name: "r", GroupBy: []string{"attribute:g"}, MaxSeries: 1,
			Match: MatchConfig{Attributes: map[string]string{"limited": "yes"}},
		}}
	})
	md := pmetric.NewMetrics()
	points := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetEmptyGauge().DataPoints()
	for i := range 12 {
		a := points.AppendEmpty().Attributes()
		a.PutInt("i", int64(i))
		a.PutStr("g", strconv.Itoa(i%2))
		a.PutStr("limited", []string{"yes", "no"}[i%3/2])
	}
	require.Equal(t, 4+2, r.consume(md).DataPointCount(), "all of no, and one of each group of yes")
}

// If all series lose their place at the end of a window, the race for places starts again and again.
func TestPlacesOutliveAnyWindow(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Memory.MaxSeries = 3 })
	require.Equal(t, []bool{true, true, true}, r.passes(aSeries(1), aSeries(2), aSeries(3)))
	for range 100 {
		r.epochs(7)
		points := []point{aSeries(9), aSeries(8), aSeries(7), aSeries(3), aSeries(2), aSeries(1)}
		require.Len(t, r.send(points...), 3, "newcomers come first and still find no room")
	}
}

// A request must not lose its established points because it also contains a new one.
func TestNewcomerDoesNotTakeItsNeighboursDown(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Memory.MaxSeries = 2 })
	r.send(aSeries(1), aSeries(2))
	require.Equal(t, []string{aSeries(1).identity(), aSeries(2).identity()}, r.send(aSeries(1), aSeries(3), aSeries(2)))
}

// A limit of a rule with groups applies to each group: the first example that everybody writes.
func TestQuotaIsPerGroup(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Rules = []RuleConfig{{Name: "r", GroupBy: []string{"resource:team"}, MaxSeries: 5}}
	})
	for team := range 10 {
		passed := 0
		for i := range 20 {
			p := aSeries(i)
			p.resource = attrs{"team": int64(team)}
			passed += len(r.send(p))
		}
		require.Equal(t, 5, passed)
	}
}

// When a label is removed, points with the same identity remain, which must be merged.
func TestCollapsedPointsBecomeOne(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Rules = []RuleConfig{{
			Name: "r", LabelLimits: map[string]int{"user": 0}, Exceed: ExceedConfig{OnExceed: []string{"collapse"}},
		}}
	})
	for round := range 3 {
		md := pmetric.NewMetrics()
		for i := range 10 {
			appendPoint(md, point{name: "m", kind: delta, value: 1, attrs: attrs{"user": strconv.Itoa(i), "route": strconv.Itoa(i % 2)}})
		}
		requireNoDuplicates(t, r.consume(md))
		points := onlyMetric(t, r.flushed(time.Minute)).Sum().DataPoints()
		require.Equal(t, 2, points.Len(), "round %d", round)
		require.InDelta(t, 5, points.At(0).DoubleValue(), 0)
	}
}

// A tenant's quota with a single limit must not treat the missing ones as zero, nor count two orders of the same
// attributes as two series.
func TestTenantQuotaWithOneLimit(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Tenant.From = []string{"resource:tenant"}
		c.Rules = []RuleConfig{{Name: "r", GroupBy: []string{"tenant"}, MaxSeries: 1}}
	})
	for round := range 10 {
		md := metricsOf(point{name: "m", kind: gauge, resource: attrs{"tenant": "a"}})
		a := amount.AttributesAt(md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0), 0)
		keys := []string{"x", "y"}
		a.PutStr(keys[round%2], "1")
		a.PutStr(keys[1-round%2], "1")
		require.Equal(t, 1, r.consume(md).DataPointCount())
		r.epochs(1)
	}
	require.Equal(t, int64(1), r.gaugeNow("r"))
}

// Marks in the data would create new identities, which alternate.
func TestAdmittedDataIsNotMarked(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Memory.MaxSeries = 20
		c.Rules = []RuleConfig{{Name: "r", MaxSeries: 10, LabelLimits: map[string]int{"i": 5}}}
	})
	for i := range 5 {
		md := metricsOf(aSeries(i))
		want := pmetric.NewMetrics()
		md.CopyTo(want)
		for range 3 {
			require.Equal(t, want, r.consume(md))
			r.epochs(1)
		}
	}
}

// Unlimited groups with a sketch each may exhaust memory, and make the limiter fail open.
func TestHostileLabelsTakeNoMemory(t *testing.T) {
	racetest.Sequential(t)
	for _, onExceed := range [][]string{{"drop"}, {"collapse", "overflow"}, {"collapse_worst", "overflow"}} {
		t.Run(onExceed[0], func(t *testing.T) { testHostileLabels(t, onExceed) })
	}
}

func testHostileLabels(t *testing.T, onExceed []string) {
	r := newRig(t, func(c *Config) {
		c.Memory.MaxSeries, c.Memory.MaxGroups, c.Memory.OverflowStateMiB = 20_000, 1000, 1
		c.Defaults.Exceed = ExceedConfig{OnExceed: onExceed, KeepLabels: []string{"id", "x"}}
		c.Rules = []RuleConfig{
			{Name: "groups", GroupBy: []string{"attribute:id"}, MaxSeries: 10, Match: MatchConfig{Attributes: map[string]string{"id": "*"}}},
			{Name: "labels", LabelLimits: map[string]int{"user": 100}},
			{Name: "metric", GroupBy: []string{"metric"}, MaxSeries: 5000, Adaptive: AdaptiveConfig{ShareBy: []string{"x"}}},
		}
	})
	random := rand.New(rand.NewPCG(1, 2))
	healthy := make([]point, 50)
	for i := range healthy {
		healthy[i] = aSeries(i)
	}
	require.Len(t, r.send(healthy...), len(healthy))
	flood := func(rounds int) uint64 {
		for round := range rounds {
			hostile := make([]point, 500)
			for i := range hostile {
				id := fmt.Sprintf("%x", random.Uint64())
				hostile[i] = point{name: "hostile", kind: kind(i % int(kinds)), attrs: []attrs{{"id": id}, {"user": id}, {"x": id}}[i%3]}
			}
			r.send(hostile...)
			if round%10 == 0 {
				require.Len(t, r.send(healthy...), len(healthy), "healthy metrics do not notice")
				r.flush(t.Context())
				r.sink.Reset()
				r.epochs(1)
			}
		}
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	first := flood(50)
	require.Less(t, flood(120), first+2<<20)
	require.LessOrEqual(t, len(r.Limiter.Groups.Ids), 1003)
}

// A steady explosion is still detected after hours.
func TestSteadyExplosionIsSeen(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Defaults.MaxSeriesPerMetric = 100 })
	for i := range 5000 {
		passed := len(r.send(aSeries(i))) == 1
		require.LessOrEqual(t, r.gaugeNow("defaults"), int64(100))
		require.True(t, passed || r.gaugeNow("defaults") == 100)
		if i%50 == 0 {
			r.epochs(1)
		}
	}
}

// Known series, new series and expiry at the same time: limits hold, and series that stay are not interrupted.
func TestLimitsHoldUnderConcurrency(t *testing.T) {
	const writers, own, limit = 3, 40, 200
	r := newRig(t, func(c *Config) {
		c.Rules = []RuleConfig{{Name: "r", GroupBy: []string{"service"}, MaxSeries: limit}}
	})
	for i := range writers * own { // the first ones arrive before the race begins
		require.Len(t, r.send(aSeries(i)), 1)
	}
	var done sync.WaitGroup
	failed := make(chan string, writers)
	lap := make(chan struct{})
	for w := range writers {
		done.Go(func() {
			stay := make([]point, own)
			for i := range stay {
				stay[i] = aSeries(w*own + i)
			}
			random := rand.New(rand.NewPCG(uint64(w), 0))
			for range 150 {
				for range 20 {
					md := metricsOf(append([]point{aSeries(1000 + random.IntN(5000))}, stay...)...)
					out, _ := r.process(t.Context(), md)
					if n := out.DataPointCount(); n < own {
						failed <- fmt.Sprintf("writer %d lost %d of its series", w, own-n)
						return
					}
				}
				lap <- struct{}{}
			}
		})
	}
	go func() {
		done.Wait()
		close(lap)
	}()
	n := 0
	for range lap {
		if n++; n%writers == 0 {
			r.epochs(1)
		}
		if used := r.gaugeNow("r"); used > limit {
			t.Errorf("%d series, limit %d", used, limit)
		}
	}
	select {
	case why := <-failed:
		t.Fatal(why)
	default:
	}
	requireWithinLimits(t, r)
}

// Actions that are only taken beyond a limit come too late: each has a limit of its own, at which it is taken.
func TestEarlierStepsAreTakenEarlier(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Memory.MaxSeries = 1000
		c.Rules = []RuleConfig{
			{Name: "labels", LabelLimits: map[string]int{"user": 3}, Exceed: ExceedConfig{OnExceed: []string{"collapse"}}},
			{Name: "soft", MaxSeries: 8, Exceed: ExceedConfig{OnExceed: []string{"sample"}, SampleRate: 0.5}},
			{Name: "hard", MaxSeries: 10},
		}
	})
	for i := range 10 {
		r.send(point{name: "m", kind: delta, attrs: attrs{"user": strconv.Itoa(i)}})
	}
	require.Equal(t, int64(7), r.rejected("labels", "label_limit", "collapse"), "at 3 of 1000 series")
	require.Equal(t, int64(4), r.gaugeNow("total"))
	for i := range 20 {
		r.send(aSeries(i))
	}
	require.Equal(t, int64(8), r.gaugeNow("hard"), "the soft limit is met before the hard one")
	require.Equal(t, int64(16), r.rejected("soft", "max_series", "sample")+r.rejected("soft", "max_series", "drop"))
	require.Positive(t, r.rejected("soft", "max_series", "sample"))
}

// A key that is parsed but never read promises something that is not done.
func TestEveryKeyIsRead(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	inside, err := filepath.Glob("internal/*/*.go")
	require.NoError(t, err)
	files = append(files, inside...)
	read := map[string]bool{}
	for _, name := range files {
		if filepath.Base(name) == "config.go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok {
				read[selector.Sel.Name] = true
			}
			return true
		})
	}
	var all func(reflect.Type)
	all = func(of reflect.Type) {
		switch of.Kind() {
		case reflect.Slice:
			all(of.Elem())
		case reflect.Struct:
			for i := range of.NumField() {
				if field := of.Field(i); field.IsExported() && of.PkgPath() == reflect.TypeFor[Config]().PkgPath() {
					require.True(t, read[field.Name], "nobody reads %s of %s", field.Name, of)
					all(field.Type)
				}
			}
		default:
		}
	}
	all(reflect.TypeFor[Config]())
}

// Rules that are read while they change are neither the old nor the new ones.
func TestRulesChangeWhileBatchesPass(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Memory.MaxSeries = 500 })
	stop := make(chan struct{})
	var done sync.WaitGroup
	for w := range 2 {
		done.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				for j := range 20 {
					_, _ = r.process(t.Context(), metricsOf(aSeries(w*1000+i%100*20+j)))
				}
			}
		})
	}
	for i := range 200 {
		cfg := *r.cfg
		cfg.Rules = []RuleConfig{{Name: "r" + strconv.Itoa(i%3), MaxSeries: 100 + i%7, GroupBy: []string{"attribute:i"}[:i%2]}}
		adaptive(50 + i)(&cfg)
		r.Apply(&cfg)
		r.epochs(1)
	}
	close(stop)
	done.Wait()
	require.LessOrEqual(t, r.gaugeNow("total"), int64(500))
	requireWithinLimits(t, r)
}

// When the clock jumps, no series loses its place or waits for the clock to return, and nothing ends before its start.
func TestClockJumps(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 14))
	r := newRig(t, func(c *Config) {
		overflowing(10)(c)
		c.Rules = append(c.Rules, RuleConfig{Name: "pace", MaxPointsPerSecond: 1000, MaxNewSeriesPerMinute: 1000})
	})
	admitted, more := make([]point, 10), make([]point, 10)
	for i := range admitted {
		admitted[i], more[i] = aSeries(i), aSeries(100+i)
		more[i].kind, more[i].value = delta, 1
	}
	sum := 0.0
	for range 200 {
		r.clock = r.clock.Add(time.Duration(random.Int64N(int64(20000*time.Hour))) - 10000*time.Hour)
		require.Len(t, r.send(admitted...), 10)
		require.Empty(t, r.send(more...))
		for _, rm := range r.flushed(time.Second).ResourceMetrics().All() {
			dp := rm.ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(0)
			require.LessOrEqual(t, dp.StartTimestamp(), dp.Timestamp())
			sum += dp.DoubleValue()
		}
		r.epochs(1)
	}
	require.InDelta(t, 2000, sum, 0)
}
