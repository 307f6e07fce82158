// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/series"
)

// Frequent operations take about the same time, however many unrelated rules, groups and series there are.

// least returns the minimum time of several attempts.
func least(attempts int, prepare func() func()) time.Duration {
	least := time.Hour
	for range attempts {
		do := prepare()
		began := time.Now()
		do()
		least = min(least, time.Since(began))
	}
	return least
}

// ruled returns a configuration with the given number of rules, each for a metric of its own, and one for metric m
// after them.
func ruled(rules, limit int) func(*Config) {
	return func(c *Config) {
		overflowing(limit, func(rule *RuleConfig) { rule.Match.Metric = "m" })(c)
		var others []RuleConfig
		for i := range rules {
			others = append(others, RuleConfig{Name: fmt.Sprint("rule", i), Match: MatchConfig{Metric: fmt.Sprint("metric", i)}, MaxSeries: 10})
		}
		c.Rules = append(others, c.Rules...)
	}
}

// counters returns a metric with the given number of series, which grow from call to call.
func counters(n, value int) pmetric.Metrics {
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("m")
	sum := m.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	for i := range n {
		dp := sum.DataPoints().AppendEmpty()
		dp.Attributes().PutInt("i", int64(i))
		dp.SetIntValue(int64(value))
		dp.SetTimestamp(pcommon.Timestamp(1_000_000_000_000_000 + value))
	}
	return md
}

func TestKnownSeriesDoNotPayForRules(t *testing.T) {
	took := func(rules int) time.Duration {
		r := newRig(t, ruled(rules, 10))
		for i := range 3 {
			r.consume(counters(10, i))
		}
		value := 3
		return least(20, func() func() {
			md := counters(10, value)
			value++
			return func() {
				for range 50 {
					r.consume(md)
				}
			}
		})
	}
	few, many := took(10), took(4000)
	require.Less(t, many, 10*few, "%v with a few rules", few)
}

func TestHeldBackSeriesDoNotPayForRules(t *testing.T) {
	racetest.Sequential(t)
	const series = 2000
	took := func(rules int) time.Duration {
		r := newRig(t, ruled(rules, 1))
		value := 0
		next := func() pmetric.Metrics {
			value++
			return counters(series, value)
		}
		for range 3 {
			r.consume(next())
		}
		_, members, _ := r.Overflow.Sizes()
		require.Equal(t, series-1, members)
		return least(5, func() func() {
			md := next()
			return func() { r.consume(md) }
		})
	}
	few, many := took(10), took(8000)
	require.Less(t, many, 5*few, "%v with a few rules", few)
}

func TestRulesAreWatchedOneByOne(t *testing.T) {
	racetest.Sequential(t)
	took := func(times, rules int) time.Duration {
		r := newRig(t, ruled(rules, 1))
		for i := range rules {
			r.send(point{name: fmt.Sprint("metric", i)})
		}
		require.Len(t, r.Limiter.Groups.Tallies, rules+1)
		return least(5, func() func() {
			return func() {
				for range times {
					r.WatchRules()
				}
			}
		})
	}
	few, many := took(16, 200), took(1, 16*200)
	require.Less(t, many, 6*few, "%v with a few rules at a time", few)
}

// Groups with shared limits do not each visit all series to find those that they have to give up.
func TestSharingIsSettledAtOnce(t *testing.T) {
	racetest.Sequential(t)
	const others = 50_000
	took := func(groups int) time.Duration {
		return least(3, func() func() {
			r := newRig(t, adaptive(10, func(rule *RuleConfig) {
				rule.Match.Metric, rule.GroupBy = "m", []string{"ns"}
			}))
			r.consume(counters(1, 0))
			var had, wanted []point
			for i := range groups {
				for k := range 10 {
					p := point{name: "m", resource: attrs{"ns": fmt.Sprint(i), "service": "first"}, attrs: attrs{"i": int64(k)}}
					had = append(had, p)
					p.resource = attrs{"ns": fmt.Sprint(i), "service": "second"}
					wanted = append(wanted, p)
				}
			}
			r.consume(metricsOf(had...))
			other := counters(others, 0)
			other.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).SetName("other")
			r.consume(other)
			r.consume(metricsOf(wanted...))
			return func() {
				shed := r.Limiter.Share(r.Rules.Policy)
				require.Equal(t, 5*groups, shed[r.Rules.Policy.Named["r"]])
			}
		})
	}
	few, many := took(2), took(400)
	require.Less(t, many, 40*few, "%v with a few groups", few)
}

func TestGroupsAreLookedAtSomeAtATime(t *testing.T) {
	racetest.Sequential(t)
	r := series.NewRegistry(10*series.LookedAt, 10)
	const groups = 3*series.LookedAt + 7
	for i := range uint64(groups) {
		r.Join(1, []series.Place{{Limit: &policy.Limit{Name: "r"}, Terms: &policy.Terms{}, Key: i + 1}}, series.SetKind{}, 0)
	}
	seen := map[*series.Group]bool{}
	r.Look(func(some []*series.Group) {
		require.False(t, r.Mu.TryLock())
		require.LessOrEqual(t, len(some), series.LookedAt)
		for _, g := range some {
			require.False(t, seen[g])
			seen[g] = true
		}
	})
	require.Len(t, seen, groups)
	require.True(t, r.Mu.TryLock())
}

func TestBatchesDoNotWaitForRulesToBeCompiled(t *testing.T) {
	r := newRig(t, ruled(1, 1))
	now, asked := r.Now, false
	r.Now = func() time.Time {
		asked = true
		require.True(t, r.Rules.TryRLock(), "the old rules are in force")
		r.Rules.RUnlock()
		return now()
	}
	r.Apply(r.cfg)
	require.True(t, asked)
	require.Equal(t, uint32(2), r.Rules.Policy.Generation)
}
