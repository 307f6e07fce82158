// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"errors"
	"fmt"
	"maps"
	"math"
	rand "math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/racetest"
)

// TestExponentialHistogramsAreThoseOfAMap: cumulative exponential histograms whose inputs reduce their scales, widen
// their zero buckets, restart with and without a new start, arrive late, and are refused, with restarts and kills, have
// the same result as a map of all observations, bucket by bucket: both aggregated and in overflow series.
func TestExponentialHistogramsAreThoseOfAMap(t *testing.T) {
	racetest.Sequential(t)
	seen := map[string]int{}
	for seed := range seeds(t, 24) {
		bucketLife(t, seed, seen)
	}
	for _, what := range []string{"aggregated", "overflow", "kill", "restart", "reset", "late", "coarser", "wider", "baseline", "busy"} {
		require.Positive(t, seen[what], what)
	}
}

// finest is the scale of the observations.
const finest = 6

// observations has the count of each bucket of the finest scale, by its sign and index.
type observations struct {
	sides [2]map[int64]uint64
	zero  uint64
	count uint64
}

func newObservations() observations {
	return observations{sides: [2]map[int64]uint64{{}, {}}}
}

func (o *observations) clone() observations {
	return observations{[2]map[int64]uint64{maps.Clone(o.sides[0]), maps.Clone(o.sides[1])}, o.zero, o.count}
}

// add adds what n has in addition to last.
func (o *observations) add(n, last observations) {
	o.zero += n.zero - last.zero
	o.count += n.count - last.count
	for side := range n.sides {
		for at, count := range n.sides[side] {
			o.sides[side][at] += count - last.sides[side][at]
		}
	}
}

// upper returns the upper bound of a bucket of the finest scale.
func upper(at int64) float64 { return math.Exp2(float64(at+1) / (1 << finest)) }

// said returns the observations as a point with the given scale and threshold contains them.
func (o *observations) said(scale int32, threshold float64) (zero uint64, sides [2]map[int64]uint64) {
	zero = o.zero
	for side := range o.sides {
		sides[side] = map[int64]uint64{}
		for at, count := range o.sides[side] {
			switch {
			case count == 0:
			case threshold > 0 && upper(at) <= threshold*(1+1e-9):
				zero += count
			default:
				sides[side][at>>(finest-scale)] += count
			}
		}
	}
	return zero, sides
}

// recorder is an input.
type recorder struct {
	id        int
	start     time.Time
	now       observations // since then
	scale     int32
	threshold float64
	anew      int // restarts without a new start
	said      []pmetric.Metrics
}

type recorded struct {
	start time.Time
	anew  int
	last  observations
}

// bucketWorld is the state of the model.
type bucketWorld struct {
	sum    observations
	inputs map[int]recorded
}

func (w *bucketWorld) clone() bucketWorld {
	next := bucketWorld{w.sum.clone(), map[int]recorded{}}
	for id, r := range w.inputs {
		next.inputs[id] = recorded{r.start, r.anew, r.last.clone()}
	}
	return next
}

type bucketing struct {
	*piped

	seed       uint64
	random     *rand.Rand
	seen       map[string]int
	aggregates bool
	config     func(*Config)
	host       *memory
	recorders  []*recorder
	is, was    bucketWorld // now, and when the ledger was last written
	certain    time.Time   // what started before may have been counted
	scale      int32       // the lowest so far
}

func bucketLife(t *testing.T, seed uint64, seen map[string]int) {
	b := &bucketing{
		seed: seed, random: rand.New(rand.NewPCG(seed, 41)), seen: seen, aggregates: seed%2 == 0, host: newMemory(), scale: finest,
		is: bucketWorld{newObservations(), map[int]recorded{}},
	}
	b.was = b.is.clone()
	b.config = withStorage(func(c *Config) {
		c.Exempt = []MatchConfig{{Metric: "exempt"}}
		if b.aggregates {
			c.Rules = []RuleConfig{{Name: "a", Aggregate: &AggregateConfig{By: []string{}}}}
		} else {
			overflowing(1)(c)
		}
	})
	b.piped = newPiped(t, b.config)
	require.NoError(t, b.begin(b.host))
	for range 120 {
		b.step()
	}
	b.deliver(true)
}

