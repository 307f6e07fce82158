// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// podOf returns a series of one of many pods, which differ only in their resources.
func podOf(k kind, i int) point {
	return point{
		name: "m", kind: k, attrs: attrs{"route": "/"},
		resource: attrs{"service.name": "shop", "k8s.pod.uid": "uid" + strconv.Itoa(i), "k8s.pod.name": "pod" + strconv.Itoa(i)},
	}
}

// resources returns the attributes of all resources.
func resources(md pmetric.Metrics) (all []attrs) {
	for _, rm := range md.ResourceMetrics().All() {
		all = append(all, rm.Resource().Attributes().AsRaw())
	}
	return all
}

func TestLimitsOnLabelsOfResources(t *testing.T) {
	const pods = 200
	for _, label := range []string{"k8s.pod.uid", "resource:k8s.pod.uid"} {
		for _, k := range []kind{delta, cumulative, histogram} {
			r := newRig(t, overflowing(0, func(rule *RuleConfig) {
				rule.LabelLimits = map[string]int{label: 3, "k8s.pod.name": 0}
			}))
			start, passed := r.clock, 0
			r.clock = r.clock.Add(time.Second)
			for i := range pods {
				passed += r.consume(r.timed(podOf(k, i), start, r.clock, 2)).DataPointCount()
			}
			require.Zero(t, passed, "none has a name")
			made := r.flushed(time.Second)
			var want []any
			for i := range 3 {
				want = append(want, attrs{"service.name": "shop", "k8s.pod.uid": "uid" + strconv.Itoa(i), "k8s.pod.name": ident.CollapsedValue})
			}
			want = append(want, attrs{"service.name": "shop", "k8s.pod.uid": ident.CollapsedValue, "k8s.pod.name": ident.CollapsedValue})
			var got []any
			for _, a := range resources(made) {
				got = append(got, a)
			}
			require.ElementsMatch(t, want, got)
			sum := int64(0)
			for _, rm := range made.ResourceMetrics().All() {
				n, _ := reading(rm.ScopeMetrics().At(0).Metrics().At(0), 0)
				sum += n
			}
			require.Equal(t, int64(2*pods), sum)
			requireWithinLimits(t, r)
		}
	}
	r := newRig(t, overflowing(0, func(rule *RuleConfig) { rule.LabelLimits = map[string]int{"attribute:k8s.pod.uid": 0} }))
	require.Equal(t, []bool{true, true}, r.passes(podOf(delta, 1), podOf(delta, 2)), "no point has it")
}

// A rule that matches some resources, by a pattern or its negation, limits the labels of these.
func TestLimitsOnLabelsOfSomeResources(t *testing.T) {
	for name, match := range map[string]MatchConfig{
		"regex":    {Resource: map[string]string{"k8s.pod.name": "regex:pod1?[0-9]"}},
		"negative": {Resource: map[string]string{"k8s.pod.name": "not:regex:pod[2-9][0-9]", "gone": "not:*"}, Scope: "not:other"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(c *Config) {
				c.Rules = []RuleConfig{{Name: "r", Match: match, LabelLimits: map[string]int{"resource:k8s.pod.uid": 3}}}
			})
			var all []point
			for i := range 40 {
				all = append(all, podOf(delta, i))
			}
			passes := r.passes(all...)
			for i, passed := range passes {
				require.Equal(t, i < 3 || i >= 20, passed, "pod%d", i)
			}
			require.Equal(t, int64(17), r.rejected("r", "label_limit", "drop"))
			requireWithinLimits(t, r)
		})
	}
}

// A series with a collapsed resource that arrives from another Godwit upstream is the same series as the one made here.
func TestCollapsedResourcesAreKnownAgain(t *testing.T) {
	r := newRig(t, overflowing(0, func(rule *RuleConfig) { rule.LabelLimits = map[string]int{"k8s.pod.uid": 0} }))
	same := func(i int) point {
		p := podOf(delta, i)
		p.resource["k8s.pod.name"] = "pod"
		return p
	}
	r.consume(r.timed(same(1), r.clock, r.clock.Add(time.Second), 5))
	again := same(1)
	again.resource["k8s.pod.uid"] = ident.CollapsedValue
	require.Zero(t, r.consume(r.timed(again, r.clock, r.clock.Add(time.Second), 6)).DataPointCount())
	n, _ := reading(onlyMetric(t, r.flushed(time.Second)), 0)
	require.Equal(t, int64(11), n)
}

// A series with two new values must not take two places if there is only one.
func TestASeriesWithAValueOnEachSide(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Rules = []RuleConfig{{Name: "r", LabelLimits: map[string]int{"k": 3}}}
	})
	both := func(resource, attribute string) point {
		return point{name: "m", resource: attrs{"k": resource}, attrs: attrs{"k": attribute}}
	}
	require.Equal(t, []bool{true, false, true, true, false}, r.passes(
		both("a", "b"), both("c", "d"), both("a", "a"), both("c", "c"), both("a", "d"),
	))
	requireWithinLimits(t, r)
}

