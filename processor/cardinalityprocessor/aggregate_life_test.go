// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"errors"
	"fmt"
	"maps"
	"math"
	rand "math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/aggregate"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
)

// TestAggregatesAreThoseOfAMap: with batches that are refused and retried, late points, resets with and without a new
// start, inputs that become silent, end and come back, refused flushes, restarts and kills, the result of a rule is
// that of a map of last values.
func TestAggregatesAreThoseOfAMap(t *testing.T) {
	racetest.Sequential(t)
	seen := map[string]int{}
	for seed := range seeds(t, 24) {
		aggregateLife(t, seed, seen)
	}
	for _, what := range []string{"kill", "restart", "reset", "late", "rest", "forgotten", "baseline", "end", "refused"} {
		require.Positive(t, seen[what], what)
	}
}

func FuzzAggregatesAreThoseOfAMap(f *testing.F) {
	f.Add(uint64(1000))
	f.Fuzz(func(t *testing.T, seed uint64) { aggregateLife(t, seed, map[string]int{}) })
}

// plainLife is a series of events in the life of an aggregation rule, with a slow and obvious model of it.
type plainLife struct {
	*piped

	seed   uint64
	random *rand.Rand
	seen   map[string]int
	config func(*Config)
	host   *memory
	epoch  int // since the beginning

	inputs []*plainInput
	is     lastMap
	was    lastMap // when the ledger was last written

	got     map[string]int64 // of counters and deltas, by output
	last    map[string]int64 // by output and start
	present map[string]bool  // outputs, except of deltas, that may have been sent and have not ended

	closed     bool            // the ledger was written by a proper shutdown
	wasPresent map[string]bool // when the ledger was last written
}

// plainInput is an input of the rule.
type plainInput struct {
	point

	key   string // the output that it is part of
	start time.Time
	value int64
	said  []saying
}

type saying struct {
	start, time time.Time
	value       int64
}

// lastMap is the state of the obvious model.
type lastMap struct {
	inputs map[string]lastOf
	sums   map[string]int64 // the total of all that was added, by output
	fresh  map[string]bool  // outputs that were added to since they were last sent
}

type lastOf struct {
	start, time time.Time
	value       int64
	output      string
	resting     bool
	seen        int
}

func (o *lastMap) clone() lastMap {
	return lastMap{maps.Clone(o.inputs), maps.Clone(o.sums), maps.Clone(o.fresh)}
}

func aggregateLife(t *testing.T, seed uint64, seen map[string]int) {
	random := rand.New(rand.NewPCG(seed, 23))
	l := &plainLife{
		seed: seed, random: random, seen: seen, host: newMemory(),
		is:  lastMap{map[string]lastOf{}, map[string]int64{}, map[string]bool{}},
		got: map[string]int64{}, last: map[string]int64{}, present: map[string]bool{},
	}
	l.was, l.wasPresent = l.is.clone(), map[string]bool{}
	l.config = withStorage(func(c *Config) {
		c.Exempt = []MatchConfig{{Metric: "exempt"}}
		c.Rules = []RuleConfig{{Name: "a", Aggregate: &AggregateConfig{
			By: []string{"route"}, Outputs: []string{"sum", "min", "max", "avg", "last", "count"}, KeepInput: seed%3 == 0,
		}}}
	})
	l.piped = newPiped(t, l.config)
	require.NoError(t, l.begin(l.host))
	for range 200 {
		l.step()
	}
	l.pass(time.Second)
	l.pourAndCompare(true)
}

func (l *plainLife) pass(d time.Duration) { l.clock = l.clock.Add(d) }

func (l *plainLife) step() {
	l.pass(time.Duration(1+l.random.IntN(5)) * time.Second)
	if len(l.inputs) < 3 || l.random.IntN(12) == 0 {
		l.add()
	}
	for _, in := range l.inputs {
		if l.random.IntN(3) == 0 {
			l.say(in)
		}
	}
	switch l.random.IntN(20) {
	case 0, 1, 2, 3, 4, 5:
		l.pourAndCompare(l.random.IntN(4) > 0)
	case 6:
		l.restart()
	case 7:
		l.kill()
	case 8:
		n := 1 + l.random.IntN(2*aggregate.RestsAfter+4)
		l.epochs(n)
		l.epoch += n
	case 9:
		l.inputs = slices.Delete(l.inputs, 0, 1) // disappears
	}
}

