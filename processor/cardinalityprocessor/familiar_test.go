// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
)

// come sends the same page once more.
func (l *lender) come(t *testing.T) {
	t.Helper()
	l.shape.fill(l.md, l.clock, l.clock, 1, func(int, int) bool { return false })
	require.NoError(t, l.front.ConsumeMetrics(handback.Lend(t.Context(), l.loan, l.md), l.md))
}

// familiarPage returns a page that passes as a whole.
func familiarPage(t *testing.T) *lender {
	t.Helper()
	l := &lender{piped: newPiped(t, func(*Config) {})}
	l.shape.users = [][]string{{"a", "b"}, {"c"}, {"d", "e", "f"}}
	l.renew()
	for range 4 {
		l.come(t)
	}
	require.EqualValues(t, 1, l.Familiar.Passed.Load())
	return l
}

// New rules that apply to single points apply to a familiar page immediately.
func TestOtherRulesHoldForFamiliarPages(t *testing.T) {
	l := familiarPage(t)
	cfg := *l.cfg
	cfg.Rules = []RuleConfig{{Name: "slow", MaxPointsPerSecond: 1}}
	l.Apply(&cfg)
	for range 20 { // more than a minute's worth, which may be sent at once
		l.come(t)
	}
	require.EqualValues(t, 1, l.Familiar.Passed.Load())
	require.Less(t, l.Points.Passed.Load(), l.Points.In.Load())
}

// If a series may have lost its place, pages are checked once more.
func TestFamiliarPagesAreLookedForAfterLosses(t *testing.T) {
	l := familiarPage(t)
	l.Limiter.Losses.Add(1)
	l.come(t)
	require.EqualValues(t, 1, l.Familiar.Passed.Load())
	l.come(t)
	require.EqualValues(t, 2, l.Familiar.Passed.Load())
}

// Series of pages that pass as a whole lose their places at the same time as series that are checked each time, however
// long the pages have been sent.
func TestSeriesOfFamiliarPagesExpireInTime(t *testing.T) {
	for rounds := 4; rounds < 2*moment.IdleEpochs; rounds += 3 {
		t.Run(fmt.Sprintf("rounds=%d", rounds), func(t *testing.T) {
			given, lent := newPiped(t, func(*Config) {}), &lender{piped: newPiped(t, func(*Config) {})}
			lent.shape.users = [][]string{{"a", "b"}, {"c"}, {"d", "e", "f"}, {"g"}, {"h", "i"}}
			lent.renew()
			series := int64(lent.md.DataPointCount())
			for range rounds {
				fresh := lent.shape.make()
				lent.shape.fill(fresh, given.clock, given.clock, 1, func(int, int) bool { return false })
				require.NoError(t, given.front.ConsumeMetrics(t.Context(), fresh))
				lent.come(t)
				given.epochs(1)
				lent.epochs(1)
			}
			looked := 3 + rounds/(moment.IdleEpochs/2) // at first, and every half of an idle timeout
			require.GreaterOrEqual(t, lent.Familiar.Passed.Load(), int64(rounds-looked))
			require.Zero(t, lent.Limiter.Expired.Load())
			for range 2 * moment.IdleEpochs {
				given.epochs(1)
				lent.epochs(1)
				require.Equal(t, given.Limiter.Expired.Load(), lent.Limiter.Expired.Load())
			}
			require.Equal(t, series, lent.Limiter.Expired.Load())
		})
	}
}

// If attributes cannot have changed, pages pass without being read; the flags of their points are checked nevertheless.
func TestSealedPagesAreKnownByTheirNotes(t *testing.T) {
	for _, sealed := range []bool{false, true} {
		l := familiarPage(t)
		l.loan.Seal(sealed)
		passes := func() bool {
			before := l.Familiar.Passed.Load()
			l.come(t)
			return l.Familiar.Passed.Load() > before
		}
		require.True(t, passes())
		silently := l.shape
		silently.users = [][]string{{"z", "y"}, {"x"}, {"w", "v", "u"}}
		rename(l.md, silently)
		require.Equal(t, sealed, passes(), "as nobody does who is on such a road")
		rename(l.md, l.shape)
		for range 4 {
			passes()
		}
		require.True(t, passes())
		l.shape.fill(l.md, l.clock, l.clock, 1, func(metric, i int) bool { return metric == 2 && i == 2 })
		require.NoError(t, l.front.ConsumeMetrics(handback.Lend(t.Context(), l.loan, l.md), l.md))
		require.EqualValues(t, 1, l.Limiter.Ended.Load(), "a series said that it ends")
	}
}
