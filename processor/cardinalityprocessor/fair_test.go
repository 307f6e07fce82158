// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"math"
	rand "math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/fair"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/series"
)

// adaptive returns a rule whose limit is shared by services.
func adaptive(limit int, change ...func(*RuleConfig)) func(*Config) {
	return overflowing(limit, append([]func(*RuleConfig){func(rule *RuleConfig) {
		rule.Adaptive.ShareBy = []string{"service"}
		rule.Exceed.Gauge = policy.NameLast
	}}, change...)...)
}

// of returns series of one service.
func of(service string, k kind, from, n int) (all []point) {
	for i := range n {
		all = append(all, point{name: "m", kind: k, resource: attrs{"service": service}, attrs: attrs{"i": int64(from + i)}})
	}
	return all
}

// report sends all points, an epoch later, and returns the identities of those that pass.
func (r *rig) report(points ...point) map[string]bool {
	r.epochs(1)
	passed := map[string]bool{}
	for _, p := range points {
		md := r.consume(r.timed(p, r.clock.Add(-time.Hour), r.clock, r.clock.Unix()))
		for i, id := range identities(md) {
			m := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
			if !amount.WhenAt(m, i).NoValue {
				passed[id] = true
			}
		}
	}
	return passed
}

func (r *rig) shedSeries() int64 { return r.shedSeriesOf("r") }

func (r *rig) shedSeriesOf(rule string) int64 {
	got, err := r.telemetry.GetMetric("otelcol_processor_cardinality_shed_series")
	if err != nil {
		return 0
	}
	return sumOf(got, attrs{"rule": rule})
}

func count(passed map[string]bool, points []point) (n int) {
	for _, p := range points {
		if passed[p.identity()] {
			n++
		}
	}
	return n
}

// A party that was first and uses the whole limit must not keep it: within two rounds, later parties get their fair
// share, from the newest series of the first one, and then nothing moves any more.
func TestHungryPartyGivesWay(t *testing.T) {
	racetest.Sequential(t)
	for k := range kinds {
		for _, onExceed := range []string{"drop", "overflow"} {
			t.Run(strconv.Itoa(int(k))+onExceed, func(t *testing.T) {
				r := newRig(t, adaptive(100, func(rule *RuleConfig) { rule.Exceed.OnExceed = []string{onExceed} }))
				old, young, rest := of("a", k, 0, 30), of("a", k, 30, 40), of("a", k, 70, 100)
				quiet := of("quiet", k, 0, 10)
				all := slices.Concat(old, quiet)
				r.report(all...)
				all = append(all, young...)
				for range 3 {
					r.report(all...)
				}
				all = append(all, rest...)
				for range fair.RoundEpochs + 2 {
					require.LessOrEqual(t, len(r.report(all...)), 100, "the first to come have it all")
				}
				require.Equal(t, int64(100), r.gaugeNow("r"))
				require.Zero(t, r.shedSeries(), "nobody else wants any")

				later := of("b", k, 0, 100)
				all = append(all, later...)
				for range 3 * fair.RoundEpochs {
					r.report(all...)
					require.LessOrEqual(t, r.gaugeNow("r"), int64(100))
				}
				passed := r.report(all...)
				require.Len(t, passed, 100)
				require.Equal(t, 10, count(passed, quiet), "who has less than is fair loses nothing")
				require.Equal(t, 30, count(passed, old), "the newest give way first")
				require.Equal(t, 45, count(passed, old)+count(passed, young)+count(passed, rest))
				require.Equal(t, 45, count(passed, later))
				require.Equal(t, int64(45), r.shedSeries())
				require.Equal(t, int64(1), r.gauge("contended_groups", "r"))
				for range 5 * fair.RoundEpochs {
					require.Equal(t, passed, r.report(all...), "nothing goes to and fro")
				}
				require.Equal(t, int64(45), r.shedSeries())
				requireWithinLimits(t, r)
			})
		}
	}
}

