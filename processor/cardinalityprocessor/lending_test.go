// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"bytes"
	"context"
	"fmt"
	rand "math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/metadata"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// lender is a receiver that fills the same memory again and again.
type lender struct {
	*piped

	shape  pageShape
	md     pmetric.Metrics
	loan   *handback.Loan
	points []pcommon.Map // their addresses
}

// pageShape describes a target's page: by metric, the user of each of its points.
type pageShape struct {
	users  [][]string
	from   int  // the target
	gauges bool // no other kinds
}

func (s pageShape) kind(metric int) kind {
	if s.gauges {
		return gauge
	}
	return kind(metric % int(kinds))
}

func (s pageShape) make() pmetric.Metrics {
	md := pmetric.NewMetrics()
	for i, users := range s.users {
		if i%8 == 0 {
			sm := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty()
			sm.Scope().SetName(strconv.Itoa(i))
		}
		metrics := md.ResourceMetrics().At(md.ResourceMetrics().Len() - 1).ScopeMetrics().At(0).Metrics()
		var parts []point
		for _, user := range users {
			parts = append(parts, point{name: "m" + strconv.Itoa(i), kind: s.kind(i), attrs: attrs{"user": user}})
		}
		one := metricsOf(parts...).ResourceMetrics()
		m := metrics.AppendEmpty()
		one.At(0).ScopeMetrics().At(0).Metrics().At(0).CopyTo(m)
		for j := 1; j < one.Len(); j++ {
			appendPoints(m, one.At(j).ScopeMetrics().At(0).Metrics().At(0))
		}
	}
	return md
}

func appendPoints(to, from pmetric.Metric) {
	switch to.Type() {
	case pmetric.MetricTypeGauge:
		from.Gauge().DataPoints().MoveAndAppendTo(to.Gauge().DataPoints())
	case pmetric.MetricTypeSum:
		from.Sum().DataPoints().MoveAndAppendTo(to.Sum().DataPoints())
	case pmetric.MetricTypeHistogram:
		from.Histogram().DataPoints().MoveAndAppendTo(to.Histogram().DataPoints())
	case pmetric.MetricTypeExponentialHistogram:
		from.ExponentialHistogram().DataPoints().MoveAndAppendTo(to.ExponentialHistogram().DataPoints())
	default:
		from.Summary().DataPoints().MoveAndAppendTo(to.Summary().DataPoints())
	}
}

// fill sets the values of all points, like a receiver, and the target of the resources.
func (s pageShape) fill(md pmetric.Metrics, start, now time.Time, round uint64, ends func(metric, i int) bool) {
	since, at := pcommon.NewTimestampFromTime(start), pcommon.NewTimestampFromTime(now)
	metric := 0
	for _, rm := range md.ResourceMetrics().All() {
		rm.Resource().Attributes().PutStr("service.instance.id", strconv.Itoa(s.from))
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			for i := range amount.PointCount(m) {
				n := 10*round + uint64(metric+i)
				flags := pmetric.DefaultDataPointFlags.WithNoRecordedValue(ends(metric, i))
				switch m.Type() {
				case pmetric.MetricTypeGauge:
					fillNumber(m.Gauge().DataPoints().At(i), since, at, n, flags)
				case pmetric.MetricTypeSum:
					fillNumber(m.Sum().DataPoints().At(i), since, at, n, flags)
				case pmetric.MetricTypeHistogram:
					dp := m.Histogram().DataPoints().At(i)
					dp.SetStartTimestamp(since)
					dp.SetTimestamp(at)
					dp.SetFlags(flags)
					dp.ExplicitBounds().FromRaw([]float64{1, 2})
					dp.BucketCounts().FromRaw([]uint64{n, 1, 0})
					dp.SetCount(n + 1)
					dp.SetSum(float64(n))
				case pmetric.MetricTypeExponentialHistogram:
					fresh := pmetric.NewExponentialHistogramDataPoint()
					dp := m.ExponentialHistogram().DataPoints().At(i)
					dp.Attributes().MoveTo(fresh.Attributes())
					fresh.SetStartTimestamp(since)
					fresh.SetTimestamp(at)
					fresh.SetFlags(flags)
					fresh.SetCount(n)
					fresh.SetSum(float64(n))
					fresh.Positive().BucketCounts().FromRaw([]uint64{n})
					fresh.MoveTo(dp)
				default:
					dp := m.Summary().DataPoints().At(i)
					dp.SetStartTimestamp(since)
					dp.SetTimestamp(at)
					dp.SetFlags(flags)
					dp.SetCount(n)
					dp.SetSum(float64(n))
				}
			}
			metric++
		}
	}
}