func (b *bucketing) step() {
	b.clock = b.clock.Add(time.Duration(1+b.random.IntN(3)) * time.Second)
	if len(b.recorders) < 2 || b.random.IntN(15) == 0 {
		b.recorders = append(b.recorders, &recorder{
			id: len(b.recorders), start: b.clock.Add(-time.Millisecond), now: newObservations(), scale: int32(b.random.IntN(finest + 1)),
		})
	}
	if !b.aggregates {
		b.send(point{name: "other"}) // takes the only place
	}
	for _, r := range b.recorders {
		if b.random.IntN(3) == 0 {
			b.say(r)
		}
	}
	switch b.random.IntN(20) {
	case 0, 1, 2, 3, 4:
		b.deliver(b.random.IntN(4) > 0)
	case 5:
		b.seen["restart"]++
		b.sink.Reset()
		require.NoError(b.t, b.shutdown(b.t.Context()))
		b.compare()
		b.again(b.host)
		b.was = b.is.clone()
		if len(b.is.inputs) == 0 { // there is no overflow yet, so it will not start before this process
			b.certain = b.clock
		}
	case 6:
		if !b.kills() {
			return
		}
		b.seen["kill"]++
		after := b.host.killed()
		b.Snapshot.Storage = nil
		b.again(after)
		b.is = b.was.clone()
		for _, r := range b.recorders { // late points would not be late any more
			r.said = nil
		}
		b.certain = b.clock
	}
}

// kills reports whether processes are killed. Otherwise inputs restart without a new start, which after a kill may not
// be distinguishable from growth.
func (b *bucketing) kills() bool { return b.seed%4 > 1 }

func (b *bucketing) again(host *memory) {
	now := b.clock.Add(time.Second)
	b.host, b.piped = host, newPiped(b.t, b.config)
	b.clock = now
	b.Overflow.Begin = pcommon.NewTimestampFromTime(now)
	require.NoError(b.t, b.begin(host))
}

// observe adds observations to a recorder.
func (b *bucketing) observe(r *recorder) {
	if b.random.IntN(25) == 0 && r.scale > -2 {
		r.scale--
		b.seen["coarser"]++
	}
	if b.random.IntN(60) == 0 {
		r.threshold = max(r.threshold, []float64{0.125, 0.5, 1, 2}[b.random.IntN(4)])
		b.seen["wider"]++
	}
	around := b.random.IntN(200) - 100
	for range b.random.IntN(12) {
		r.now.count++
		if b.random.IntN(8) == 0 {
			r.now.zero++
			continue
		}
		r.now.sides[b.random.IntN(2)][int64(around+b.random.IntN(60))]++
	}
}

func (b *bucketing) point(r *recorder) pmetric.Metrics {
	md := b.timed(point{name: "e", kind: exponential, attrs: attrs{"id": int64(r.id)}}, r.start, b.clock, 1)
	m := onlyMetricOf(md).ExponentialHistogram()
	m.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	dp := m.DataPoints().At(0)
	zero, sides := r.now.said(r.scale, r.threshold)
	dp.SetScale(r.scale)
	dp.SetZeroThreshold(r.threshold)
	dp.SetZeroCount(zero)
	dp.SetCount(r.now.count)
	dp.SetSum(float64(r.now.count))
	for side, to := range []pmetric.ExponentialHistogramDataPointBuckets{dp.Positive(), dp.Negative()} {
		to.SetOffset(0)
		to.BucketCounts().FromRaw(nil)
		first, last := int64(math.MaxInt64), int64(math.MinInt64)
		for at := range sides[side] {
			first, last = min(first, at), max(last, at)
		}
		if first > last {
			continue
		}
		pad := int64(b.random.IntN(3)) // empty ones at both ends
		counts := make([]uint64, last-first+1+2*pad)
		for at, n := range sides[side] {
			counts[at-first+pad] = n
		}
		to.SetOffset(int32(first - pad))
		to.BucketCounts().FromRaw(counts)
	}
	return md
}

