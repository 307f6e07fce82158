// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"errors"
	"fmt"
	"maps"
	rand "math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// TestSumsAreConservedOverRestarts: with restarts, kills at any time, and consumers that refuse batches or series made
// here, the sums of the output equal those of the accepted input, except for first values that are counted as
// unaccounted, and deltas that a killed process had added up since its last flush. No increment counts twice. Series
// end and come back, rules change, and members get places of their own.
func TestSumsAreConservedOverRestarts(t *testing.T) {
	racetest.Sequential(t)
	kills, lost, promoted, ended := 0, int64(0), int64(0), int64(0)
	for seed := range seeds(t, 8) {
		l := live(t, seed)
		kills += l.kills
		promoted += l.promoted
		ended += l.ended
		for _, n := range l.lost {
			lost += n
		}
	}
	require.Positive(t, kills)
	require.Positive(t, lost)
	require.Greater(t, promoted, int64(20))
	require.Greater(t, ended, int64(20))
}

// Seeds that once revealed a defect, in which a series counted twice: it lost its place, waited for another one and
// passed once more meanwhile, while an earlier start was still known as that of a member, or nothing was known any more
// because too many had left.
func TestSumsAreConservedInLivesThatFailedOnce(t *testing.T) {
	racetest.Sequential(t)
	for _, seed := range []uint64{197646899940501, 197646899940549, 114064745777963} {
		live(t, seed)
	}
}

func FuzzSumsAreConservedOverRestarts(f *testing.F) {
	racetest.Sequential(f)
	f.Add(uint64(1000))
	f.Fuzz(func(t *testing.T, seed uint64) { live(t, seed) })
}

// live runs a whole life, with adaptive limits if the seed is odd.
func live(t *testing.T, seed uint64) *life {
	var shareBy []string
	if seed%2 == 1 {
		shareBy = []string{"service"}
	}
	l := newLife(t, seed, shareBy)
	for range 150 {
		l.step()
	}
	l.restart()
	l.agrees()
	return l
}

// life is a processor over many processes, with its senders and its consumer.
type life struct {
	*piped

	seed   uint64
	random *rand.Rand
	config func(*Config)
	host   *memory
	kills  int

	promoted, ended int64

	sources, gone []*sender
	pending       map[string]int64 // deltas that wait for the next flush, by metric

	counters        map[string]int64
	want, got, lost map[string]int64
	last            map[string]int64 // of the output, by identity
	began           map[string]pcommon.Timestamp
}

// sender is one input.
type sender struct {
	point

	start   time.Time
	total   int64
	sent    int64 // its last value
	counted int64 // the part of it that is accounted for: in an output or as missing
	kept    int64 // the part of it that no kill can lose
	missing int64 // since then, in first values that were not added
}

func newLife(t *testing.T, seed uint64, shareBy []string) *life {
	random := rand.New(rand.NewPCG(seed, 7))
	config := withStorage(func(c *Config) {
		c.Defaults.Exceed.OnExceed = []string{"collapse", "overflow"}
		c.Exempt = []MatchConfig{{Metric: "exempt"}}
		c.Memory.MaxSeries = 5 + random.IntN(40)
		c.Rules = []RuleConfig{{
			Name: "r", GroupBy: []string{"metric"}, MaxSeries: 1 + random.IntN(8), LabelLimits: map[string]int{"user": random.IntN(4)},
			MaxNewSeriesPerMinute: []int{0, 2, 20}[random.IntN(3)],
			Exceed:                ExceedConfig{KeepLabels: []string{"route"}}, Adaptive: AdaptiveConfig{ShareBy: shareBy},
		}}
	})
	l := &life{
		seed: seed, random: random, config: config, host: newMemory(), pending: map[string]int64{},
		counters: map[string]int64{}, want: map[string]int64{}, got: map[string]int64{}, lost: map[string]int64{},
		last: map[string]int64{}, began: map[string]pcommon.Timestamp{},
	}
	l.piped = newPiped(t, config)
	require.NoError(t, l.begin(l.host))
	return l
}

