// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"context"
	"fmt"
	"maps"
	"math"
	rand "math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/metadata"
)

// TestWhatIsAcceptedIsConserved: batches are refused, retried or given up, delayed, and accepted in any order; inputs
// change their bounds, have no sum for a while, or are not finite; flushes are refused. In the end, exactly the last
// accepted values of all inputs have been sent.
func TestWhatIsAcceptedIsConserved(t *testing.T) {
	for seed := range seeds(t, 12) {
		conserve(t, seed)
	}
}

func FuzzWhatIsAcceptedIsConserved(f *testing.F) {
	f.Add(uint64(1000))
	f.Fuzz(conserve)
}

// traffic is what is sent through a processor, and what a model knows about it.
type traffic struct {
	*rig

	seed   uint64
	random *rand.Rand
	front  processor.Metrics
	came   chan *flight
	aloft  []*flight
	inputs []*input
	given  map[string]content // by metric
	got    map[string]content
	last   map[string]content // of cumulative series that were sent, by identity and start

	aggregates bool
	exact      bool
	version    int // of the rule; any version if negative
}

// content is what all kinds of points have: a number or a count, a sum, and how many observations were at most 2.
type content struct{ n, sum, atMost2 int64 }

func (a content) plus(b content) content {
	return content{a.n + b.n, a.sum + b.sum, a.atMost2 + b.atMost2}
}

func (a content) less(b content) content {
	return content{a.n - b.n, a.sum - b.sum, a.atMost2 - b.atMost2}
}

// flight is a batch that the next consumer has, or has refused.
type flight struct {
	md      pmetric.Metrics // as it was sent
	left    pmetric.Metrics // what was passed on
	inputs  []*input
	verdict chan error
	said    chan error
}

// input is an incoming series.
type input struct {
	point

	start    time.Time
	total    content
	accepted content // part of total
	changes  bool    // of its bounds
	bounds   []float64
	aloft    bool
}

// Bounds of inputs. All of them contain 2.
var someBounds = [][]float64{{1, 2}, {1, 2, 3}, {2, 3, 8}, {0.5, 2}}

// TestWhatIsAggregatedIsConserved: the same, with a rule that aggregates the inputs as far as memory allows. The rule
// is added when series have places already, and changes its outputs.
func TestWhatIsAggregatedIsConserved(t *testing.T) {
	lost := map[string]int64{}
	exact := 0
	for seed := range seeds(t, 40) {
		if conserveAggregated(t, seed, lost) {
			exact++
		}
	}
	require.Greater(t, exact, 35)
	for _, why := range []string{amount.NameNotFinite, amount.NameNoSum, "summary", "state_full"} {
		require.Positive(t, lost[why], why)
	}
}

func FuzzWhatIsAggregatedIsConserved(f *testing.F) {
	f.Add(uint64(1000))
	f.Fuzz(func(t *testing.T, seed uint64) { _ = conserveAggregated(t, seed, map[string]int64{}) })
}

func conserveAggregated(t *testing.T, seed uint64, lost map[string]int64) (exact bool) {
	x := newTraffic(t, seed, true)
	if seed%2 == 0 { // inputs that were aggregated before a rule change and get no memory after it have to wait
		x.Aggregator.Budget = 4<<10 + x.random.Int64N(60<<10)
		x.version = x.random.IntN(len(versions) - 1) // not the one whose series look like the inputs
	}
	x.live()
	got, err := x.telemetry.GetMetric("otelcol_processor_cardinality_unaggregated_points")
	if err != nil {
		return x.exact
	}
	for _, why := range amount.LossNames {
		lost[why] += sumOf(got, attrs{"reason": why})
	}
	require.Zero(t, sumOf(got, attrs{"reason": amount.NameBaseline})+sumOf(got, attrs{"reason": amount.NameOutOfOrder}))
	return x.exact
}

func conserve(t *testing.T, seed uint64) { newTraffic(t, seed, false).live() }

