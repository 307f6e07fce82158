// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"bytes"
	"fmt"
	rand "math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// deferring is a receiver whose targets have values of their own, and share one memory in turn: the values are only written
// when they are requested.
type deferring struct {
	*lender

	users    [][][]string // by target
	words    []*handback.Wording
	settled  int
	withheld bool
}

// Settle implements handback.Filler.
func (o *deferring) Settle() {
	if o.withheld {
		o.withheld = false
		o.settled++
		rename(o.md, o.shape)
	}
}

// turn prepares the next page of a target.
func (o *deferring) turn(target int) {
	o.shape.users, o.shape.from = o.users[target], target
	nobody := make([][]string, len(o.shape.users))
	for i, users := range o.shape.users {
		nobody[i] = slices.Repeat([]string{"nobody"}, len(users))
	}
	rename(o.md, pageShape{users: nobody})
	o.withheld = true
}

// If attributes are only written when they are requested, the decisions about series are the same, whatever comes and
// goes; and attributes of known series are not requested.
func TestDeferredValuesAreDecidedAboutAlike(t *testing.T) {
	racetest.Sequential(t)
	known, whole, hidden, narrow := 0, int64(0), 0, 0
	for seed := range seeds(t, 40) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { whole += deferAlike(t, seed, &known, &hidden, &narrow) })
	}
	require.Greater(t, known, 200, "pages that nobody read")
	require.Greater(t, whole, int64(known))
	require.Positive(t, hidden, "points were hidden")
	require.Positive(t, narrow, "of pages that nobody read")
}

