// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

func aSeries(i int) point { return point{name: "m", kind: cumulative, attrs: attrs{"i": int64(i)}} }

func TestTotalLimit(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Memory.MaxSeries = 2 })
	require.Equal(t, []bool{true, true, false, true, false}, r.passes(aSeries(1), aSeries(2), aSeries(3), aSeries(1), aSeries(3)))
	require.Equal(t, int64(2), r.rejected("total", "max_series", "drop"))
	require.Equal(t, int64(2), r.gauge("series", "total"))
	require.Equal(t, int64(1), r.gauge("groups", "total"))
}

func TestIdleSeriesMakeRoom(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Memory.MaxSeries = 1 })
	require.Equal(t, []bool{true, false}, r.passes(aSeries(1), aSeries(2)))
	for range 4 {
		r.epochs(moment.IdleEpochs)
		require.Equal(t, []bool{true, false}, r.passes(aSeries(1), aSeries(2)), "an active series keeps its place")
	}
	r.idle()
	require.Equal(t, []bool{true, false}, r.passes(aSeries(2), aSeries(1)))
	require.Equal(t, int64(1), r.gauge("series", "total"))
	r.idle()
	require.Zero(t, r.gauge("series", "total"))
	require.Zero(t, r.gauge("groups", "total"), "groups without series are forgotten")
}

func TestLimitPerMetric(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Defaults.MaxSeriesPerMetric = 1 })
	other := aSeries(2)
	other.name = "other"
	require.Equal(t, []bool{true, false, true}, r.passes(aSeries(1), aSeries(2), other))
	require.Equal(t, int64(1), r.rejected("defaults", "max_series", "drop"))
}

func TestLimitPerGroup(t *testing.T) {
	of := func(by string, a, b point) []bool {
		r := newRig(t, func(c *Config) {
			c.Rules = []RuleConfig{{Name: "r", MaxSeries: 1, GroupBy: []string{by}}}
		})
		return r.passes(a, b)
	}
	a := point{name: "m", resource: attrs{"service": "a", "both": "x"}, attrs: attrs{"k": "1", "i": int64(1), "both": "1"}}
	b := point{name: "m", resource: attrs{"service": "b", "both": "x"}, attrs: attrs{"k": "2", "i": int64(1), "both": "2"}}
	same, apart := []bool{true, false}, []bool{true, true}
	require.Equal(t, same, of("metric", a, b))
	require.Equal(t, apart, of("resource:service", a, b))
	require.Equal(t, same, of("resource:k", a, b))
	require.Equal(t, apart, of("attribute:k", a, b))
	require.Equal(t, same, of("attribute:i", a, b), "of any type")
	require.Equal(t, same, of("attribute:service", a, b))
	require.Equal(t, apart, of("service", a, b))
	require.Equal(t, apart, of("k", a, b))
	require.Equal(t, same, of("both", a, b), "the resource comes first")
	require.Equal(t, same, of("missing", a, b), "those without are a group")
}

func TestLimitPerTenant(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Tenant.From = []string{"metadata:x-scope-orgid", "resource:tenant.id"}
		c.Rules = []RuleConfig{{Name: "r", MaxSeries: 1, GroupBy: []string{"tenant"}}}
	})
	send := func(header string, p point) bool {
		ctx := client.NewContext(t.Context(), client.Info{
			Metadata: client.NewMetadata(map[string][]string{"X-Scope-OrgID": {header}}),
		})
		_, err := r.process(ctx, metricsOf(p))
		return err == nil
	}
	require.True(t, send("a", aSeries(1)))
	require.False(t, send("a", aSeries(2)))
	require.True(t, send("b", aSeries(1)), "the same series of another tenant is another series")
	require.False(t, send("b", aSeries(2)))
	withResource := aSeries(2)
	withResource.resource = attrs{"tenant.id": "b"}
	require.False(t, send("", withResource))
	withResource.resource = attrs{"tenant.id": "c"}
	require.True(t, send("", withResource))
}

func TestPlacesAreTakenInAllLimitsOrInNone(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Rules = []RuleConfig{
			{Name: "wide", MaxSeries: 3},
			{Name: "labels", LabelLimits: map[string]int{"l": 2}},
			{Name: "narrow", MaxSeries: 1, GroupBy: []string{"attribute:g"}},
		}
	})
	p := func(g, l string) point { return point{name: "m", attrs: attrs{"g": g, "l": l}} }
	require.Equal(t, []bool{true, false, false, true, false}, r.passes(
		p("a", "1"), p("a", "2"), p("a", "3"), // no place in narrow, so none in wide, and no value of l
		p("b", "2"), p("c", "3"),
	))
	require.Equal(t, int64(2), r.gauge("series", "wide"))
	require.Equal(t, int64(2), r.rejected("narrow", "max_series", "drop"))
	require.Equal(t, int64(1), r.rejected("labels", "label_limit", "drop"))
	require.Equal(t, []bool{true, false}, r.passes(p("c", "2"), p("d", "2")))
	require.Equal(t, int64(1), r.rejected("wide", "max_series", "drop"))
}