// fillNumber leaves the flags of points with a value unchanged, like the receiver.
func fillNumber(dp pmetric.NumberDataPoint, since, at pcommon.Timestamp, n uint64, flags pmetric.DataPointFlags) {
	dp.SetStartTimestamp(since)
	dp.SetTimestamp(at)
	dp.SetDoubleValue(float64(n))
	if flags.NoRecordedValue() || dp.Flags().NoRecordedValue() && dp.Exemplars().Len() > 0 {
		dp.SetFlags(flags)
	}
	dp.Exemplars().RemoveIf(func(pmetric.Exemplar) bool { return true })
	if flags.NoRecordedValue() {
		dp.Exemplars().AppendEmpty() // marks its own points
	}
}

// renew allocates new memory, with a loan of its own.
func (l *lender) renew() {
	l.md, l.loan = l.shape.make(), new(handback.Loan)
	l.points = addresses(l.md)
}

func addresses(md pmetric.Metrics) (all []pcommon.Map) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				for i := range amount.PointCount(m) {
					all = append(all, amount.AttributesAt(m, i))
				}
			}
		}
	}
	return all
}

// Borrowed metrics get the same decisions as metrics that are passed without a loan, whatever happens to them and
// however often memory and series change; and afterwards they are unchanged.
func TestWhatIsLentIsDecidedAboutAlike(t *testing.T) {
	racetest.Sequential(t)
	hits, hidden, whole := 0, 0, int64(0)
	for seed := range seeds(t, 40) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { whole += lendAlike(t, seed, &hits, &hidden) })
	}
	require.Greater(t, whole, int64(10), "pages were familiar")
	require.Positive(t, hits, "hints were used")
	require.Positive(t, hidden, "points were hidden")
}