func (l *plainLife) add() {
	k := []kind{cumulative, cumulative, delta, gauge, upDown, histogram}[l.random.IntN(6)]
	route := fmt.Sprint(l.random.IntN(2))
	in := &plainInput{point: point{
		resource: attrs{"pod": l.random.Int64()}, name: fmt.Sprint("m", int(k)), kind: k, attrs: attrs{"route": route},
	}, start: l.clock.Add(-time.Millisecond)}
	in.key = in.name + " " + route
	if l.random.IntN(4) == 0 { // has existed for a long time
		in.start, in.value = l.clock.Add(-time.Hour), int64(l.random.IntN(1000))
	}
	l.inputs = append(l.inputs, in)
}

// say sends a point of an input, to a consumer that may refuse it.
func (l *plainLife) say(in *plainInput) {
	now := saying{in.start, l.clock, 0}
	ends := l.random.IntN(15) == 0
	switch in.kind {
	case gauge, upDown:
		in.value = int64(l.random.IntN(100)) - 50
	case delta:
		in.value = int64(l.random.IntN(20))
	default:
		switch l.random.IntN(15) {
		case 0: // restarts
			in.start, in.value = l.clock.Add(-time.Millisecond), 0
			l.seen["reset"]++
		case 1: // restarts without a new start
			in.value = 0
		}
		in.value += int64(l.random.IntN(20))
	}
	now.start, now.value = in.start, in.value
	if len(in.said) > 0 && l.random.IntN(10) == 0 && in.kind != delta {
		now = in.said[l.random.IntN(len(in.said))] // late
		l.seen["late"]++
		ends = false
	} else {
		in.said = append(in.said, now)
	}
	md := l.timed(in.point, now.start, now.time, now.value)
	if ends {
		amount.Silence(onlyMetricOf(md), 0)
	}
	metricsOf(point{name: "exempt"}).ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
	for l.random.IntN(4) == 0 {
		l.err = errBusy
		again := pmetric.NewMetrics()
		md.CopyTo(again)
		require.ErrorIs(l.t, l.front.ConsumeMetrics(l.t.Context(), again), errBusy)
		l.is.touch(in.identity(), l.epoch)
		if l.random.IntN(6) == 0 {
			return
		}
	}
	l.err = nil
	l.consumeOne(md, in)
	if ends {
		l.seen["end"]++
		l.is.end(in, l.epoch)
		return
	}
	l.note(in, now)
}

// consumeOne sends a batch whose input is withheld unless the rule keeps it.
func (l *plainLife) consumeOne(md pmetric.Metrics, in *plainInput) {
	var passed pmetric.Metrics
	l.piped.seen = func(md pmetric.Metrics) { passed = md }
	require.NoError(l.t, l.front.ConsumeMetrics(l.t.Context(), md))
	require.Equal(l.t, l.seed%3 == 0, slices.ContainsFunc(identities(passed), func(id string) bool { return id == in.identity() }))
}

func (o *lastMap) touch(id string, epoch int) {
	if last, ok := o.inputs[id]; ok {
		last.seen = epoch
		o.inputs[id] = last
	}
}

func (o *lastMap) end(in *plainInput, epoch int) {
	o.touch(in.identity(), epoch)
	if last, ok := o.inputs[in.identity()]; ok && in.kind != delta {
		last.resting = true
		o.inputs[in.identity()] = last
	}
}

// note adds a point to the model.
func (l *plainLife) note(in *plainInput, now saying) {
	o, id := &l.is, in.identity()
	o.touch(id, l.epoch)
	last, known := o.inputs[id]
	next := lastOf{start: now.start, time: now.time, value: now.value, output: in.key, seen: l.epoch}
	switch in.kind {
	case delta:
		o.sums[in.key] += now.value
	case gauge, upDown:
		if known && now.time.Before(last.time) {
			return
		}
	default:
		switch {
		case known && !now.time.After(last.time):
			return
		case !known && l.clock.Sub(now.start) >= l.cfg.IdleTimeout:
			l.seen["baseline"]++
		case !known, !now.start.Equal(last.start), now.value < last.value:
			o.sums[in.key] += now.value
		default:
			o.sums[in.key] += now.value - last.value
		}
	}
	o.inputs[id] = next
	o.fresh[in.key] = true
}