func TestLabelLimits(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Rules = []RuleConfig{{Name: "r", GroupBy: []string{"service"}, LabelLimits: map[string]int{"route": 2, "user": 0}}}
	})
	p := func(service string, a attrs) point {
		return point{name: "m", resource: attrs{"service": service}, attrs: a}
	}
	require.Equal(t, []bool{true, true, false, true, true, false}, r.passes(
		p("a", attrs{"route": "/"}), p("a", attrs{"route": int64(1)}), p("a", attrs{"route": "/3"}),
		p("a", attrs{"route": "/", "more": "x"}), // no new value
		p("b", attrs{"route": "/3"}),
		p("b", attrs{"route": "/3", "user": "u"}),
	))
	for range 4 {
		r.epochs(moment.IdleEpochs)
		require.Equal(t, []bool{true, true}, r.passes(p("a", attrs{"route": "/"}), p("a", attrs{"route": "/", "more": "x"})))
	}
	require.Equal(t, []bool{true, false}, r.passes(p("a", attrs{"route": "/3"}), p("a", attrs{"route": "/4"})), "one value was idle")
}

func TestExempt(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Memory.MaxSeries = 1
		c.Exempt = []MatchConfig{
			{Metric: "otelcol_*"},
			{Resource: map[string]string{"env": "prod"}, Attributes: map[string]string{"i": "*"}},
		}
	})
	require.Equal(t, []bool{true, true, true, true, true, false, false}, r.passes(
		aSeries(1),
		point{name: "otelcol_x"}, point{name: "otelcol_y"},
		point{name: "x", resource: attrs{"env": "prod"}, attrs: attrs{"i": "1"}},
		point{name: "x", resource: attrs{"env": "prod"}, attrs: attrs{"i": "2"}},
		point{name: "x", resource: attrs{"env": "prod"}, attrs: attrs{"j": "2"}},
		point{name: "x", resource: attrs{"env": "test"}, attrs: attrs{"i": "2"}},
	))
	require.Equal(t, int64(1), r.gauge("series", "total"))
}

func TestRulesMatchByMetricResourceAndAttributes(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Rules = []RuleConfig{{Name: "r", MaxSeries: 1, Match: MatchConfig{
			Metric: "http.*", Resource: map[string]string{"env": "prod"}, Attributes: map[string]string{"code": "5*"},
		}}}
	})
	p := func(name, env string, code int64, i int) point {
		return point{name: name, resource: attrs{"env": env}, attrs: attrs{"code": code, "i": int64(i)}}
	}
	require.Equal(t, []bool{true, false, true, true, true}, r.passes(
		p("http.x", "prod", 500, 1), p("http.x", "prod", 500, 2),
		p("rpc.x", "prod", 500, 3), p("http.x", "test", 500, 4), p("http.x", "prod", 200, 5),
	))
	require.Equal(t, int64(1), r.gauge("series", "r"))
}

func TestGroupsAreBounded(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Memory.MaxGroups = 10
		c.Rules = []RuleConfig{{Name: "r", MaxSeries: 5, GroupBy: []string{"attribute:i"}}}
	})
	for i := range 1000 {
		require.Equal(t, i < 10, r.passes(aSeries(i))[0])
	}
	require.Equal(t, int64(990), r.rejected("total", "max_groups", "drop"))
	require.LessOrEqual(t, len(r.Limiter.Groups.Groups), 11)
	more := aSeries(1)
	more.attrs = attrs{"i": int64(1), "j": "more"}
	require.Equal(t, []bool{true}, r.passes(more), "known groups still have room")
}

func TestEmptiedContainersAreRemoved(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Memory.MaxSeries = 1 })
	md := metricsOf(aSeries(1), aSeries(2))
	md.ResourceMetrics().At(1).ScopeMetrics().At(0).Metrics().At(0).CopyTo(
		md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().AppendEmpty(),
	)
	out := r.consume(md)
	require.Equal(t, 1, out.ResourceMetrics().Len())
	require.Equal(t, 1, out.MetricCount())
	require.Empty(t, r.send(aSeries(2)))
}

func TestAllKindsAreLimited(t *testing.T) {
	for k := range kinds {
		t.Run(strconv.Itoa(int(k)), func(t *testing.T) {
			r := newRig(t, func(c *Config) { c.Memory.MaxSeries = 1 })
			a, b := aSeries(1), aSeries(2)
			a.kind, b.kind = k, k
			require.Equal(t, []bool{true, false, true}, r.passes(a, b, a))
		})
	}
}

