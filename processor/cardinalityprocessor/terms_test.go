// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"fmt"
	rand "math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/insight"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/overflow"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// tenants is a configuration with tenants from resources.
func tenants(change func(*Config)) func(*Config) {
	return func(c *Config) {
		c.Tenant.From = []string{"resource:tenant"}
		change(c)
	}
}

func owned(tenant, name string, i int) point {
	return point{name: name, kind: delta, resource: attrs{"tenant": tenant}, attrs: attrs{"i": int64(i)}}
}

// count returns how many of n series of a tenant pass.
func (r *rig) count(tenant, name string, n int) (passed int) {
	for i := range n {
		passed += len(r.send(owned(tenant, name, i)))
	}
	return passed
}

func TestOverrides(t *testing.T) {
	r := newRig(t, tenants(func(c *Config) {
		c.Defaults.MaxSeriesPerMetric = 6
		c.Rules = []RuleConfig{{Name: "ids", GroupBy: []string{"tenant"}, Match: MatchConfig{Metric: "ids"}, MaxSeries: 3, LabelLimits: map[string]int{"i": 2}}}
		c.Overrides = map[string]OverrideConfig{
			"*":    {MaxSeries: number(10)},
			"more": {MaxSeries: number(20), MaxSeriesPerMetric: number(15), Rules: map[string]RuleOverrideConfig{"ids": {LabelLimits: map[string]int{"i": 3}}}},
			"none": {MaxSeries: number(0), MaxSeriesPerMetric: number(0)},
		}
	}))
	for tenant, want := range map[string][]int{"any": {6, 4, 0}, "more": {15, 5, 0}, "none": {30, 30, 30}, "": {6, 4, 0}} {
		for i, n := range want {
			require.Equal(t, n, r.count(tenant, "m"+strconv.Itoa(i), 30), "%q", tenant)
		}
	}
	require.Equal(t, 2, r.count("other", "ids", 30))
	require.Equal(t, 2, r.count("none", "ids", 30))
	requireWithinLimits(t, r)
	most := map[string]int64{}
	limits, _ := insight.New(r.Gate).Limits()
	for _, l := range limits {
		for _, g := range l.Fullest {
			if l.Rule == policy.RuleTenant {
				most[g.Group[0].Value] = g.Max
			}
		}
	}
	require.Equal(t, map[string]int64{"any": 10, "more": 20, "none": 0, "": 10, "other": 10}, most)
}

// Overrides of a rules file apply as soon as it is read, and no series loses its place.
func TestOverridesAreReloaded(t *testing.T) {
	r := newRig(t, tenants(func(c *Config) { c.Overrides = map[string]OverrideConfig{"a": {MaxSeries: number(5)}} }))
	require.Equal(t, 5, r.count("a", "m", 30))
	cfg, err := parseRules(r.cfg, []byte("overrides: {a: {max_series: 8}, b: {max_series: 1}}"))
	require.NoError(t, err)
	r.Apply(cfg)
	require.Equal(t, 8, r.count("a", "m", 30))
	require.Equal(t, 1, r.count("b", "m", 30))
	cfg, err = parseRules(r.cfg, []byte("overrides: {a: {max_series: 2}}"))
	require.NoError(t, err)
	r.Apply(cfg)
	require.Equal(t, 8, r.count("a", "m", 30), "who has a place keeps it")
	require.Equal(t, 30, r.count("b", "m", 30))
	_, err = parseRules(r.cfg, []byte("overrides: {a: {rules: {x: {max_series: 2}}}}"))
	require.ErrorContains(t, err, "`overrides::a::rules::x` must name a rule")
	cfg, err = parseRules(r.cfg, []byte("overrides: {12: {max_series: 2}}"))
	require.NoError(t, err)
	r.Apply(cfg)
	require.Equal(t, 2, r.count("12", "m", 30), "numbers are names")
}

// Tenants have rates of their own.
func TestOverriddenPaces(t *testing.T) {
	r := newRig(t, tenants(func(c *Config) {
		c.Overrides = map[string]OverrideConfig{
			"*": {MaxNewSeriesPerMinute: number(3)}, "fast": {MaxNewSeriesPerMinute: number(7)},
			"few": {MaxNewSeriesPerMinute: number(0), MaxPointsPerSecond: number(1)},
		}
	}))
	require.Equal(t, []int{3, 7, 3}, []int{r.count("a", "m", 20), r.count("fast", "m", 20), r.count("b", "m", 20)})
	require.Equal(t, []int{60, 0}, []int{r.count("few", "m", 100), r.count("few", "m", 100)}, "a minute's worth at once")
}

