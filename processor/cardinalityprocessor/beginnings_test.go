// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
)

// varying are senders whose start time varies: one that computes it from its uptime each time, two that send the same
// series with start times of their own, and one that does not always send it.
var varying = map[string]func(begin time.Time, round int) time.Time{
	"worked out": func(begin time.Time, round int) time.Time {
		return begin.Add(time.Duration(round*7%5) * 300 * time.Millisecond)
	},
	"two": func(begin time.Time, round int) time.Time {
		return begin.Add(time.Duration(round%2) * 20 * time.Second)
	},
	"not always": func(begin time.Time, round int) time.Time {
		if round%2 == 0 {
			return begin
		}
		return time.Time{}
	},
}

// sayVarying sends a series that counts to 600, by 100 each minute, and then restarts with 50. Its clock is ahead.
func (r *rig) sayVarying(p point, startOf func(time.Time, int) time.Time, ahead time.Duration) {
	begin := r.clock.Add(ahead)
	for round := range 6 {
		r.clock = r.clock.Add(time.Minute)
		require.Zero(r.t, r.consume(r.timed(p, startOf(begin, round), r.clock.Add(ahead), int64(100*(round+1)))).DataPointCount())
	}
	r.clock = r.clock.Add(time.Minute)
	require.Zero(r.t, r.consume(r.timed(p, startOf(r.clock.Add(ahead-20500*time.Millisecond), 0), r.clock.Add(ahead), 50)).DataPointCount())
}

func TestABeginningThatVariesIsNoReset(t *testing.T) {
	for what, startOf := range varying {
		for _, ahead := range []time.Duration{0, 10 * time.Minute} {
			for _, k := range []kind{cumulative, histogram, summary} {
				r := newRig(t, overflowing(1))
				r.send(point{name: "other"})
				p := aSeries(1)
				p.kind = k
				r.sayVarying(p, startOf, ahead)
				n, _ := reading(onlyMetric(t, r.flushed(time.Second)), 0)
				require.Equal(t, int64(650), n, "%s, overflow of %d", what, k)
				if k == summary {
					continue
				}
				r = newRig(t, aggregating(AggregateConfig{By: []string{}}))
				r.sayVarying(p, startOf, ahead)
				n, _ = reading(onlyMetric(t, r.poured(time.Second)), 0)
				require.Equal(t, int64(650), n, "%s, aggregate of %d", what, k)
			}
		}
	}
}

// A series that overflowed and then passes by itself continues with its growth.
func TestABeginningThatVariesIsNoResetOfOnesOwn(t *testing.T) {
	for what, startOf := range varying {
		for _, k := range []kind{cumulative, histogram} {
			r := newRig(t, overflowing(1))
			other, p := point{name: "other"}, aSeries(1)
			p.kind = k
			r.send(other)
			begin, round := r.clock, 0
			say := func(n int64) (said int64) {
				r.clock = r.clock.Add(time.Minute)
				md := r.consume(r.timed(p, startOf(begin, round), r.clock, n))
				if round++; md.DataPointCount() == 0 {
					return 0
				}
				said, _ = reading(onlyMetric(t, md), 0)
				return said
			}
			total := func() int64 {
				n, _ := reading(onlyMetric(t, r.flushed(time.Second)), 0)
				return n
			}
			require.Zero(t, say(100))
			require.Equal(t, int64(100), total())
			r.Limiter.End(fingerprintsOf(metricsOf(other))[0], 0, r.Limiter.Now())
			r.epochs(1)
			begin = begin.Add(r.cfg.IdleTimeout / 16) // no longer than its uptime
			require.Zero(t, say(110), "it asks")
			require.Equal(t, int64(110), total(), "it has a place from here on")
			for n := int64(120); n < 200; n += 10 {
				require.Equal(t, n-110, say(n), "%s, %d", what, k)
			}
			require.Equal(t, int64(110), total())
		}
	}
}