// age makes silent inputs rest, and forgets them later.
func (l *plainLife) age() {
	for id, last := range l.is.inputs {
		switch silent := l.epoch - last.seen; {
		case silent > aggregate.ForgetsAfter:
			delete(l.is.inputs, id)
			l.seen["forgotten"]++
		case silent > aggregate.RestsAfter && !last.resting:
			last.resting = true
			l.is.inputs[id] = last
			l.seen["rest"]++
		}
	}
}

// pourAndCompare sends the outputs of the rule, to a consumer that may refuse them, and compares them with the model.
func (l *plainLife) pourAndCompare(accept bool) {
	if l.epoch > 0 {
		l.age()
	}
	l.next = l.sink
	if !accept {
		l.next = consumertest.NewErr(errors.New("busy"))
		l.seen["refused"]++
	}
	l.sink.Reset()
	l.pour(l.t.Context(), l.Aggregator.All(l.clock))
	l.was = l.is.clone()
	for key := range l.was.sums { // what is being sent when a process is killed is lost
		if key[:2] == fmt.Sprint("m", int(delta)) {
			l.was.sums[key] = math.MinInt64
		}
	}
	for _, key := range append(l.keys(cumulative, histogram), l.keys(gauge, upDown)...) {
		l.present[key] = l.present[key] || l.lives(key) // as far as is known
	}
	l.wasPresent = maps.Clone(l.present)
	clear(l.was.fresh)
	l.closed = false
	l.next = l.sink
	if accept {
		l.compare()
	}
}

func (l *plainLife) keys(of ...kind) (all []string) {
	for _, k := range of {
		all = append(all, fmt.Sprint("m", int(k), " 0"), fmt.Sprint("m", int(k), " 1"))
	}
	return all
}

// lives reports whether an output has something to send.
func (l *plainLife) lives(key string) bool {
	if !strings.HasPrefix(key, l.name(gauge)) && !strings.HasPrefix(key, l.name(upDown)) && l.is.fresh[key] {
		return true
	}
	for _, last := range l.is.inputs {
		if !last.resting && last.output == key {
			return true
		}
	}
	return false
}

func (l *plainLife) name(k kind) string { return fmt.Sprint("m", int(k)) }

func (l *plainLife) compare() {
	told := map[string]float64{}
	ended := map[string]bool{}
	for _, md := range l.sink.AllMetrics() {
		requireNoDuplicates(l.t, md)
		for _, rm := range md.ResourceMetrics().All() {
			require.Zero(l.t, rm.Resource().Attributes().Len())
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				for i := range amount.PointCount(m) {
					l.hear(m, i, told, ended)
				}
			}
		}
	}
	outputs := map[string][]lastOf{}
	for _, last := range l.is.inputs {
		if !last.resting {
			outputs[last.output] = append(outputs[last.output], last)
		}
	}
	for key, sum := range l.is.sums {
		require.Equal(l.t, sum, l.got[key], "seed %d: %s", l.seed, key)
	}
	for _, key := range append(l.keys(cumulative, histogram), l.keys(gauge, upDown)...) {
		lives, name := l.lives(key), key+" sum"
		_, ok := told[name]
		require.Equal(l.t, lives, ok, "seed %d: %s", l.seed, name)
		require.Equal(l.t, !lives && l.present[key], ended[name], "seed %d: the end of %s", l.seed, name)
		l.present[key] = lives
	}
	for _, key := range l.keys(gauge, upDown) {
		l.compareGauge(key, outputs[key], told)
	}
	clear(l.is.fresh)
	clear(l.was.fresh)
}