func deferAlike(t *testing.T, seed uint64, known, hidden, narrow *int) (whole int64) {
	const targets, metrics = 3, 10
	random := rand.New(rand.NewPCG(seed, 3))
	configure := func(c *Config) {
		rule := RuleConfig{Name: "r", MaxSeries: 4 + int(seed%9)*8, GroupBy: []string{"metric"}}
		rule.Exceed.OnExceed = [][]string{{"overflow"}, {"drop"}, {"collapse", "overflow"}}[seed%3]
		rule.Exceed.Gauge = policy.NameMean
		if seed%7 == 0 {
			rule.LabelLimits = map[string]int{"user": 30}
		}
		c.Rules = []RuleConfig{rule}
		if seed%3 == 0 {
			c.Exempt = []MatchConfig{{Metric: "m9"}, {Metric: "m1*", Attributes: map[string]string{"user": "0-2"}}}
		}
		if seed%5 == 4 {
			c.Rules = append(c.Rules, RuleConfig{Name: "sums", Match: MatchConfig{Metric: "m1"}, Aggregate: &AggregateConfig{Without: []string{"user"}}})
		}
	}
	given, o := newPiped(t, configure), &deferring{lender: &lender{piped: newPiped(t, configure)}}
	encode := func(md pmetric.Metrics) []byte {
		b, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
		require.NoError(t, err)
		return b
	}
	var passed [2][]byte
	given.seen = func(md pmetric.Metrics) { passed[0] = encode(md) }
	asked := false
	o.seen = func(md pmetric.Metrics) {
		asked = !o.withheld
		o.loan.Settle() // like a reader
		passed[1] = encode(md)
	}
	version := 0
	values := func(target int) (all [][]string) {
		version++
		for range metrics {
			var users []string
			for i := range 3 {
				users = append(users, fmt.Sprintf("%d-%d", target*(1+version/(targets+1)), i))
			}
			all = append(all, users)
		}
		return all
	}
	for i := range targets {
		o.users, o.words = append(o.users, values(i)), append(o.words, &handback.Wording{})
	}
	o.shape.users = o.users[0]
	o.renew()
	start := given.clock
	for round := range uint64(150) {
		at := random.IntN(targets)
		plain := random.IntN(12) == 0 // the receiver writes all values
		switch random.IntN(30) {
		case 0:
			o.users[at] = values(at)
			o.words[at].Forget()
		case 1: // other limits
			cfg := *given.cfg
			cfg.Rules = slices.Clone(cfg.Rules)
			cfg.Rules[0].MaxSeries = 2 + random.IntN(60)
			given.Apply(&cfg)
			o.Apply(&cfg)
		case 2:
			handback.Overwrite(o.md)
			o.shape.users = o.users[at]
			o.renew()
		}
		o.turn(at)
		if plain {
			o.Settle()
			o.loan.Unword()
			o.loan.Forget()
		} else {
			o.loan.Reword(o.words[at], o.md.DataPointCount(), o)
		}
		refused := error(nil)
		if random.IntN(10) == 0 {
			refused = errBusy
		}
		given.err, o.err = refused, refused
		given.clock, o.clock = given.clock.Add(time.Second), o.clock.Add(time.Second)
		endsAt := random.IntN(300)
		ends := func(metric, i int) bool { return metric*7+i == endsAt }
		fresh := o.shape.make()
		o.shape.fill(fresh, start, given.clock, round, ends)
		o.shape.fill(o.md, start, given.clock, round, ends)
		points, before := o.md.DataPointCount(), o.settled
		passed, asked = [2][]byte{}, true
		refused = given.front.ConsumeMetrics(t.Context(), fresh)
		require.Equal(t, refused, o.front.ConsumeMetrics(handback.Lend(t.Context(), o.loan, o.md), o.md))
		require.True(t, bytes.Equal(passed[0], passed[1]), "round %d: what is passed on", round)
		if !asked {
			*known++
			require.Equal(t, before+1, o.settled)
		}
		if refused != nil {
			o.renew()
			continue
		}
		if md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(passed[1]); err == nil && md.DataPointCount() < points {
			*hidden++
			lent, defers := o.loan.Defers()
			require.True(t, !defers || o.loan.Wording() == nil || lent == md.DataPointCount(), "%d points are said to be there", lent)
			if !asked {
				*narrow++
			}
		}
		require.Equal(t, o.points, addresses(o.md), "where they were")
		if random.IntN(5) == 0 {
			require.Equal(t, flushedTexts(t, given.rig), flushedTexts(t, o.rig), "round %d", round)
		}
		if random.IntN(6) == 0 {
			n := 1 + random.IntN(4)
			given.epochs(n)
			o.epochs(n)
		}
	}
	require.Equal(t, given.Points.In.Load(), o.Points.In.Load())
	require.Equal(t, given.Points.Passed.Load(), o.Points.Passed.Load())
	require.Equal(t, given.Limiter.Admitted.Load(), o.Limiter.Admitted.Load())
	require.Equal(t, given.Limiter.Expired.Load(), o.Limiter.Expired.Load())
	require.Equal(t, given.Limiter.Ended.Load(), o.Limiter.Ended.Load())
	return o.Familiar.Passed.Load()
}

// The pages of a target that pass by their wording are not read, until half an idle timeout has passed or a series may
// have lost its place.
func TestKnownWordsAreNotRead(t *testing.T) {
	o := &deferring{lender: &lender{piped: newPiped(t, func(*Config) {})}}
	for target := range 2 {
		var users [][]string
		for i := range 4 {
			users = append(users, []string{strconv.Itoa(target) + "a", strconv.Itoa(target) + "b" + strconv.Itoa(i)})
		}
		o.users, o.words = append(o.users, users), append(o.words, &handback.Wording{})
	}
	o.shape.users = o.users[0]
	o.renew()
	come := func(target int) (read bool) {
		before := o.settled
		o.turn(target)
		o.loan.Reword(o.words[target], o.md.DataPointCount(), o)
		o.shape.fill(o.md, o.clock, o.clock, 1, func(int, int) bool { return false })
		require.NoError(t, o.front.ConsumeMetrics(handback.Lend(t.Context(), o.loan, o.md), o.md))
		return o.settled > before
	}
	for range 2 {
		require.True(t, come(0))
		require.True(t, come(1))
		for range 3 {
			require.False(t, come(0))
			require.False(t, come(1))
		}
		o.Limiter.Losses.Add(1) // a series has lost its place
	}
}
