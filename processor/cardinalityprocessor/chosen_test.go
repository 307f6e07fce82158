// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/insight"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/stats"
)

// When a metric is limited while it is new, the values of its labels are counted from then on. Series that existed
// before are counted as well: immediately if there are few series in all, and otherwise with their next points, not
// only at the end of the window.
func TestSeriesBeforeTheCutAreCountedInLabels(t *testing.T) {
	const limit, all, routes = 100, 1000, 20
	for name, others := range map[string]int{"few": 200, "many": 3000} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(c *Config) {
				c.Rules = []RuleConfig{{Name: "cut", Match: MatchConfig{Metric: "requests"}, MaxSeries: limit}}
			})
			for i := range others { // of more metrics than labels are counted for
				r.send(point{name: "other" + strconv.Itoa(i%20), attrs: attrs{"user": strconv.Itoa(i)}})
			}
			r.epochs(moment.IdleEpochs / 2)
			for part := range all / limit {
				r.consume(exploding(part*limit, limit))
			}
			without := func() inspect.Estimate {
				p, err := insight.New(r.Gate).WhatIf(inspect.Change{Metric: "requests", Drop: []string{"user"}})
				require.NoError(t, err)
				near(t, all, p.Before)
				return p.After
			}
			if name == "many" {
				require.InDelta(t, routes+limit, without().Value, 40)
				r.epochs(1)
				r.consume(exploding(0, all))
			}
			require.InDelta(t, routes, without().Value, 2)
			for range 2 * moment.IdleEpochs { // nothing is counted too often in the following
				r.epochs(1)
				r.consume(exploding(0, all))
				near(t, routes, without())
			}
		})
	}
}

// Pages that pass as a whole are searched for such series, too, and pass as a whole again afterwards.
func TestSeriesOfFamiliarPagesBeforeTheCutAreCountedInLabels(t *testing.T) {
	l := &lender{piped: newPiped(t, func(*Config) {})}
	for range 20 { // more metrics than labels are counted for
		l.shape.users = append(l.shape.users, []string{"a", "b", "c"})
	}
	for i := range 3000 { // and more series than are all in the sample
		l.shape.users[0] = append(l.shape.users[0], strconv.Itoa(i))
	}
	l.renew()
	for range 4 {
		l.come(t)
	}
	passed := l.Familiar.Passed.Load()
	require.Positive(t, passed)
	users := func() float64 {
		for _, m := range l.Book.Snapshot(1000).Metrics {
			if m.Name == "m19" && len(m.Labels) > 0 {
				return m.Labels[slices.IndexFunc(m.Labels, func(of stats.WithoutLabel) bool { return of.Name == "user" })].Values
			}
		}
		return 0
	}
	require.Zero(t, users())
	l.Book.RefuseAll("m19", []uint64{1}, nil)
	require.Positive(t, l.Book.Chosen("m19"))
	l.come(t)
	require.InDelta(t, 4, users(), 0.1, "the one that was refused is taken for one like these")
	before := l.Familiar.Passed.Load()
	l.come(t)
	require.Equal(t, before+passed, l.Familiar.Passed.Load(), "there is nothing more to tell")
}