func lendAlike(t *testing.T, seed uint64, hits, hidden *int) (whole int64) {
	random := rand.New(rand.NewPCG(seed, 7))
	actions := [][]string{{"overflow"}, {"collapse", "overflow"}, {"drop"}, {"sample"}, {"collapse_worst", "overflow"}}[seed%5]
	configure := func(c *Config) {
		rule := RuleConfig{Name: "r", MaxSeries: 4 + int(seed%9), GroupBy: []string{"metric"}}
		rule.Exceed.OnExceed = actions
		rule.Exceed.SampleRate = 0.3
		rule.Exceed.Gauge = policy.NameMean
		if seed%2 == 0 && actions[0] != "sample" {
			rule.LabelLimits = map[string]int{"user": 3}
		}
		c.Rules = []RuleConfig{rule}
		if seed%3 == 0 {
			c.Exempt = []MatchConfig{{Metric: "m9"}, {Metric: "m1*", Attributes: map[string]string{"user": "u2"}}}
		}
		if seed%4 == 1 {
			c.Rules = append(c.Rules, RuleConfig{
				Name: "sums", Match: MatchConfig{Metric: "m1"},
				Aggregate: &AggregateConfig{Without: []string{"user"}},
			})
		}
	}
	given, lent := newPiped(t, configure), &lender{piped: newPiped(t, configure)}
	var passed [2][]byte
	encode := func(md pmetric.Metrics) []byte {
		b, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
		require.NoError(t, err)
		return b
	}
	given.seen = func(md pmetric.Metrics) { passed[0] = encode(md) }
	lent.seen = func(md pmetric.Metrics) { passed[1] = encode(md) }
	user := func() string { return "u" + strconv.Itoa(random.IntN(8)) }
	reshape := func() {
		lent.shape.users = make([][]string, 16)
		for i := range lent.shape.users {
			for range 1 + random.IntN(6) {
				if u := user(); !slices.Contains(lent.shape.users[i], u) {
					lent.shape.users[i] = append(lent.shape.users[i], u)
				}
			}
		}
	}
	reshape()
	lent.renew()
	start, restless := given.clock, 13
	if seed%2 == 1 { // pages stay the same long enough to be familiar
		restless = 60
	}
	for round := range uint64(120) {
		switch random.IntN(restless) {
		case 0: // other series, in new memory
			reshape()
			lent.renew()
		case 1: // other series in the same memory, with notice by the receiver
			at := random.IntN(len(lent.shape.users))
			for i := range lent.shape.users[at] {
				name := "other" + strconv.Itoa(i) + user()
				lent.shape.users[at][i] = name
			}
			rename(lent.md, lent.shape)
			lent.loan.Forget()
		case 2: // the order of series changes without notice, so they have other addresses
			at := random.IntN(len(lent.shape.users))
			slices.Reverse(lent.shape.users[at])
			lent.md = lent.shape.make()
			lent.points = addresses(lent.md)
		case 4: // other series in the same memory without notice
			at := random.IntN(len(lent.shape.users))
			for i := range lent.shape.users[at] {
				lent.shape.users[at][i] = "secret" + strconv.Itoa(i) + user()
			}
			rename(lent.md, lent.shape)
		case 3: // it is poisoned, and allocated again
			handback.Overwrite(lent.md)
			lent.renew()
		case 5: // other limits
			cfg := *given.cfg
			cfg.Rules = slices.Clone(cfg.Rules)
			cfg.Rules[0].MaxSeries = 2 + random.IntN(9)
			given.Apply(&cfg)
			lent.Apply(&cfg)
		}
		lent.shape.from = random.IntN(3)
		refused := error(nil)
		if random.IntN(6) == 0 {
			refused = errBusy
		}
		given.err, lent.err = refused, refused
		given.clock, lent.clock = given.clock.Add(time.Second), lent.clock.Add(time.Second)
		endsAt := random.IntN(40)
		ends := func(metric, i int) bool { return metric*7+i == endsAt }
		fresh := lent.shape.make()
		lent.shape.fill(fresh, start, given.clock, round, ends)
		lent.shape.fill(lent.md, start, given.clock, round, ends)
		require.True(t, bytes.Equal(encode(fresh), encode(lent.md)), "round %d: what comes in", round)
		passed = [2][]byte{}
		points := lent.md.DataPointCount()
		refused = given.front.ConsumeMetrics(t.Context(), fresh) // the next consumer is not called if nothing is left
		notes, _ := lent.loan.Note(lent.Gate).(*ident.Hints)
		require.Equal(t, refused, lent.front.ConsumeMetrics(handback.Lend(t.Context(), lent.loan, lent.md), lent.md))
		require.True(t, bytes.Equal(passed[0], passed[1]), "round %d: what is passed on", round)
		if notes != nil {
			*hits++
		}
		if refused != nil {
			lent.renew()
			continue
		}
		if n, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(passed[1]); err == nil && n.DataPointCount() < points {
			*hidden++
		}
		require.Equal(t, points, lent.md.DataPointCount(), "all are back")
		require.Equal(t, lent.points, addresses(lent.md), "where they were")
		if random.IntN(5) == 0 {
			require.Equal(t, flushedTexts(t, given.rig), flushedTexts(t, lent.rig), "round %d", round)
		}
		if random.IntN(4) == 0 {
			n := 1 + random.IntN(6)
			given.epochs(n)
			lent.epochs(n)
		}
	}
	require.Equal(t, given.Points.Passed.Load(), lent.Points.Passed.Load())
	require.Equal(t, given.Limiter.Admitted.Load(), lent.Limiter.Admitted.Load())
	require.Equal(t, given.Limiter.Expired.Load(), lent.Limiter.Expired.Load())
	require.Equal(t, given.Limiter.Ended.Load(), lent.Limiter.Ended.Load())
	return lent.Familiar.Passed.Load()
}