func TestUnsharedLimitInterruptsNobody(t *testing.T) {
	r := newRig(t, adaptive(100, func(rule *RuleConfig) { rule.Adaptive.ShareBy = nil }))
	first, later := of("a", gauge, 0, 100), of("b", gauge, 0, 100)
	r.report(first...)
	for range 10 * fair.RoundEpochs {
		passed := r.report(slices.Concat(later, first)...)
		require.Equal(t, 100, count(passed, first))
	}
}

// A small new party gets what it lacks, and no more.
func TestNoMoreIsTakenThanIsWanted(t *testing.T) {
	r := newRig(t, adaptive(100))
	first, later := of("a", delta, 0, 200), of("b", delta, 0, 7)
	for range 5 {
		r.report(first...)
	}
	all := slices.Concat(later, first)
	for range 2 * fair.RoundEpochs {
		r.report(all...)
	}
	for range 6 * fair.RoundEpochs {
		passed := r.report(all...)
		require.Equal(t, 7, count(passed, later))
		require.Equal(t, 93, count(passed, first))
	}
	require.Equal(t, int64(7), r.shedSeries())
}

// If a limit is reduced below its use, the largest parties give up series.
func TestLoweredSharedLimitIsMet(t *testing.T) {
	r := newRig(t, adaptive(100))
	big, small := of("a", gauge, 0, 80), of("b", gauge, 0, 15)
	all := slices.Concat(big, small)
	r.report(all...)
	cfg := *r.cfg
	adaptive(60)(&cfg)
	r.Apply(&cfg)
	for range 2 * fair.RoundEpochs {
		r.report(all...)
	}
	passed := r.report(all...)
	require.Equal(t, 15, count(passed, small))
	require.Equal(t, 45, count(passed, big))
	require.Equal(t, int64(60), r.gaugeNow("r"))
}

func TestPriorities(t *testing.T) {
	r := newRig(t, adaptive(70, func(rule *RuleConfig) {
		rule.Adaptive.Priority = PriorityConfig{By: "tier", Order: []string{"critical", "standard", "batch"}}
	}))
	services := map[string][]point{}
	var all []point
	for _, tier := range []string{"batch", "other", "standard", "critical"} { // the least important ones were first
		points := of(tier, gauge, 0, 100)
		for i := range points {
			points[i].resource["tier"] = tier
		}
		services[tier] = points
		all = append(all, points...)
		for range 5 {
			r.report(all...)
		}
	}
	for range 4 * fair.RoundEpochs {
		r.report(all...)
	}
	passed := r.report(all...)
	require.Len(t, passed, 70)
	require.InDelta(t, 35, count(passed, services["critical"]), 1)
	require.InDelta(t, 17.5, count(passed, services["standard"]), 1)
	require.InDelta(t, 8.75, count(passed, services["batch"]), 1)
	require.InDelta(t, 8.75, count(passed, services["other"]), 1)
}

// Demand of one party that comes and goes takes places from the others once, not each time.
func TestSharesRiseSlowly(t *testing.T) {
	racetest.Sequential(t)
	r := newRig(t, adaptive(100))
	stayers := append(of("a", gauge, 0, 100), of("b", gauge, 0, 100)...)
	for range 4 * fair.RoundEpochs {
		r.report(stayers...)
	}
	visitors := of("c", gauge, 0, 30)
	for range 3 * fair.RoundEpochs {
		r.report(slices.Concat(stayers, visitors)...)
	}
	taken := r.shedSeries()
	require.Equal(t, 30, count(r.report(slices.Concat(stayers, visitors)...), visitors))
	for range 5 {
		for range fair.RoundEpochs { // not long enough to expire
			r.report(stayers...)
		}
		require.Equal(t, 30, count(r.report(slices.Concat(stayers, visitors)...), visitors))
	}
	require.Equal(t, taken, r.shedSeries())
	for range 6 * moment.IdleEpochs {
		r.report(stayers...)
	}
	require.Equal(t, 100, count(r.report(stayers...), stayers), "in the end others have the places")
}