// TestALateEndIsNone: a series continues if it has sent a later value.
func TestALateEndIsNone(t *testing.T) {
	end := func(r *rig, p point, at time.Time) pmetric.Metrics {
		md := r.timed(p, r.clock, at, 0)
		amount.Silence(onlyMetricOf(md), 0)
		return md
	}
	for _, k := range []kind{gauge, upDown, cumulative, histogram} {
		r := newRig(t, aggregating(AggregateConfig{By: []string{"route"}}))
		p := pod(k, "a", "/")
		r.consume(r.timed(p, r.clock, r.at(3), 7))
		r.consume(end(r, p, r.at(2)))
		for range 2 {
			n, _ := reading(onlyMetric(t, r.poured(10*time.Second)), 0)
			require.Equal(t, int64(7), n, k)
		}
		r.consume(end(r, p, r.clock))
		for !amount.WhenAt(onlyMetric(t, r.poured(10*time.Second)), 0).NoValue {
			require.NotEqual(t, gauge, k)
		}
	}
	r := newRig(t, overflowing(1))
	r.send(point{name: "other"})
	p := aSeries(1)
	p.kind = upDown
	r.consume(r.timed(p, time.Time{}, r.at(3), 7))
	r.consume(end(r, p, r.at(2)))
	require.Equal(t, int64(1), r.unaccounted("out_of_order"))
	n, _ := reading(onlyMetric(t, r.flushed(10*time.Second)), 0)
	require.Equal(t, int64(7), n)
	r.consume(end(r, p, r.at(0)))
	require.Zero(t, r.gauge("overflow_members", ""))
}

// TestWhatPassedMeanwhileHasSaidIt: if a rule was removed for a time, or did not apply to its input until now, all
// series that passed by themselves are ended, and their growth from then on is aggregated.
func TestWhatPassedMeanwhileHasSaidIt(t *testing.T) {
	for _, beside := range []bool{false, true} {
		for _, k := range []kind{cumulative, histogram, gauge, upDown} {
			rules := func(all ...RuleConfig) *Config {
				cfg := defaultConfig()
				cfg.Rules = all
				return cfg
			}
			rule := func(keep bool) RuleConfig {
				return RuleConfig{Name: "a", Aggregate: &AggregateConfig{By: []string{}, KeepInput: keep}}
			}
			r := newRig(t, func(*Config) {})
			r.Apply(rules(rule(beside)))
			p, begin := pod(k, "a", "/"), r.clock
			say := func(n int64) pmetric.Metrics {
				r.clock = r.clock.Add(time.Second)
				return r.consume(r.timed(p, begin, r.clock, n))
			}
			require.Equal(t, beside, say(10).DataPointCount() == 1)
			r.poured(time.Second)
			if !beside {
				r.Apply(rules())
				r.poured(time.Second)
			}
			require.Equal(t, 1, say(14).DataPointCount())
			r.Apply(rules(rule(false)))
			md := say(20)
			last := md.DataPointCount() - 1
			require.GreaterOrEqual(t, last, 0, "%d", k)
			w := amount.WhenAt(onlyMetric(t, md), last)
			require.True(t, w.NoValue, "%d", k)
			require.GreaterOrEqual(t, w.Time, pcommon.NewTimestampFromTime(r.clock))
			if k == cumulative || k == histogram {
				require.Equal(t, 1, last)
				n, _ := reading(onlyMetric(t, md), 0)
				require.Equal(t, int64(20), n)
			}
			require.Zero(t, say(23).DataPointCount())
			want := map[kind]int64{cumulative: 13, histogram: 13, gauge: 23, upDown: 23}[k]
			if beside && (k == cumulative || k == histogram) {
				want = 3
			}
			var got []int64
			for _, at := range allPoints(r.poured(time.Second)) {
				if at.metric.Name() == "hits" && !amount.WhenAt(at.metric, at.at).NoValue {
					n, _ := reading(at.metric, at.at)
					got = append(got, n)
				}
			}
			require.Equal(t, []int64{want}, got, "%d, beside: %t", k, beside)
		}
	}
}
