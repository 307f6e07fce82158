// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/insight"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// watched has rules that match incoming series and rules that do not.
func watched(t *testing.T, rules ...RuleConfig) *rig {
	r := newRig(t, func(c *Config) {
		c.IdleTimeout = time.Hour
		c.Statistics.Enabled = false // otherwise known series would be looked at now and then
		c.Rules = rules
	})
	require.NoError(t, r.begin(componenttest.NewNopHost()))
	return r
}

func (r *rig) silence(rule string) time.Duration {
	return time.Duration(r.gauge("rule_silence", rule)) * time.Second
}

// A rule is alive while it has series, even if it is not evaluated for them, and silent from then on.
func TestRuleWithoutMatchesIsTold(t *testing.T) {
	r := watched(
		t,
		RuleConfig{Name: "alive", Match: MatchConfig{Metric: "m"}},
		RuleConfig{Name: "dead", Match: MatchConfig{Metric: "http.*"}},
		RuleConfig{Name: "narrow", Match: MatchConfig{Attributes: map[string]string{"i": "7"}}},
	)
	epoch := r.cfg.IdleTimeout / moment.IdleEpochs
	days := func(n int) {
		for range n * int(24*time.Hour/epoch) {
			r.send(aSeries(1))
			r.epochs(1)
		}
	}
	events := func() (of []string) {
		for _, e := range r.Events.List() {
			if e.Kind == "rule_silent" {
				of = append(of, e.Rule)
			}
		}
		return of
	}
	days(2)
	require.LessOrEqual(t, r.silence("alive"), epoch)
	require.Equal(t, 48*time.Hour, r.silence("dead"), "since it is in force")
	require.Equal(t, []string{"narrow", "dead"}, events(), "once each")
	require.Nil(t, insight.New(r.Gate).Overview().Limits[1].Matched)

	r.send(aSeries(7))
	require.Zero(t, r.silence("narrow"))
	require.Equal(t, r.Now(), *insight.New(r.Gate).Overview().Limits[2].Matched)
	days(1)
	require.Less(t, r.silence("narrow"), 23*time.Hour, "it had a series until that was idle")
	days(3)
	require.Equal(t, []string{"narrow", "narrow", "dead"}, events())
	got, err := r.telemetry.GetMetric("otelcol_processor_cardinality_rule_silence")
	require.NoError(t, err)
	require.Zero(t, sumOf(got, attrs{"rule": policy.RuleTotal}), "nobody wrote that")
}

// A rule that rejects everything it matches, or whose series are always counted elsewhere, is not silent.
func TestRuleThatOnlyRejectsIsAlive(t *testing.T) {
	for _, onExceed := range []string{"drop", "overflow"} {
		r := watched(t,
			RuleConfig{Name: "full", MaxSeries: 1, Exceed: ExceedConfig{OnExceed: []string{onExceed}}},
			RuleConfig{Name: "other", Match: MatchConfig{Attributes: map[string]string{"i": "2"}}},
		)
		for i := range 5 * moment.IdleEpochs {
			r.consume(r.timed(aSeries(1), r.clock, r.clock.Add(time.Second), 5))
			r.consume(r.timed(aSeries(2), time.Unix(1_000_000, 0), r.clock.Add(time.Second), int64(i)))
			r.epochs(1)
			require.LessOrEqual(t, r.silence("other"), r.cfg.IdleTimeout/moment.IdleEpochs, onExceed)
		}
	}
}

// Whether a rule has matched is remembered as long as its definition is the same.
func TestSilenceOutlivesOtherRules(t *testing.T) {
	dead := RuleConfig{Name: "dead", Match: MatchConfig{Metric: "x"}, MaxSeries: 5}
	r := watched(t, dead)
	r.epochs(32)
	cfg := *r.cfg
	dead.MaxSeries = 6
	cfg.Rules = []RuleConfig{dead, {Name: "new", Match: MatchConfig{Metric: "x"}}}
	r.Apply(&cfg)
	r.epochs(16)
	require.Equal(t, 3*time.Hour, r.silence("dead"))
	require.Equal(t, time.Hour, r.silence("new"))
}

// All metrics of a rule have its owner, and so does what is displayed.
func TestOwnersAreTold(t *testing.T) {
	owner := map[string]string{"team": "web", "page": "no"}
	r := watched(t, RuleConfig{Name: "r", MaxSeries: 1, Owner: owner}, RuleConfig{Name: "dead", Match: MatchConfig{Metric: "x"}, Owner: owner})
	r.send(aSeries(1), aSeries(2))
	r.epochs(1)
	for name, rule := range map[string]string{
		"series": "r", "groups": "r", "fullest_group": "r", "limit": "r", "rejected_series": "r", "rejected_points": "r", "rule_silence": "dead",
	} {
		got, err := r.telemetry.GetMetric("otelcol_processor_cardinality_" + name)
		require.NoError(t, err)
		require.Positive(t, sumOf(got, attrs{"rule": rule, "team": "web", "page": "no"}), name)
	}
	limits := insight.New(r.Gate).Overview().Limits
	require.Equal(t, []inspect.Label{{Name: "page", Value: "no"}, {Name: "team", Value: "web"}}, limits[0].Owner)
	require.Empty(t, limits[2].Owner)
}