func newTraffic(t *testing.T, seed uint64, aggregates bool) *traffic {
	x := &traffic{
		seed: seed, random: rand.New(rand.NewPCG(seed, 11)), came: make(chan *flight),
		given: map[string]content{}, got: map[string]content{}, last: map[string]content{}, aggregates: aggregates, version: -1,
	}
	x.rig = newRig(t, func(c *Config) {
		c.Exempt = []MatchConfig{{Metric: "exempt"}}
		c.Rules = []RuleConfig{{
			Name: "r", GroupBy: []string{"metric"}, MaxSeries: 1 + x.random.IntN(6), LabelLimits: map[string]int{"user": x.random.IntN(4)},
			Exceed: ExceedConfig{OnExceed: []string{"collapse", "overflow"}, KeepLabels: []string{"route"}},
		}}
	})
	next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		f := &flight{left: md, verdict: make(chan error)}
		x.came <- f
		return <-f.verdict
	})
	require.NoError(t, err)
	x.front, err = x.pass(processortest.NewNopSettings(metadata.Type), next)
	require.NoError(t, err)
	return x
}

func (x *traffic) live() {
	t, seed := x.t, x.seed
	for range 150 {
		x.clock = x.clock.Add(time.Duration(1+x.random.IntN(3)) * time.Second)
		switch x.random.IntN(8) {
		case 0, 1:
			x.add()
		case 2, 3, 4:
			x.launch()
		case 5, 6:
			x.land(x.random.IntN(3) > 0)
		default:
			x.deliver(x.random.IntN(3) > 0)
		}
		if x.random.IntN(30) == 0 {
			x.reload()
			epochs := 2 // series ask for a place once in an epoch
			if x.aggregates {
				epochs = 1 // batches are always pending, and must not be so for an idle timeout
			}
			for range epochs * x.Limiter.Shards() {
				x.Sweep()
			}
		}
		require.LessOrEqual(t, x.Overflow.All.Used.Load(), x.Overflow.Budget)
	}
	for len(x.aloft) > 0 {
		x.land(true)
	}
	x.clock = x.clock.Add(time.Second)
	x.deliver(true)
	for _, in := range x.inputs {
		x.given[in.name] = x.given[in.name].plus(in.accepted)
	}
	missing := map[string]int64{}
	for _, why := range amount.LossNames[1:] {
		if n := x.unaccounted(why); n > 0 && why != amount.NameNotFinite && why != amount.NameNoSum && (why != amount.NameNoValue || !x.aggregates) {
			missing[why] = n
		}
	}
	if n := missing[amount.NameBaseline]; x.aggregates && n > 0 {
		// Outputs of earlier versions of the rule ended before they overflowed: that they restart is unknown.
		for name, given := range x.given {
			require.LessOrEqual(t, x.got[name].n, given.n, "seed %d, %s", seed, name)
		}
		return
	}
	require.Empty(t, missing, "nothing else is missing")
	for _, name := range slices.Sorted(maps.Keys(x.given)) {
		require.Equal(t, x.given[name], x.got[name], "seed %d, %s", seed, name)
	}
	x.exact = true
	require.Zero(t, x.Overflow.All.Staged.Load())
}

// reload changes the number of places for series.
func (x *traffic) reload() {
	cfg := *x.cfg
	cfg.Rules = slices.Clone(cfg.Rules)
	cfg.Rules[0].MaxSeries, cfg.Rules[0].LabelLimits = 1+x.random.IntN(20), map[string]int{"user": x.random.IntN(8)}
	if x.aggregates {
		x.aggregate(&cfg)
	}
	x.Apply(&cfg)
	for _, s := range x.Aggregator.States {
		s.Since = x.Overflow.Begin // otherwise first values of series that started before the rule and were not sent yet would be missing
	}
}

// aggregate changes the outputs of a rule. It matches everything, so series are not matched again.
func (x *traffic) aggregate(cfg *Config) {
	as := versions[x.random.IntN(len(versions))]
	if x.version >= 0 {
		as = versions[x.version]
	}
	cfg.Rules = append(cfg.Rules[:1:1], RuleConfig{Name: "a", Aggregate: &as})
}

