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
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/series"
)

// schedule generates points and rules, which follow from a seed.
type schedule struct{ *rand.Rand }

func newSchedule(seed uint64) schedule { return schedule{rand.New(rand.NewPCG(seed, 99))} }

func (s schedule) value() any {
	switch s.IntN(6) {
	case 0:
		return int64(s.IntN(4))
	case 1:
		return float64(s.IntN(4))
	case 2:
		return s.IntN(2) == 0
	default:
		return strconv.Itoa(s.IntN(12))
	}
}

func (s schedule) point() point {
	p := point{
		resource: attrs{"service": "s" + strconv.Itoa(s.IntN(3))},
		scope:    strconv.Itoa(s.IntN(2)),
		name:     []string{"http.a", "http.b", "rpc.a", "own.a"}[s.IntN(4)],
		unit:     []string{"", "s"}[s.IntN(2)],
		kind:     kind(s.IntN(int(kinds))),
		attrs:    attrs{},
	}
	for _, key := range []string{"route", "user", "service"} {
		if s.IntN(2) == 0 {
			p.attrs[key] = s.value()
		}
	}
	return p
}

func (s schedule) config() *Config {
	cfg := defaultConfig()
	cfg.Defaults.Exceed.OnExceed = []string{"drop"}
	cfg.Memory.MaxSeries = 5 + s.IntN(60)
	cfg.Defaults.MaxSeriesPerMetric = s.IntN(30)
	if s.IntN(2) == 0 {
		cfg.Exempt = []MatchConfig{{Metric: "own.*"}, {Metric: "rpc.*", Attributes: map[string]string{"route": "1*"}}}
	}
	for i := range s.IntN(4) {
		rule := RuleConfig{Name: "rule" + strconv.Itoa(i), MaxSeries: s.IntN(15)}
		if s.IntN(2) == 0 {
			rule.Match.Metric = []string{"http.*", "rpc.a", "not:rpc.a", "regex:(http|own)[.]a"}[s.IntN(4)]
		}
		if s.IntN(3) == 0 {
			rule.Match.Resource = map[string]string{"service": []string{"s1", "not:s1", "regex:s[02]"}[s.IntN(3)]}
		}
		if s.IntN(4) == 0 {
			rule.Match.Scope = []string{"1", "not:1"}[s.IntN(2)]
		}
		if s.IntN(3) == 0 {
			rule.Match.Attributes = map[string]string{
				[]string{"user", "service"}[s.IntN(2)]: []string{"*", "not:*", "regex:s?[0-2]", "not:1*"}[s.IntN(4)],
			}
		}
		for range s.IntN(3) {
			rule.GroupBy = append(rule.GroupBy,
				[]string{"metric", "service", "route", "resource:service", "attribute:service", "attribute:user"}[s.IntN(6)])
		}
		if s.IntN(2) == 0 {
			rule.LabelLimits = map[string]int{"user": s.IntN(8), "route": s.IntN(8)}
			rule.LabelLimits[[]string{"service", "resource:service", "attribute:service"}[s.IntN(3)]] = s.IntN(8)
			for label := range rule.LabelLimits {
				if rule.ValidateLabelLimit(label, cfg) != nil {
					delete(rule.LabelLimits, label)
				}
			}
		}
		cfg.Rules = append(cfg.Rules, rule)
	}
	return cfg
}

// TestAgreesWithOracle: for any input, in any order, with expiry, new rules and restarts, exactly those points pass
// that pass the oracle.
func TestAgreesWithOracle(t *testing.T) {
	racetest.Sequential(t)
	for seed := range seeds(t, 25) {
		agree(t, seed)
	}
}

func FuzzAgreesWithOracle(f *testing.F) {
	f.Add(uint64(1000))
	f.Fuzz(agree)
}

func agree(t *testing.T, seed uint64) {
	s := newSchedule(seed)
	cfg := s.config()
	r := newRig(t, func(c *Config) { *c = *cfg })
	r.Limiter.Groups.MaxLeft = 1000
	o := newOracle(cfg)
	alive := map[string]int{} // by identity, the epoch in which they last passed
	for step := range 150 {
		switch {
		case s.IntN(4) == 0:
			for range 1 + s.IntN(6) {
				r.epochs(1)
				o.tick()
			}
		case s.IntN(25) == 0:
			next := s.config()
			if s.IntN(2) == 0 { // only the limits change
				next.Rules = cfg.Rules
				next.Memory.MaxSeries = 1 + cfg.Memory.MaxSeries/2
			}
			cfg = next
			require.NoError(t, cfg.Validate())
			r.Apply(cfg)
			o.reload(cfg)
		}
		if s.IntN(25) == 0 {
			host := newMemory()
			r.keep(host)
			require.NoError(t, r.Snapshot.Save(t.Context()))
			r.Snapshot.Storage = nil
			cfg.Storage = &memoryID
			r = newRig(t, func(c *Config) { *c = *cfg })
			r.Limiter.Groups.MaxLeft = 1000
			require.NoError(t, r.begin(host))
			o.restart()
		}
		points := make([]point, s.IntN(20))
		var want, marks []string
		for i := range points {
			points[i] = s.point()
			id := points[i].identity()
			last, known := alive[id]
			admitted, value, mark := o.admit(points[i])
			if known && o.epoch-last <= moment.IdleEpochs {
				require.True(t, admitted, "seed %d: %s was interrupted", seed, id)
			}
			if admitted && o.series[id] != nil {
				alive[id] = o.epoch
			}
			if admitted || value {
				want = append(want, id)
			}
			if mark {
				marks = append(marks, id)
			}
		}
		with, without := r.say(points...)
		require.Equal(t, want, with, "seed %d, step %d", seed, step)
		require.Equal(t, marks, without, "seed %d, step %d", seed, step)
		requireWithinLimits(t, r)
		require.Equal(t, int64(len(o.series)), r.gaugeNow("total"))
	}
}