func (l *plainLife) compareGauge(key string, all []lastOf, told map[string]float64) {
	if len(all) == 0 {
		return
	}
	sum, latest := 0.0, all[0]
	low, high := float64(all[0].value), float64(all[0].value)
	for _, in := range all {
		v := float64(in.value)
		sum, low, high = sum+v, min(low, v), max(high, v)
		if in.time.After(latest.time) || in.time.Equal(latest.time) && in.value > latest.value {
			latest = in
		}
	}
	want := map[string]float64{
		"sum": sum, "min": low, "max": high, "avg": sum / float64(len(all)), "last": float64(latest.value), "count": float64(len(all)),
	}
	for of, v := range want {
		require.InDelta(l.t, v, told[key+" "+of], 1e-9, "seed %d: %s of %s", l.seed, of, key)
	}
}

// hear records a point of an output.
func (l *plainLife) hear(m pmetric.Metric, i int, told map[string]float64, ended map[string]bool) {
	name, of := m.Name(), "sum"
	if at := slices.Index([]byte(name), '.'); at > 0 {
		name, of = name[:at], name[at+1:]
	}
	route, _ := amount.AttributesAt(m, i).Get("route")
	require.Equal(l.t, 1, amount.AttributesAt(m, i).Len())
	key := name + " " + route.Str()
	if amount.WhenAt(m, i).NoValue {
		ended[key+" "+of] = true
		return
	}
	v := amount.ValueAt(m, i)
	told[key+" "+of] = v.Number()
	if of != "sum" {
		return
	}
	n, start := reading(m, i)
	if v.Shape == amount.ShapeHistogram {
		require.InDelta(l.t, float64(n), v.Sum, 1e-9)
		require.Equal(l.t, n, int64(v.Cells[0]+v.Cells[1]))
	}
	switch amount.ClassOf(m) {
	case amount.ClassDelta:
		l.got[key] += n
	case amount.ClassCumulative:
		require.Less(l.t, start, amount.WhenAt(m, i).Time)
		stream := fmt.Sprint(key, " ", uint64(start))
		require.GreaterOrEqual(l.t, n, l.last[stream], "seed %d: %s", l.seed, stream)
		l.got[key] += n - l.last[stream]
		l.last[stream] = n
	default:
	}
}

func (l *plainLife) again(now time.Time) {
	l.piped = newPiped(l.t, l.config)
	l.clock = now
	l.Overflow.Begin = pcommon.NewTimestampFromTime(l.clock)
	require.NoError(l.t, l.begin(l.host))
	for id, last := range l.is.inputs {
		last.seen = l.epoch // they have another idle timeout
		l.is.inputs[id] = last
	}
}

// restart shuts the process down properly. Deltas that it could not send are sent by the next process.
func (l *plainLife) restart() {
	l.seen["restart"]++
	l.closed = true
	accept := l.random.IntN(3) > 0
	if l.next = l.sink; !accept {
		l.next = consumertest.NewErr(errors.New("busy"))
	}
	if l.epoch > 0 {
		l.age()
	}
	l.sink.Reset()
	require.NoError(l.t, l.shutdown(l.t.Context()))
	for _, key := range append(l.keys(cumulative, histogram), l.keys(gauge, upDown)...) {
		l.present[key] = l.present[key] || l.lives(key)
	}
	l.next = l.sink
	if accept {
		l.compare()
	}
	l.again(l.clock.Add(time.Duration(1+l.random.IntN(10)) * time.Second))
	l.was, l.wasPresent = l.is.clone(), maps.Clone(l.present)
}

// kill ends the process at once.
func (l *plainLife) kill() {
	l.seen["kill"]++
	after := l.host.killed()
	l.Snapshot.Storage = nil // it writes no more
	l.host = after
	l.is, l.present = l.was.clone(), maps.Clone(l.wasPresent)
	for key, sum := range l.is.sums {
		if sum == math.MinInt64 {
			l.is.sums[key] = l.got[key]
		}
	}
	if !l.closed { // it is unknown whether it was sent
		for _, last := range l.is.inputs {
			l.is.fresh[last.output] = true
		}
		for key, present := range l.present {
			l.is.fresh[key] = l.is.fresh[key] || present
		}
	}
	l.again(l.clock.Add(time.Second))
}