var versions = []AggregateConfig{
	{By: []string{}},
	{By: []string{"user"}},
	{Without: []string{"id"}},
	{Without: []string{"id", "user"}},
	{By: []string{"route", "nothing"}},
	{By: []string{"id"}},
	{Without: []string{"nothing"}},
}

func (x *traffic) add() {
	k := []kind{cumulative, cumulative, delta, histogram, histogram, exponential, summary}[x.random.IntN(7)]
	in := &input{point: point{
		name: fmt.Sprint("m", int(k)), kind: k,
		attrs: attrs{"user": int64(x.random.IntN(6)), "route": int64(x.random.IntN(2)), "id": int64(len(x.inputs))},
	}}
	in.bounds, in.changes = someBounds[x.random.IntN(len(someBounds))], x.random.IntN(4) == 0
	x.begins(in)
	x.inputs = append(x.inputs, in)
}

func (x *traffic) begins(in *input) {
	x.given[in.name] = x.given[in.name].plus(in.accepted)
	in.start, in.total, in.accepted = x.clock.Add(-time.Millisecond), content{}, content{}
}

// launch sends a batch and leaves it pending at the next consumer.
func (x *traffic) launch() {
	md := metricsOf(point{name: "exempt"})
	var inputs []*input
	for _, in := range x.inputs {
		if in.aloft || x.random.IntN(3) == 0 {
			continue
		}
		if x.random.IntN(12) == 0 {
			x.begins(in)
		}
		in.aloft = true
		inputs = append(inputs, in)
		x.say(in).ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
	}
	x.send(md, inputs)
}

func (x *traffic) send(md pmetric.Metrics, inputs []*input) {
	sent := pmetric.NewMetrics()
	md.CopyTo(sent)
	said := make(chan error, 1)
	go func() { said <- x.front.ConsumeMetrics(context.Background(), sent) }()
	f := <-x.came
	f.md, f.inputs, f.said = md, inputs, said
	x.aloft = append(x.aloft, f)
}

// say returns the next point of an input. One in ten counters is not finite, and one in ten histograms has no sum: the
// next point makes up for them, so the input is not updated.
func (x *traffic) say(in *input) pmetric.Metrics {
	n := int64(x.random.IntN(20))
	grown := content{n: n}
	odd := x.random.IntN(10) == 0
	if in.kind == histogram || in.kind == exponential || in.kind == summary {
		grown.sum = n
	}
	if in.kind == histogram {
		grown.atMost2 = n / 2
		if in.changes {
			in.bounds = someBounds[x.random.IntN(len(someBounds))]
		}
	}
	in.total = in.total.plus(grown)
	if in.kind == delta || in.kind == exponential {
		in.total = grown // the rest was accepted, or given up
	}
	md := x.timed(in.point, in.start, x.clock, in.total.n)
	m := onlyMetricOf(md)
	switch in.kind {
	case cumulative:
		if odd {
			m.Sum().DataPoints().At(0).SetDoubleValue([]float64{math.NaN(), math.Inf(1), math.Inf(-1)}[x.random.IntN(3)])
		}
	case histogram:
		dp := m.Histogram().DataPoints().At(0)
		dp.ExplicitBounds().FromRaw(in.bounds)
		counts := make([]uint64, len(in.bounds)+1)
		counts[slices.Index(in.bounds, 2)] = uint64(in.total.atMost2)
		counts[len(in.bounds)] = uint64(in.total.n - in.total.atMost2)
		dp.BucketCounts().FromRaw(counts)
		if odd {
			dp.RemoveSum()
			if x.random.IntN(2) == 0 {
				dp.SetSum(math.NaN())
			}
		}
	default:
	}
	return md
}