// gaugeNow returns the number of a rule's series without using telemetry.
func (r *rig) gaugeNow(rule string) (n int64) {
	r.Limiter.Groups.Observe(func(name string, t series.Tally) {
		if name == rule {
			n = int64(t.Members)
		}
	})
	return n
}

// requireWithinLimits recounts all series and compares the registry with the tables.
func requireWithinLimits(t *testing.T, r *rig) {
	reg := r.Limiter.Groups
	members := map[uint32]int{}
	for _, tab := range []*series.Table{r.Limiter.Series, r.Limiter.Values} {
		for i := range tab.Shards {
			tab.Shards[i].Each(func(_ uint64, set uint32) { members[set]++ })
		}
	}
	for id := uint32(1); id <= series.LeftLast; id++ {
		require.Equal(t, members[id], reg.Set(id).Members)
		delete(members, id)
	}
	used := map[uint64]int{}
	require.Len(t, members, len(reg.Ids))
	for id, n := range members {
		require.Equal(t, n, reg.Set(id).Members)
		for _, g := range reg.Set(id).Groups {
			used[g.Key] += n
		}
	}
	for key, g := range reg.Groups {
		require.Equal(t, used[key], g.Used)
		require.True(t, g.Sets > 0 || g.Party != nil)
	}
}

// TestAdmittedNeverExceedLimits: unless rules change, no group ever exceeds its limit.
func TestAdmittedNeverExceedLimits(t *testing.T) {
	racetest.Sequential(t)
	for seed := range seeds(t, 20) {
		s := newSchedule(1000 + seed)
		cfg := s.config()
		r := newRig(t, func(c *Config) { *c = *cfg })
		for range 60 {
			r.sweeps(s.IntN(3 * r.Limiter.Shards())) // batches arrive at any time of an epoch
			points := make([]point, 30)
			for i := range points {
				points[i] = s.point()
			}
			r.send(points...)
			for key, g := range r.Limiter.Groups.Groups {
				for _, l := range r.Rules.Policy.Limits {
					if r.Limiter.Groups.Tallies[l.Name] == g.Tally && l.Max > 0 {
						require.LessOrEqual(t, g.Used, l.Max, "seed %d, group %x of %s", seed, key, l.Name)
					}
				}
			}
		}
	}
}

// TestSameInputSameOutput: two runs agree in every point, its value and its position.
func TestSameInputSameOutput(t *testing.T) {
	racetest.Sequential(t)
	for seed := range seeds(t, 4) {
		run := func() (out []string) {
			keep := func(md pmetric.Metrics) {
				ids := identities(md)
				for _, rm := range md.ResourceMetrics().All() {
					for _, sm := range rm.ScopeMetrics().All() {
						for _, m := range sm.Metrics().All() {
							for i := range amount.PointCount(m) {
								v := amount.ValueAt(m, i)
								out = append(out, fmt.Sprint(ids[i], string(v.Append(nil)), amount.WhenAt(m, i)))
							}
							ids = ids[amount.PointCount(m):]
						}
					}
				}
			}
			s := newSchedule(seed)
			cfg := s.config()
			cfg.Defaults.Exceed = ExceedConfig{OnExceed: []string{"collapse", "overflow"}, KeepLabels: []string{"route"}, Gauge: policy.NameMean}
			cfg.Rules = append(cfg.Rules, RuleConfig{Name: "shared", MaxSeries: 12, Adaptive: AdaptiveConfig{ShareBy: []string{"service", "scope"}}})
			r := newRig(t, func(c *Config) { *c = *cfg })
			for range 100 {
				r.epochs(s.IntN(3))
				for range 10 {
					p := s.point()
					keep(r.consume(r.timed(p, r.clock.Add(-time.Minute), r.clock, int64(s.IntN(100)))))
				}
				if s.IntN(3) == 0 {
					keep(r.flushed(time.Second))
				}
			}
			return out
		}
		first := run()
		require.Equal(t, first, run())
	}
}