// When a rule begins to aggregate, the end of a series is an additional point, which does not go back to the receiver.
func TestALoanGoesBackWithoutWhatWasAdded(t *testing.T) {
	lent := &lender{piped: newPiped(t, func(*Config) {})}
	lent.shape.users = [][]string{{"a"}, {"a", "b"}, {"a"}, {"a"}, {"a", "b", "c"}}
	lent.renew()
	start, passed := lent.clock, 0
	lent.seen = func(md pmetric.Metrics) { passed = md.DataPointCount() }
	points := lent.md.DataPointCount()
	for round := range uint64(4) {
		if round == 2 {
			cfg := *lent.cfg
			cfg.Rules = []RuleConfig{{Name: "sums", Match: MatchConfig{Metric: "m*"}, Aggregate: &AggregateConfig{Without: []string{"user"}}}}
			lent.Apply(&cfg)
		}
		lent.clock = lent.clock.Add(time.Second)
		lent.shape.fill(lent.md, start, lent.clock, round, func(int, int) bool { return false })
		passed = 0
		require.NoError(t, lent.front.ConsumeMetrics(handback.Lend(t.Context(), lent.loan, lent.md), lent.md))
		require.Equal(t, []int{points, points, points - 1 + 5, 0}[round], passed, "round %d", round)
		require.Equal(t, points, lent.md.DataPointCount(), "round %d", round)
		require.Equal(t, lent.points, addresses(lent.md), "round %d", round)
	}
}

// rename sets other attributes on points in the same memory.
func rename(md pmetric.Metrics, s pageShape) {
	metric := 0
	for _, rm := range md.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			for i, user := range s.users[metric] {
				amount.AttributesAt(m, i).PutStr("user", user)
			}
			metric++
		}
	}
}

func flushedTexts(t *testing.T, r *rig) (all []string) {
	t.Helper()
	for _, rm := range r.flushed(time.Second).ResourceMetrics().All() {
		one := pmetric.NewMetrics()
		rm.CopyTo(one.ResourceMetrics().AppendEmpty())
		b, err := (&pmetric.JSONMarshaler{}).MarshalMetrics(one)
		require.NoError(t, err)
		all = append(all, string(b))
	}
	slices.Sort(all)
	return all
}

// Metrics without a loan, or copies of borrowed ones, belong to the next consumer: nothing is restored in them.
func TestNothingIsPutBackIntoWhatWasGivenAway(t *testing.T) {
	p := newPiped(t, overflowing(1))
	of := func() pmetric.Metrics { return metricsOf(aSeries(1), aSeries(2)) }
	first := of()
	require.NoError(t, p.front.ConsumeMetrics(t.Context(), first))
	require.Equal(t, 1, first.DataPointCount())

	lent, copied := of(), of()
	ctx := handback.Lend(t.Context(), new(handback.Loan), lent)
	require.NoError(t, p.front.ConsumeMetrics(ctx, copied))
	require.Equal(t, 1, copied.DataPointCount())

	p.err = errBusy // a consumer that refuses may keep it for a retry
	require.ErrorIs(t, p.front.ConsumeMetrics(ctx, lent), errBusy)
	require.Equal(t, 1, lent.DataPointCount())

	p.err = nil
	again := of()
	require.NoError(t, p.front.ConsumeMetrics(handback.Lend(t.Context(), new(handback.Loan), again), again))
	require.Equal(t, 2, again.DataPointCount())
	require.Len(t, p.sink.AllMetrics(), 3)
}

