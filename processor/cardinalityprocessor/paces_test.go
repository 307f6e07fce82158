// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
)

// A tenant that sends new series all the time does not take the new series of a rule from other tenants, whatever the
// rule groups by.
func TestAFloodOfOneTenantLeavesNewSeriesToOthers(t *testing.T) {
	racetest.Sequential(t)
	for _, groupBy := range [][]string{nil, {"metric"}, {"tenant"}} {
		const perMinute, minutes = 80, 5
		r := newRig(t, func(c *Config) {
			c.Tenant.From = []string{"metadata:flock"}
			c.Rules = []RuleConfig{{Name: "r", GroupBy: groupBy, MaxNewSeriesPerMinute: perMinute}}
		})
		n := 0
		arrive := func(flock string, some int) (passed int) {
			var all []point
			for range some {
				n++
				all = append(all, point{name: "m", attrs: attrs{"id": int64(n)}})
			}
			md := metricsOf(all...)
			_, _ = r.process(ident.Tenant{Name: flock, Key: "flock"}.Context(t.Context()), md)
			return md.DataPointCount()
		}
		flood := 0
		for range 60 * minutes {
			flood += arrive("loud", 10)
			r.clock = r.clock.Add(time.Second)
		}
		require.InDelta(t, perMinute*minutes, flood, perMinute, "it has all of the rate as long as it is alone, by %v", groupBy)
		require.Equal(t, 8, arrive("quiet", 8), "by %v", groupBy)
		second := 0
		for range 60 * minutes {
			flood += arrive("loud", 10)
			second += arrive("also loud", 10)
			r.clock = r.clock.Add(time.Second)
		}
		for i := range 3 {
			require.Positive(t, arrive(fmt.Sprint("late ", i), 1), "by %v", groupBy)
		}
		if len(groupBy) == 0 || groupBy[0] != "tenant" {
			require.InDelta(t, perMinute*minutes/2, second, perMinute, "by %v", groupBy)
		}
	}
}

// The series of a quiet tenant wait for their turn, even if another one has exceeded the rate for a long time.
func TestAnotherTenantsFloodIsNoReasonToStopWaiting(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Tenant.From = []string{"metadata:flock"}
		c.Rules = []RuleConfig{{Name: "r", MaxNewSeriesPerMinute: 8, Exceed: ExceedConfig{OnExceed: []string{"overflow"}}}}
	})
	n := 0
	arrive := func(flock string, some int) {
		for range some {
			n++
			s := aSeries(n)
			s.kind = cumulative
			_, _ = r.process(ident.Tenant{Name: flock, Key: "flock"}.Context(t.Context()), r.timed(s, r.clock, r.clock.Add(time.Second), 1))
		}
	}
	for range int(r.cfg.IdleTimeout / time.Second) {
		arrive("loud", 2)
		r.clock = r.clock.Add(time.Second)
	}
	overflowed := r.rejected("r", "series_rate", "overflow")
	arrive("loud", 20)
	loud := r.rejected("r", "series_rate", "overflow")
	require.Greater(t, loud, overflowed+15, "it has been too many for long")
	waited := r.waited()
	arrive("quiet", 20)
	require.Equal(t, loud, r.rejected("r", "series_rate", "overflow"))
	require.Greater(t, r.waited(), waited+15)
}