// Labels that explode together are collapsed together, as many as necessary.
func TestResourcesThatExplodeAreCollapsed(t *testing.T) {
	r := newRig(t, worst)
	start, passed := r.clock, 0
	r.clock = r.clock.Add(time.Second)
	const pods = 1000
	for i := range pods {
		passed += r.consume(r.timed(podOf(delta, i), start, r.clock, 1)).DataPointCount()
	}
	require.Equal(t, worstLimit*(policy.ReservePart-1)/policy.ReservePart, passed)
	collapsed := r.rejected(policy.RuleDefaults, "max_series", "collapse_worst")
	require.Greater(t, collapsed, int64(pods-passed)*9/10)
	sum, both := int64(passed), 0
	for _, rm := range r.flushed(time.Second).ResourceMetrics().All() {
		a := rm.Resource().Attributes().AsRaw()
		require.Equal(t, "shop", a["service.name"])
		if a["k8s.pod.uid"] == ident.CollapsedValue && a["k8s.pod.name"] == ident.CollapsedValue {
			both++
		}
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			for i := range amount.PointCount(m) {
				n, _ := reading(m, i)
				sum += n
			}
		}
	}
	require.Equal(t, int64(pods), sum)
	require.Equal(t, 1, both)
	requireWithinLimits(t, r)
}

func TestOverflowKeepsTheService(t *testing.T) {
	for _, keep := range []bool{false, true} {
		r := newRig(t, func(c *Config) {
			overflowing(1, func(rule *RuleConfig) { rule.Exceed.KeepLabels = []string{"route"} })(c)
			c.Overflow.KeepService = keep
		})
		r.send(point{name: "other"})
		for i := range 4 {
			p := podOf(delta, i)
			p.resource["service.name"] = "s" + strconv.Itoa(i%2)
			r.consume(r.timed(p, r.clock, r.clock.Add(time.Second), 5))
		}
		want := []any{attrs{}}
		if keep {
			want = []any{attrs{"service.name": "s0"}, attrs{"service.name": "s1"}}
		}
		var got []any
		for _, a := range resources(r.flushed(time.Second)) {
			got = append(got, a)
		}
		require.ElementsMatch(t, want, got)
	}
	l := policy.NewLimit(&RuleConfig{Name: "r", LabelLimits: map[string]int{"service.name": 5}}, defaultConfig(), nil, nil)
	require.Equal(t, []string{"service.namespace"}, l.Exceed.Keep, "what explodes is not kept")
}

func TestMatches(t *testing.T) {
	of := &policy.Owner{Resource: attributesOf(attrs{"env": "prod", "both": "resource"}), Scope: "http", Metric: "a.b", Tenant: "blue"}
	point := attributesOf(attrs{"route": "/x\ny", "both": "point", "empty": "", "n": int64(5)})
	f := func(want bool, cfg MatchConfig) {
		t.Helper()
		m := policy.NewMatcher(cfg)
		require.Equal(t, want, m.MatchMetric(of) && m.MatchPoint(of, point), "%+v", cfg)
	}
	text := func(key, value string) map[string]string { return map[string]string{key: value} }
	f(true, MatchConfig{})
	f(true, MatchConfig{Metric: "regex:a[.](b|c)", Scope: "h*", Tenant: "not:red"})
	f(false, MatchConfig{Metric: "regex:a"})
	f(false, MatchConfig{Metric: "not:a.*"})
	f(true, MatchConfig{Metric: "not:regex:b.*"})
	f(false, MatchConfig{Scope: "not:http"})
	f(false, MatchConfig{Tenant: "red"})
	f(true, MatchConfig{Resource: text("env", "not:dev")})
	f(true, MatchConfig{Resource: text("none", "not:dev")})
	f(true, MatchConfig{Resource: text("none", "not:*")})
	f(false, MatchConfig{Resource: text("env", "not:*")})
	f(false, MatchConfig{Resource: text("route", "*")})
	f(true, MatchConfig{Attributes: text("env", "prod")})
	f(true, MatchConfig{Attributes: text("both", "point")})
	f(false, MatchConfig{Attributes: text("both", "resource")})
	f(false, MatchConfig{Attributes: text("none", "regex:.*")})
	f(true, MatchConfig{Attributes: text("route", "regex:/x.y")})
	f(true, MatchConfig{Attributes: text("n", "regex:[0-9]+")})
	f(true, MatchConfig{Attributes: text("empty", "")})
	f(false, MatchConfig{Attributes: text("route", "")})
	f(false, MatchConfig{Attributes: text("none", "")})
}