// Two processors in one pipeline each hide points of their own, and recognize points even if the other one has hidden
// others in between.
func TestLoansPassThroughSeveralProcessors(t *testing.T) {
	first, second := newPiped(t, overflowing(3)), newPiped(t, overflowing(2))
	var seen []string
	second.seen = func(md pmetric.Metrics) { seen = identities(md) }
	front, err := first.pass(processortest.NewNopSettings(metadata.Type), second.front)
	require.NoError(t, err)
	md := metricsOf(aSeries(1), aSeries(2), aSeries(3), aSeries(4))
	loan, want := new(handback.Loan), identities(md)
	for range 5 {
		require.NoError(t, front.ConsumeMetrics(handback.Lend(context.Background(), loan, md), md))
		require.Equal(t, want[:2], seen)
		require.Equal(t, want, identities(md))
	}
}

// A hint is only valid for the attributes it was made from, and one of a name only for that name, whatever changes.
func TestHintsAreForWhatTheyWereMadeOf(t *testing.T) {
	h := testHasher()
	one, two := attributesOf(attrs{"a": "1"}), attributesOf(attrs{"a": "2", "b": "3"})
	known := &ident.Hints{}
	ask := func(of ...pcommon.Map) (all []uint64) {
		x := ident.Hinted{Hints: known}
		for _, m := range of {
			all = append(all, x.Attributes(new(ident.Recall), h, m))
		}
		return all
	}
	right := []uint64{h.Attributes(one), h.Attributes(two)}
	for range 3 {
		require.Equal(t, right, ask(one, two))
		require.Len(t, known.Points, 2)
	}
	known.Points[0].Hash++
	require.NotEqual(t, right, ask(one, two), "it is used")
	require.Equal(t, []uint64{right[1], right[0]}, ask(two, one), "in another order")
	require.Equal(t, []uint64{right[1]}, ask(two), "and so is one that is gone")
	two.Remove("b")
	require.Equal(t, []uint64{h.Attributes(two), right[0]}, ask(two, one), "or has other attributes")
	for name, change := range map[string]func(){
		"a value":             func() { one.PutStr("a", "other") },
		"a kind of value":     func() { one.PutInt("a", 1) },
		"no value":            func() { one.PutEmpty("a") },
		"another number":      func() { one.PutInt("a", 2) },
		"a text that is none": func() { one.PutStr("a", "") },
		"a key": func() {
			one.Clear()
			one.PutStr("z", "")
		},
		"more": func() { one.PutBool("y", true) },
	} {
		change()
		for range 2 {
			require.Equal(t, []uint64{h.Attributes(one), h.Attributes(two)}, ask(one, two), name)
		}
	}

	m, other := metricsOf(aSeries(1)), metricsOf(aSeries(1))
	metric := func(md pmetric.Metrics) pmetric.Metric {
		return md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
	}
	x := func() *ident.Hinted { return &ident.Hinted{Hints: known} }
	for range 2 {
		require.Equal(t, h.Metric(7, metric(m)), x().MetricHash(h, 7, metric(m)))
		require.Equal(t, h.Metric(8, metric(m)), x().MetricHash(h, 8, metric(m)), "of another scope")
	}
	metric(other).SetUnit("other")
	require.Equal(t, h.Metric(7, metric(other)), x().MetricHash(h, 7, metric(other)))
	metric(other).SetName("other")
	require.Equal(t, h.Metric(7, metric(other)), x().MetricHash(h, 7, metric(other)))
	metric(other).SetEmptyGauge()
	require.Equal(t, h.Metric(7, metric(other)), x().MetricHash(h, 7, metric(other)))
}