// Cumulative series that wait for their share lose nothing; for those that wait in vain, there is a limit.
func TestWaitingEnds(t *testing.T) {
	r := newRig(t, adaptive(3))
	first := of("a", cumulative, 0, 1)
	for i := range 2 { // three parties with one each: none can give any
		first = append(first, of(strconv.Itoa(i), cumulative, 0, 1)...)
	}
	r.report(first...)
	later := of("b", cumulative, 0, 1)
	for range fair.RoundEpochs {
		r.report(slices.Concat(first, later)...)
	}
	require.Positive(t, r.rejected("r", "max_series", "wait"))
	require.Zero(t, r.rejected("r", "max_series", "overflow"))
	for range (fair.Patience + 1) * fair.RoundEpochs {
		require.Equal(t, 3, count(r.report(slices.Concat(first, later)...), first))
	}
	require.Positive(t, r.rejected("r", "max_series", "overflow"))
	require.LessOrEqual(t, r.rejected("r", "max_series", "wait"), int64((fair.Patience+1)*fair.RoundEpochs))
}

func TestSharesOutliveARestart(t *testing.T) {
	config := withStorage(adaptive(100))
	host := newMemory()
	before := newRig(t, config)
	require.NoError(t, before.begin(host))
	first, later := of("a", cumulative, 0, 100), of("b", cumulative, 0, 100)
	all := slices.Concat(first, later)
	for range 4 * fair.RoundEpochs {
		before.report(all...)
	}
	want := before.report(all...)
	require.Equal(t, 50, count(want, first))
	require.NoError(t, before.Snapshot.Save(t.Context()))
	after := newRig(t, config)
	require.NoError(t, after.begin(host.killed()))
	after.clock = before.clock
	require.Equal(t, int64(100), after.gaugeNow("r"))
	for range 4 * fair.RoundEpochs {
		require.Equal(t, want, after.report(all...))
	}
	requireWithinLimits(t, after)
}

// Parties of which everything is rejected are limited in number, and forgotten.
func TestStarvingPartiesAreBounded(t *testing.T) {
	racetest.Sequential(t)
	r := newRig(t, func(c *Config) {
		adaptive(10)(c)
		c.Memory.MaxGroups = 100
	})
	for range 3 * fair.RoundEpochs {
		r.epochs(1)
		for i := range 1000 {
			r.send(of(strconv.Itoa(i), delta, 0, 1)...)
		}
		require.LessOrEqual(t, len(r.Limiter.Groups.Groups), 2*100+2)
		require.LessOrEqual(t, r.gaugeNow("r"), int64(10))
	}
	r.epochs(2 * moment.IdleEpochs)
	require.Empty(t, r.Limiter.Groups.Groups)
	require.Empty(t, r.Limiter.Groups.Pools)
}

func TestRuleThatStopsSharing(t *testing.T) {
	r := newRig(t, adaptive(10))
	all := append(of("a", gauge, 0, 20), of("b", gauge, 0, 20)...)
	for range 4 * fair.RoundEpochs {
		r.report(all...)
	}
	require.Equal(t, int64(1), r.gauge("contended_groups", "r"))
	cfg := *r.cfg
	overflowing(10)(&cfg)
	r.Apply(&cfg)
	for range 2 * fair.RoundEpochs {
		r.report(all...)
	}
	require.Empty(t, r.Limiter.Groups.Pools)
	require.Equal(t, int64(10), r.gaugeNow("r"))
	requireWithinLimits(t, r)
	adaptive(10)(&cfg)
	r.Apply(&cfg)
	for range 4 * fair.RoundEpochs {
		r.report(all...)
	}
	require.Equal(t, int64(1), r.gauge("contended_groups", "r"))
	requireWithinLimits(t, r)
}