// TestOverridesAgreeWithOracle: with random series of tenants, and random overrides, no group ever exceeds the limit of
// its tenant, and no series is refused for which there is room.
func TestOverridesAgreeWithOracle(t *testing.T) {
	for seed := range seeds(t, 10) {
		random := rand.New(rand.NewPCG(seed, 3))
		names := []string{"a", "b", "c", ""}
		most := map[string]int{}
		overrides := func() map[string]OverrideConfig {
			all := map[string]OverrideConfig{}
			others := 1 + random.IntN(8)
			all["*"] = OverrideConfig{MaxSeries: &others}
			for _, name := range names {
				most[name] = others
				if n := 1 + random.IntN(15); name != "" && random.IntN(2) == 0 {
					most[name] = n
					all[name] = OverrideConfig{MaxSeries: &n}
				}
			}
			return all
		}
		r := newRig(t, tenants(func(c *Config) { c.Overrides = overrides() }))
		have := map[string]map[int]bool{}
		for range 400 {
			if random.IntN(50) == 0 {
				next := *r.cfg
				next.Overrides = overrides()
				r.Apply(&next)
				for name, all := range have { // so that all are counted under the new rules
					for i := range all {
						require.Len(t, r.send(owned(name, "m", i)), 1)
					}
				}
			}
			name, i := names[random.IntN(len(names))], random.IntN(30)
			want := have[name][i] || len(have[name]) < most[name]
			require.Equal(t, want, len(r.send(owned(name, "m", i))) == 1, "seed %d: %q has %d of %d", seed, name, len(have[name]), most[name])
			if want {
				if have[name] == nil {
					have[name] = map[int]bool{}
				}
				have[name][i] = true
			}
		}
		requireWithinLimits(t, r)
	}
}

// A tenant that floods everything leaves enough groups and overflow memory for others.
func TestOneTenantsFloodLeavesRoomForOthers(t *testing.T) {
	racetest.Sequential(t)
	r := newRig(t, tenants(func(c *Config) {
		c.Memory.MaxGroups = 200
		c.Memory.OverflowStateMiB = 1
		c.Defaults.Exceed.OnExceed = []string{"overflow"}
		c.Rules = []RuleConfig{{Name: "each", GroupBy: []string{"tenant", "attribute:group"}, MaxSeries: 1, Exceed: ExceedConfig{OnExceed: []string{"overflow"}}}}
	}))
	flood := func(tenant string, n int) (groups, added int) {
		for i := range n {
			p := point{name: "m", kind: cumulative, resource: attrs{"tenant": tenant}, attrs: attrs{"group": int64(i), "i": int64(0)}}
			groups += r.consume(r.timed(p, r.clock, r.clock.Add(time.Second), 1)).DataPointCount()
		}
		before := r.gauge("overflow_members", "")
		for i := range n {
			p := point{name: "m", kind: cumulative, resource: attrs{"tenant": tenant}, attrs: attrs{"group": int64(0), "i": int64(1 + i)}}
			r.consume(r.timed(p, r.clock, r.clock.Add(time.Second), 1))
		}
		return groups, int(r.gauge("overflow_members", "") - before)
	}
	groups, added := flood("loud", 5000)
	require.InDelta(t, 175, groups, 1, "seven of eight")
	require.Greater(t, added, 300, "seven of eight of what the first flood has left")
	for _, quiet := range []string{"first", "second"} {
		groups, added = flood(quiet, 3)
		require.Equal(t, 3, groups)
		require.Equal(t, 3, added)
	}
}

// Series made here are sent with the metadata of the client, separately for each client.
func TestMetadataOfTenants(t *testing.T) {
	r := newRig(t, func(c *Config) {
		overflowing(0, func(rule *RuleConfig) { rule.LabelLimits = map[string]int{"i": 0} })(c)
		c.Tenant = TenantConfig{From: []string{"metadata:X-Scope-OrgID"}, MetadataKeys: []string{"Authorization", "x-team"}}
	})
	got := map[string]int64{}
	next := &contexts{MetricsSink: r.sink, seen: func(info client.Info, md pmetric.Metrics) {
		n, _ := reading(onlyMetricOf(md), 0)
		got[fmt.Sprint(info.Metadata.Get("x-scope-orgid"), info.Metadata.Get("authorization"), info.Metadata.Get("x-team"))] += n
	}}
	r.next = next
	for _, who := range []map[string][]string{
		{"x-scope-orgid": {"a"}, "authorization": {"one"}, "x-team": {"x", "y"}, "other": {"no"}},
		{"x-scope-orgid": {"a"}, "authorization": {"two"}},
		{"x-scope-orgid": {"b"}},
		{},
	} {
		for i := range 3 {
			ctx := client.NewContext(t.Context(), client.Info{Metadata: client.NewMetadata(who)})
			_, _ = r.process(ctx, r.timed(owned("", "m", i), r.clock, r.clock.Add(time.Second), 2))
		}
	}
	saved := r.Overflow.SealedLedger(true)
	r.flushed(time.Second)
	want := map[string]int64{"[a] [one] [x y]": 6, "[a] [two] []": 6, "[b] [] []": 6, "[] [] []": 6}
	require.Equal(t, want, got)

	again := overflow.New(1<<20, time.Minute, r.clock) // and after a restart
	require.NoError(t, again.RestoreLedger(saved, 1))
	r.Overflow = again
	clear(got)
	r.flushed(time.Second)
	require.Equal(t, want, got)
}