// land makes the next consumer accept or refuse a batch. A refused batch is sent again, or given up.
func (x *traffic) land(accept bool) {
	if len(x.aloft) == 0 {
		return
	}
	i := x.random.IntN(len(x.aloft))
	f := x.aloft[i]
	x.aloft = slices.Delete(x.aloft, i, i+1)
	if !accept {
		refusal := []error{errBusy, consumererror.NewPermanent(errBusy)}[x.random.IntN(2)]
		f.verdict <- refusal
		require.ErrorIs(x.t, <-f.said, refusal)
		if x.random.IntN(3) > 0 {
			x.send(f.md, f.inputs)
			return
		}
		for _, in := range f.inputs {
			in.aloft = false
		}
		return
	}
	x.leaves(f.left)
	f.verdict <- nil
	require.NoError(x.t, <-f.said)
	at := 1 // after the exempt one
	for _, in := range f.inputs {
		m := f.md.ResourceMetrics().At(at).ScopeMetrics().At(0).Metrics().At(0)
		at++
		in.aloft = false
		said := amountOf(m, 0)
		if in.kind == cumulative && !amount.Finite(valueNumber(m)) {
			continue
		}
		if in.kind == delta || in.kind == exponential {
			in.accepted = in.accepted.plus(said)
			continue
		}
		if in.kind == histogram && (!m.Histogram().DataPoints().At(0).HasSum() || math.IsNaN(m.Histogram().DataPoints().At(0).Sum())) {
			said.sum = in.accepted.sum
		}
		in.accepted = said
	}
}

func valueNumber(m pmetric.Metric) float64 { v := amount.ValueAt(m, 0); return v.Number() }

func (x *traffic) deliver(accept bool) {
	x.sink.Reset()
	if x.next = x.sink; !accept {
		x.next, _ = consumer.NewMetrics(func(context.Context, pmetric.Metrics) error { return errBusy })
	}
	x.pour(x.t.Context(), x.Aggregator.All(x.clock))
	x.flush(x.t.Context())
	x.next = x.sink
	for _, md := range x.sink.AllMetrics() {
		x.leaves(md)
	}
}

// amountOf returns the value of a point.
func amountOf(m pmetric.Metric, i int) content {
	v := amount.ValueAt(m, i)
	a := content{n: int64(v.Count)}
	if v.Shape == amount.ShapeNumber {
		if amount.Finite(v.Number()) {
			a.n = int64(v.Number())
		}
		return a
	}
	if v.HasSum && amount.Finite(v.Sum) {
		a.sum = int64(v.Sum)
	}
	if v.Shape == amount.ShapeHistogram {
		for j, bound := range m.Histogram().DataPoints().At(i).ExplicitBounds().All() {
			if bound <= 2 {
				a.atMost2 += int64(v.Cells[j])
			}
		}
	}
	return a
}

// leaves adds up what is passed on.
func (x *traffic) leaves(md pmetric.Metrics) {
	requireNoDuplicates(x.t, md)
	all, at := identities(md), 0
	for _, rm := range md.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			for i := range amount.PointCount(m) {
				id := all[at]
				at++
				if m.Name() == "exempt" || m.Type() == pmetric.MetricTypeSum && !amount.Finite(valueNumber(m)) || amount.WhenAt(m, i).NoValue {
					continue
				}
				x.leave(id, m, i)
			}
		}
	}
}

func (x *traffic) leave(id string, m pmetric.Metric, i int) {
	a := amountOf(m, i)
	if amount.ClassOf(m) != amount.ClassCumulative {
		x.got[m.Name()] = x.got[m.Name()].plus(a)
		return
	}
	stream := fmt.Sprint(id, " since ", uint64(amount.WhenAt(m, i).Start))
	last := x.last[stream]
	if v := amount.ValueAt(m, i); v.Shape == amount.ShapeHistogram && (!v.HasSum || !amount.Finite(v.Sum)) {
		a.sum = last.sum // of an input, which has one again later
	}
	grown := a.less(last)
	require.GreaterOrEqual(x.t, min(grown.n, grown.sum, grown.atMost2), int64(0), "seed %d: %s", x.seed, stream)
	x.last[stream] = a
	x.got[m.Name()] = x.got[m.Name()].plus(grown)
}