func (l *life) step() {
	l.pass(time.Duration(1+l.random.IntN(5)) * time.Second)
	if l.random.IntN(3) == 0 {
		l.add()
	}
	if len(l.sources) > 0 && l.random.IntN(8) == 0 {
		at := l.random.IntN(len(l.sources))
		l.gone = append(l.gone, l.sources[at])
		l.sources = slices.Delete(l.sources, at, at+1)
	}
	for _, s := range l.sources {
		switch l.random.IntN(30) {
		case 0, 1:
			l.end(s)
		case 2, 3, 4, 5, 6, 7, 8, 9:
		default:
			l.say(s)
		}
	}
	switch l.random.IntN(25) {
	case 0, 1, 2, 3, 4:
		l.epochs(1)
	case 5, 6, 7, 8, 9, 10:
		l.deliver()
	case 11, 12:
		require.NoError(l.t, l.Snapshot.Save(l.t.Context()))
	case 13:
		l.restart()
	case 14, 15:
		l.kill()
	case 24:
		l.reload()
	default:
	}
}

func (l *life) pass(d time.Duration) { l.clock = l.clock.Add(d) }

func (l *life) add() {
	k := []kind{cumulative, cumulative, delta, histogram, exponential, summary}[l.random.IntN(6)]
	s := &sender{point: point{
		resource: attrs{"service": strconv.Itoa(l.random.IntN(3))}, name: fmt.Sprint("m", int(k)), kind: k,
		attrs: attrs{"user": strconv.Itoa(l.random.IntN(6)), "route": int64(l.random.IntN(3)), "id": l.random.Int64()},
	}}
	s.start = l.clock.Add(-time.Millisecond)
	l.sources = append(l.sources, s)
}

// say sends one point, and finds out what happened to it.
func (l *life) say(s *sender) {
	if l.random.IntN(15) == 0 { // restarts
		former := *s
		l.gone = append(l.gone, &former)
		s.start = l.clock.Add(-time.Millisecond)
		s.total, s.sent, s.counted, s.missing, s.kept = 0, 0, 0, 0, 0
	}
	n := int64(l.random.IntN(20))
	s.total += n
	value, sums := s.total, s.kind != delta && s.kind != exponential
	if !sums {
		value = n
	}
	md, accepted := l.hand(l.timed(s.point, s.start, l.clock, value))
	if !accepted { // deltas are lost then, cumulative values are sent again
		if !sums {
			s.total = s.sent
		}
		return
	}
	l.want[s.name] += s.total - s.sent
	s.sent = s.total
	switch {
	case l.leaves(md):
		s.all()
	case !sums:
		l.pending[s.name] += n
		s.all()
	case l.more(amount.NameBaseline):
		s.missing += s.sent - s.counted
		s.counted = s.sent
	case !l.more(policy.NameWait):
		s.counted = s.sent
	}
}

// end sends the end of an input. It may come back.
func (l *life) end(s *sender) {
	md := l.timed(s.point, s.start, l.clock, 0)
	amount.Silence(onlyMetricOf(md), 0)
	if passed, accepted := l.hand(md); accepted {
		require.False(l.t, l.leaves(passed))
		l.more(policy.NameWait) // and may have waited
	}
}

// reload changes the limits.
func (l *life) reload() {
	before, pace, total := l.config, []int{0, 2, 20}[l.random.IntN(3)], 5+l.random.IntN(40)
	n, users := 1+l.random.IntN(8), l.random.IntN(4)
	l.config = func(c *Config) {
		before(c)
		c.Memory.MaxSeries = total
		c.Rules[0].MaxSeries, c.Rules[0].MaxNewSeriesPerMinute, c.Rules[0].LabelLimits = n, pace, map[string]int{"user": users}
	}
	cfg := *l.cfg
	l.config(&cfg)
	l.Apply(&cfg)
}

// hand sends a batch to a consumer that may refuse it, several times, until it may be given up.
func (l *life) hand(md pmetric.Metrics) (passed pmetric.Metrics, accepted bool) {
	metricsOf(point{name: "exempt"}).ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics()) // otherwise the consumer might not be called
	for l.random.IntN(4) == 0 {
		l.err = errBusy
		again := pmetric.NewMetrics()
		md.CopyTo(again)
		require.ErrorIs(l.t, l.front.ConsumeMetrics(l.t.Context(), again), errBusy)
		if l.random.IntN(6) == 0 {
			return md, false
		}
	}
	l.err = nil
	l.seen = func(md pmetric.Metrics) { passed = md }
	require.NoError(l.t, l.front.ConsumeMetrics(l.t.Context(), md))
	return passed, true
}