func TestGlob(t *testing.T) {
	f := func(pattern, s string, want bool) {
		t.Helper()
		require.Equal(t, want, policy.Glob(pattern).Match(s), "%q %q", pattern, s)
	}
	f("a", "a", true)
	f("a", "ab", false)
	f("a*", "ab", true)
	f("*a", "ba", true)
	f("*a", "ab", false)
	f("a*a", "a", false)
	f("a*a", "aa", true)
	f("a*b*c", "axxbyyc", true)
	f("a*b*c", "axxc", false)
	f("*b*", "abc", true)
	f("*", "", true)
	f("**", "x", true)
	f("a*bc", "abcbc", true)
	f("", "x", false)
}

func TestNewSeriesPerMinute(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Rules = []RuleConfig{{Name: "r", GroupBy: []string{"attribute:g"}, MaxNewSeriesPerMinute: 6}}
	})
	p := func(g string, i int) point { return point{name: "m", attrs: attrs{"g": g, "i": int64(i)}} }
	admit := func(g string, from, n int) (passed int) {
		for i := range n {
			passed += len(r.send(p(g, from+i)))
		}
		return passed
	}
	require.Equal(t, 6, admit("a", 0, 20), "a minute's worth at once")
	require.Equal(t, 6, admit("b", 0, 20), "groups do not share")
	require.Equal(t, 6, admit("a", 0, 6), "known series are not new")
	r.clock = r.clock.Add(30 * time.Second)
	require.Equal(t, 3, admit("a", 100, 20))
	require.Equal(t, int64(14+14+17), r.rejected("r", "series_rate", "drop"))
	r.clock = r.clock.Add(time.Hour)
	require.Equal(t, 6, admit("a", 200, 20))
}

func TestPointsPerSecond(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Rules = []RuleConfig{
			{Name: "all", MaxPointsPerSecond: 2},
			{Name: "each", GroupBy: []string{"attribute:i"}, MaxPointsPerSecond: 1},
		}
	})
	pass := func(p point, n int) (passed int) {
		for range n {
			passed += len(r.send(p))
		}
		return passed
	}
	require.Equal(t, 60, pass(aSeries(1), 100))
	require.Equal(t, 60, pass(aSeries(2), 100), "what one rule refused was not taken from the other")
	require.Zero(t, pass(aSeries(3), 10))
	require.Equal(t, int64(40+10), r.rejected("all", "points_rate", "drop"))
	require.Equal(t, int64(40), r.rejected("each", "points_rate", "drop"))
	r.clock = r.clock.Add(10 * time.Second)
	require.Equal(t, 10, pass(aSeries(1), 100))
	require.Equal(t, 10, pass(aSeries(3), 100))
}

func TestPointsPerSecondAreSharedByAllCallers(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Rules = []RuleConfig{{Name: "all", MaxPointsPerSecond: 10}} })
	var passed atomic.Int64
	var done sync.WaitGroup
	for range 4 {
		done.Go(func() {
			for range 300 {
				if _, err := r.process(t.Context(), metricsOf(aSeries(1))); err == nil {
					passed.Add(1)
				}
			}
		})
	}
	done.Wait()
	require.Equal(t, int64(600), passed.Load())
}

func TestDryRunLeavesDataAsItIs(t *testing.T) {
	for _, onExceed := range [][]string{{"drop"}, {"collapse_worst", "overflow"}} {
		testDryRun(t, onExceed)
	}
}

func testDryRun(t *testing.T, onExceed []string) {
	var marshaler pmetric.ProtoMarshaler
	s := newSchedule(5)
	r := newRig(t, func(c *Config) {
		c.Mode = policy.ModeDryRun
		c.Memory.MaxSeries = 30
		c.Defaults.Exceed.OnExceed, c.Defaults.Exceed.Gauge = onExceed, policy.NameLast
		c.Rules = []RuleConfig{
			{
				Name: "r", GroupBy: []string{"service"}, MaxSeries: 5, LabelLimits: map[string]int{"user": 1}, MaxPointsPerSecond: 1,
				Adaptive: AdaptiveConfig{ShareBy: []string{"metric"}},
			},
		}
	})
	for range 100 {
		points := make([]point, 20)
		for i := range points {
			points[i] = s.point()
		}
		md := metricsOf(points...)
		md.MarkReadOnly() // writing to it would panic
		before, err := marshaler.MarshalMetrics(md)
		require.NoError(t, err)
		after, err := marshaler.MarshalMetrics(r.consume(md))
		require.NoError(t, err)
		require.Equal(t, before, after)
		r.epochs(s.IntN(2))
	}
	last := onExceed[len(onExceed)-1]
	require.Positive(t, r.rejected("r", "label_limit", onExceed[0]))
	require.Positive(t, r.rejected("r", "max_series", last))
	require.Positive(t, r.rejected("r", "fair_share", last))
	require.LessOrEqual(t, r.gaugeNow("total"), int64(30))
	require.Zero(t, r.flushed(time.Minute).DataPointCount())
}