func (b *bucketing) say(r *recorder) {
	switch {
	case b.random.IntN(12) == 0:
		b.seen["reset"]++
		r.start, r.now, r.scale, r.threshold = b.clock.Add(-time.Millisecond), newObservations(), int32(b.random.IntN(finest+1)), 0
	case !b.kills() && b.random.IntN(20) == 0 && r.now.count > 20 && b.is.inputs[r.id].last.count > 20: // without a new start
		r.now = newObservations()
		r.anew++
	case len(r.said) > 0 && b.random.IntN(10) == 0:
		b.seen["late"]++
		late := pmetric.NewMetrics()
		r.said[b.random.IntN(len(r.said))].CopyTo(late)
		if _, known := b.is.inputs[r.id]; known { // otherwise it would be the first
			b.consume(late)
		}
		return
	}
	b.observe(r)
	md := b.point(r)
	keep := pmetric.NewMetrics()
	md.CopyTo(keep)
	metricsOf(point{name: "exempt"}).ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
	for b.random.IntN(4) == 0 {
		b.err = errBusy
		again := pmetric.NewMetrics()
		md.CopyTo(again)
		require.ErrorIs(b.t, b.front.ConsumeMetrics(b.t.Context(), again), errBusy)
		if b.random.IntN(6) == 0 {
			b.err = nil
			return
		}
	}
	b.err = nil
	require.NoError(b.t, b.front.ConsumeMetrics(b.t.Context(), md))
	r.said = append(r.said, keep)
	b.note(r)
}

// note adds a point to the model.
func (b *bucketing) note(r *recorder) {
	last, known := b.is.inputs[r.id]
	uncertain := !b.aggregates && r.start.Before(b.certain)
	switch {
	case known && last.start.Equal(r.start) && last.anew == r.anew:
		b.is.sum.add(r.now, last.last)
	case uncertain && (!known || !last.start.Equal(r.start)):
		b.seen["baseline"]++
	default:
		b.is.sum.add(r.now, newObservations())
	}
	b.is.inputs[r.id] = recorded{r.start, r.anew, r.now.clone()}
	b.scale = min(b.scale, r.scale)
}

func (b *bucketing) deliver(accept bool) {
	b.clock = b.clock.Add(time.Millisecond)
	if b.next = b.sink; !accept {
		b.next = consumertest.NewErr(errors.New("busy"))
		b.seen["busy"]++
	}
	b.sink.Reset()
	b.pour(b.t.Context(), b.Aggregator.All(b.clock))
	b.flush(b.t.Context())
	b.was = b.is.clone()
	b.next = b.sink
	if accept {
		b.compare()
	}
}

func (b *bucketing) compare() {
	for _, md := range b.sink.AllMetrics() {
		for i := range md.ResourceMetrics().Len() {
			m := md.ResourceMetrics().At(i).ScopeMetrics().At(0).Metrics().At(0)
			if m.Name() == "e" {
				b.compareWith(m.ExponentialHistogram().DataPoints().At(0))
			}
		}
	}
}

func (b *bucketing) compareWith(dp pmetric.ExponentialHistogramDataPoint) {
	what := fmt.Sprintf("seed %d, aggregated: %t", b.seed, b.aggregates)
	require.LessOrEqual(b.t, dp.Scale(), int32(finest), what)
	zero, sides := b.is.sum.said(dp.Scale(), dp.ZeroThreshold())
	require.Equal(b.t, b.is.sum.count, dp.Count(), what)
	require.InDelta(b.t, float64(b.is.sum.count), dp.Sum(), 1e-6, what)
	require.Equal(b.t, zero, dp.ZeroCount(), what)
	for side, of := range []pmetric.ExponentialHistogramDataPointBuckets{dp.Positive(), dp.Negative()} {
		got := map[int64]uint64{}
		for i, n := range of.BucketCounts().All() {
			if n > 0 {
				got[int64(of.Offset())+int64(i)] = n
			}
		}
		require.Equal(b.t, sides[side], got, what)
		require.LessOrEqual(b.t, of.BucketCounts().Len(), 160, what)
	}
	if b.aggregates {
		b.seen["aggregated"]++
	} else {
		b.seen["overflow"]++
	}
}