func (s *sender) all() { s.counted, s.kept, s.missing = s.sent, s.sent, 0 }

// more reports whether a count has increased since the last call: of first values that were not added, or of points of
// series that wait for a place.
func (l *life) more(what string) bool {
	n := int64(0)
	if what == policy.NameWait {
		n = l.waited()
	} else if lost, err := l.telemetry.GetMetric("otelcol_processor_cardinality_unaccounted_points"); err == nil {
		n = sumOf(lost, attrs{"reason": what})
		require.Equal(l.t, n+sumOf(lost, attrs{"reason": "no_value"}), sumOf(lost, nil))
	}
	before := l.counters[what]
	l.counters[what] = n
	return n > before
}

// leaves adds up the output, by identity and start, and reports whether there was a value.
func (l *life) leaves(md pmetric.Metrics) (value bool) {
	all, at := identities(md), 0
	for _, rm := range md.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			for i := range amount.PointCount(m) {
				id := all[at]
				at++
				if amount.WhenAt(m, i).NoValue || m.Name() == "exempt" {
					continue
				}
				n, start := reading(m, i)
				if amount.ClassOf(m) == amount.ClassCumulative {
					if l.began[id] == start {
						require.GreaterOrEqual(l.t, n, l.last[id], "seed %d: %s counts up", l.seed, id)
						n, l.last[id] = n-l.last[id], n
					} else {
						l.last[id] = n
					}
					l.began[id] = start
				}
				l.got[m.Name()] += n
				value = true
			}
		}
	}
	return value
}

// deliver flushes, to a consumer that may refuse.
func (l *life) deliver() {
	if l.random.IntN(4) == 0 {
		l.next = consumertest.NewErr(errors.New("busy"))
	}
	l.sink.Reset()
	l.flush(l.t.Context())
	l.noted()
	l.taken()
	l.next = l.sink
}

// noted is called after everything was written to the ledger.
func (l *life) noted() {
	for _, s := range slices.Concat(l.sources, l.gone) {
		l.lost[s.name] += s.missing
		s.kept, s.missing = s.counted, 0
	}
}

func (l *life) taken() {
	for _, md := range l.sink.AllMetrics() {
		l.leaves(md)
	}
	if l.next == l.sink {
		clear(l.pending)
	}
}

// restart shuts the process down properly. What it could not send is sent by the next process.
func (l *life) restart() {
	if l.random.IntN(4) == 0 {
		l.next = consumertest.NewErr(errors.New("busy"))
	}
	l.sink.Reset()
	require.NoError(l.t, l.shutdown(l.t.Context()))
	l.noted()
	l.taken()
	l.again(l.host)
}

// kill ends the process at once.
func (l *life) kill() {
	l.kills++
	after := l.host.killed()
	l.Snapshot.Storage = nil
	l.again(after)
	for _, s := range slices.Concat(l.sources, l.gone) {
		s.counted, s.missing = s.kept, 0
	}
	for name, n := range l.pending {
		l.lost[name] += n
	}
	clear(l.pending)
}

func (l *life) again(host *memory) {
	l.ended += l.Limiter.Ended.Load()
	if got, err := l.telemetry.GetMetric("otelcol_processor_cardinality_promoted_series"); err == nil {
		l.promoted += sumOf(got, nil)
	}
	now := l.clock.Add(time.Duration(l.random.IntN(10)) * time.Second)
	l.host = host
	l.piped = newPiped(l.t, l.config)
	l.clock = now
	clear(l.counters)
	l.Overflow.Begin = pcommon.NewTimestampFromTime(now)
	require.NoError(l.t, l.begin(host))
}

// agrees compares the input with the output.
func (l *life) agrees() {
	l.sink.Reset()
	l.pass(time.Second)
	l.flush(l.t.Context())
	l.noted()
	l.taken()
	for _, s := range slices.Concat(l.sources, l.gone) {
		l.lost[s.name] += s.sent - s.counted // it waited for a place, or ended before it could send the value again
	}
	for _, name := range slices.Sorted(maps.Keys(l.want)) {
		got, lost := l.got[name], l.lost[name]
		require.Equal(l.t, l.want[name], got+lost, "seed %d, %s: %d got, %d lost", l.seed, name, got, lost)
	}
}