// TestLevelIsMaxMinFair compares with the definition: give one series after the other to the party with the least for
// its weight.
func TestLevelIsMaxMinFair(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 12))
	for range 500 {
		n := 1 + random.IntN(8)
		wants, weights, has := make([]int, n), make([]int, n), make([]int, n)
		sum := 0
		for i := range n {
			wants[i], weights[i] = random.IntN(60), 1<<random.IntN(3)
			sum += wants[i]
		}
		room := random.IntN(200)
		for range room {
			least := -1
			for i := range n {
				if has[i] < wants[i] && (least < 0 || has[i]*weights[least] < has[least]*weights[i]) {
					least = i
				}
			}
			if least >= 0 {
				has[least]++
			}
		}
		l := fair.Level(wants, weights, room)
		require.Equal(t, sum <= room, math.IsInf(l, 1))
		for i := range n {
			require.InDelta(t, has[i], min(float64(wants[i]), l*float64(weights[i])), 1+float64(weights[i]))
		}
	}
}

func TestUnmetIsEstimated(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 12))
	require.Zero(t, (*fair.Unmet)(nil).Estimate())
	for _, n := range []int{1, 2, 5, 20, 100, 1000, 100_000} {
		var u fair.Unmet
		for range n {
			fp := random.Uint64()
			u.Add(fp)
			u.Add(fp)
		}
		require.InEpsilon(t, n, u.Estimate(), 0.2, "%d", n)
	}
}

// placed reports whether a series has a place.
func (r *rig) placed(p point) bool {
	rm := metricsOf(p).ResourceMetrics().At(0)
	sm := rm.ScopeMetrics().At(0)
	m := sm.Metrics().At(0)
	metric := r.Hash.Metric(r.Hash.Scope(r.Hash.Attributes(rm.Resource().Attributes()), sm.Scope()), m)
	fp := ident.Settled(ident.Mix(metric, r.Hash.Attributes(amount.AttributesAt(m, 0))))
	id, _ := r.Limiter.Series.Touch(fp, r.Limiter.Now())
	return id > series.LeftLast
}

// TestSharesOverRandomSchedules: for any input, limits hold, and a party with at most an equal share of the limit loses
// no series that is alive.
func TestSharesOverRandomSchedules(t *testing.T) {
	racetest.Sequential(t)
	const limit, services = 60, 5
	shed := int64(0)
	for seed := range seeds(t, 3) {
		random := rand.New(rand.NewPCG(seed, 13))
		r := newRig(t, adaptive(limit))
		rule := r.Rules.Policy.Limits[0]
		used := func(service string) int {
			resource := attributesOf(attrs{"service": service})
			party := series.PartyOf(rule, &r.Hash, ident.Mix(rule.Series.Key, 0), &policy.Owner{Resource: resource}, attributesOf(nil))
			return r.Limiter.Groups.Used(party.Key)
		}
		sizes, small := make([]int, services), make([]bool, services)
		alive := make([]map[string]bool, services)
		for range 80 {
			for i := range sizes {
				if random.IntN(8) == 0 {
					sizes[i] = random.IntN(80)
				}
				small[i] = used(strconv.Itoa(i)) <= limit/services
			}
			r.epochs(1)
			for i, n := range sizes {
				before := alive[i]
				alive[i] = map[string]bool{}
				for _, p := range of(strconv.Itoa(i), kind(i%int(kinds)), random.IntN(3), n) {
					r.send(p)
					placed := r.placed(p)
					alive[i][p.identity()] = placed
					require.True(t, placed || !small[i] || !before[p.identity()], "seed %d: %s lost its place", seed, p.identity())
				}
			}
			require.LessOrEqual(t, r.gaugeNow("r"), int64(limit))
		}
		requireWithinLimits(t, r)
		shed += r.shedSeries()
	}
	require.Positive(t, shed)
}
