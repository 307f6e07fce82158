// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

const (
	worstLimit = 200
	worstUsers = 2000
)

// worst has a limit for each metric, and does not name labels that might explode.
func worst(c *Config) {
	c.Defaults.MaxSeriesPerMetric = worstLimit
	c.Defaults.Exceed = ExceedConfig{OnExceed: []string{"collapse_worst", "overflow"}, KeepLabels: []string{"region"}}
}

func request(k kind, user int) point {
	return point{
		name: "requests", kind: k, resource: attrs{"service": "shop"},
		attrs: attrs{"route": "/" + strconv.Itoa(user%3), "code": int64(200 + user%2), "user": strconv.Itoa(user), "region": strconv.Itoa(user % 50)},
	}
}

// A label that explodes unexpectedly is collapsed, and all other labels of the series are kept.
func TestLabelThatExplodesIsCollapsed(t *testing.T) {
	for _, k := range []kind{delta, cumulative, histogram} {
		r := newRig(t, worst)
		other := point{name: "healthy", kind: k, attrs: attrs{"route": "/"}}
		require.Len(t, r.send(other), 1)
		start := r.clock
		r.clock = r.clock.Add(time.Second)
		passed := 0
		for user := range worstUsers {
			passed += r.consume(r.timed(request(k, user), start, r.clock, 1)).DataPointCount()
			require.LessOrEqual(t, r.gaugeNow(policy.RuleDefaults), int64(worstLimit+1), "and the healthy one")
		}
		require.Equal(t, worstLimit*(policy.ReservePart-1)/policy.ReservePart, passed)
		require.Len(t, r.send(other), 1)
		require.Zero(t, r.rejected(policy.RuleDefaults, "max_series", "collapse"))
		// 6 combinations of route and code, with 50 regions, are 150 in all, of which 20 have room.
		collapsed := r.rejected(policy.RuleDefaults, "max_series", "collapse_worst")
		require.Positive(t, collapsed)
		require.Equal(t, int64(worstUsers-passed), collapsed+r.rejected(policy.RuleDefaults, "max_series", "overflow"))
		md := r.flushed(time.Second)
		sum, made, regions := int64(passed), 0, map[string]bool{}
		for _, rm := range md.ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				for i := range amount.PointCount(m) {
					n, _ := reading(m, i)
					sum += n
					a := amount.AttributesAt(m, i).AsRaw()
					if a["user"] == ident.CollapsedValue {
						made++
						require.Len(t, a, 4)
						require.NotEqual(t, ident.CollapsedValue, a["route"])
						regions[a["region"].(string)] = true
					}
				}
			}
		}
		require.Equal(t, int64(worstUsers), sum, "no increment is lost")
		require.Equal(t, worstLimit/policy.ReservePart, made, "there is a reserve for them, and they are bounded")
		require.Greater(t, len(regions), 1)
		requireWithinLimits(t, r)
	}
}

// If there are fewer combinations than the reserve has places, no series is added up unnecessarily.
func TestCollapsedSeriesFindRoom(t *testing.T) {
	r := newRig(t, func(c *Config) {
		worst(c)
		c.Defaults.Exceed.KeepLabels = nil
	})
	for user := range worstUsers {
		p := request(delta, user)
		delete(p.attrs, "region")
		r.send(p)
	}
	require.Zero(t, r.rejected(policy.RuleDefaults, "max_series", "overflow"))
	require.Equal(t, 6, r.flushed(time.Second).DataPointCount())
	require.Equal(t, int64(worstLimit*(policy.ReservePart-1)/policy.ReservePart+6), r.gaugeNow(policy.RuleDefaults))
}

// Labels that have few values, are to be kept, or are grouped by, are not collapsed.
func TestWhatDoesNotExplodeIsNotCollapsed(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"kept":    func(c *Config) { c.Defaults.Exceed.KeepLabels = []string{"user"} },
		"grouped": func(c *Config) { c.Rules[0].GroupBy, c.Rules[0].MaxSeries = []string{"user"}, 1 },
	} {
		r := newRig(t, func(c *Config) {
			worst(c)
			c.Defaults.MaxSeriesPerMetric = 0
			c.Rules = []RuleConfig{{Name: "r", MaxSeries: 50}}
			change(c)
		})
		for user := range 500 {
			for copies := range 2 {
				p := point{name: "requests", kind: delta, attrs: attrs{"user": strconv.Itoa(user), "copy": int64(copies)}}
				p.attrs["few"] = strconv.Itoa(user % 15)
				r.send(p)
			}
		}
		require.Zero(t, r.rejected("r", "max_series", "collapse_worst"), name)
		require.Positive(t, r.rejected("r", "max_series", "overflow"), name)
	}
}

func TestDryRunForeseesWhatIsCollapsed(t *testing.T) {
	r := newRig(t, func(c *Config) {
		worst(c)
		c.Mode = policy.ModeDryRun
	})
	for user := range worstUsers {
		require.Len(t, r.send(request(delta, user)), 1)
	}
	require.Positive(t, r.rejected(policy.RuleDefaults, "max_series", "collapse_worst"))
	require.LessOrEqual(t, r.gaugeNow(policy.RuleDefaults), int64(worstLimit))
}

// Gauges that may not be added up do not take the places of series that may.
func TestGaugesInVainTakeNoPlace(t *testing.T) {
	r := newRig(t, func(c *Config) {
		worst(c)
		c.Rules = []RuleConfig{{Name: "r", LabelLimits: map[string]int{"user": 1}, Exceed: ExceedConfig{OnExceed: []string{"collapse"}}}}
	})
	for user := range 10 {
		r.send(request(gauge, user))
	}
	require.Equal(t, int64(1), r.gaugeNow(policy.RuleTotal))
	require.Equal(t, int64(9), r.rejected("r", "label_limit", "drop"))
}
