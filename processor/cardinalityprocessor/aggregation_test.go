// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/aggregate"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/gate"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/store"
)

// aggregating returns a rule that aggregates everything that it matches.
func aggregating(cfg AggregateConfig, change ...func(*RuleConfig)) func(*Config) {
	return func(c *Config) {
		rule := RuleConfig{Name: "a", Aggregate: &cfg}
		for _, f := range change {
			f(&rule)
		}
		c.Rules = append(c.Rules, rule)
	}
}

// poured returns everything that is sent after the given time.
func (r *rig) poured(after time.Duration) pmetric.Metrics {
	r.clock = r.clock.Add(after)
	r.sink.Reset()
	r.pour(r.t.Context(), r.Aggregator.All(r.clock))
	all := pmetric.NewMetrics()
	for _, md := range r.sink.AllMetrics() {
		requireNoDuplicates(r.t, md)
		md.ResourceMetrics().MoveAndAppendTo(all.ResourceMetrics())
	}
	return all
}

// told formats each point: name, type, attributes of resource and point, value.
func told(md pmetric.Metrics) []string {
	all := []string{}
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				for i := range amount.PointCount(m) {
					labels := rm.Resource().Attributes().AsRaw()
					maps.Copy(labels, amount.AttributesAt(m, i).AsRaw())
					text := m.Name() + "{" + strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(labels), "map["), "]") + "} "
					v := amount.ValueAt(m, i)
					switch {
					case amount.WhenAt(m, i).NoValue:
						text += "ends"
					case v.Shape == amount.ShapeNumber:
						text += fmt.Sprint(v.Number())
					default:
						text += fmt.Sprint(v.Count, " ", v.Sum, " ", v.Cells)
					}
					all = append(all, text)
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

// at returns the rig's time plus some seconds.
func (r *rig) at(seconds int) time.Time { return r.clock.Add(time.Duration(seconds) * time.Second) }

func pod(k kind, pod, route string) point {
	return point{resource: attrs{"service": "s", "pod": pod}, name: "hits", kind: k, attrs: attrs{"route": route}}
}

func TestCountersAreSummedWithoutALabel(t *testing.T) {
	r := newRig(t, aggregating(AggregateConfig{Without: []string{"pod"}}))
	begin := r.clock
	for round := range 3 {
		r.clock = r.clock.Add(10 * time.Second)
		for i, p := range []string{"a", "b", "c"} {
			n := int64(100*i + round*(i+1))
			require.Zero(t, r.consume(r.timed(pod(cumulative, p, "/x"), begin, r.clock, n)).DataPointCount())
			require.Zero(t, r.consume(r.timed(pod(cumulative, p, "/y"), begin, r.clock, n+1)).DataPointCount())
		}
	}
	md := r.poured(time.Second)
	require.Equal(t, []string{"hits{route:/x service:s} 312", "hits{route:/y service:s} 315"}, told(md))
	m := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
	require.True(t, m.Sum().IsMonotonic())
	require.Equal(t, pmetric.AggregationTemporalityCumulative, m.Sum().AggregationTemporality())
	_, start := reading(m, 0)
	require.Equal(t, pcommon.NewTimestampFromTime(begin), start)
	require.Equal(t, int64(2), r.gauge("series", "total"), "one place for each")
	require.Equal(t, inspect.Flow{In: 18, Out: 2}, r.flow(), "no limit had a part in it")
}

func TestACounterThatWasThereBeforeBeginsWithWhatItGrowsBy(t *testing.T) {
	r := newRig(t, aggregating(AggregateConfig{By: []string{"service"}}))
	long := r.clock.Add(-time.Hour)
	r.consume(r.timed(pod(cumulative, "a", "/"), long, r.at(1), 1000))
	r.consume(r.timed(pod(cumulative, "b", "/"), r.clock, r.at(1), 7))
	require.Equal(t, []string{"hits{service:s} 7"}, told(r.poured(10*time.Second)))
	r.consume(r.timed(pod(cumulative, "a", "/"), long, r.at(2), 1003))
	r.consume(r.timed(pod(cumulative, "a", "/"), long, r.at(1), 1002)) // late: included in the previous one
	require.Equal(t, []string{"hits{service:s} 10"}, told(r.poured(10*time.Second)))
	r.consume(r.timed(pod(cumulative, "a", "/"), r.at(2), r.at(3), 5)) // restarted
	r.consume(r.timed(pod(cumulative, "b", "/"), r.clock.Add(-20*time.Second), r.at(3), 2))
	require.Equal(t, []string{"hits{service:s} 17"}, told(r.poured(10*time.Second)), "a reset without a new start is one, too")
}

func TestDeltasAreSummedFromIntervalToInterval(t *testing.T) {
	r := newRig(t, aggregating(AggregateConfig{By: []string{"service"}, Outputs: []string{"sum", "count"}}))
	begin := r.clock
	r.consume(r.timed(pod(delta, "a", "/"), r.clock, r.at(1), 3))
	r.consume(r.timed(pod(delta, "b", "/"), r.clock, r.at(1), 4))
	md := r.poured(10 * time.Second)
	require.Equal(t, []string{"hits.count{service:s} 2", "hits{service:s} 7"}, told(md))
	r.consume(r.timed(pod(delta, "a", "/"), begin, begin.Add(-time.Hour), 5))
	md = r.poured(10 * time.Second)
	require.Equal(t, []string{"hits.count{service:s} 2", "hits{service:s} 5"}, told(md), "late ones are not lost")
	for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		if m.Type() == pmetric.MetricTypeSum {
			require.Equal(t, amount.When{Start: pcommon.NewTimestampFromTime(begin.Add(10 * time.Second)), Time: pcommon.NewTimestampFromTime(r.clock)}, amount.WhenAt(m, 0))
		}
	}
	require.Empty(t, told(r.poured(10*time.Second)), "nothing came")
	r.epochs(aggregate.RestsAfter + 1)
	require.Equal(t, []string{"hits.count{service:s} ends"}, told(r.poured(time.Second)))
}

func TestGaugesAreWhatAQuerySays(t *testing.T) {
	r := newRig(t, aggregating(AggregateConfig{By: []string{"route"}, Outputs: []string{"sum", "count", "min", "max", "avg", "last"}}))
	say := func(name string, seconds int, n int64) {
		require.Zero(t, r.consume(r.timed(pod(gauge, name, "/"), time.Time{}, r.at(seconds), n)).DataPointCount())
	}
	say("a", 1, 10)
	say("b", 3, 30)
	say("c", 2, -4)
	say("c", 1, 1000) // late
	all := []string{
		"hits.avg{route:/} 12", "hits.count{route:/} 3", "hits.last{route:/} 30", "hits.max{route:/} 30", "hits.min{route:/} -4",
		"hits.sum{route:/} 36",
	}
	require.Equal(t, all, told(r.poured(10*time.Second)))
	require.Equal(t, all, told(r.poured(10*time.Second)), "they still have these values")
	require.Equal(t, int64(6), r.gauge("series", "total"))

	ended := r.timed(pod(gauge, "b", "/"), time.Time{}, r.at(1), 0)
	amount.Silence(onlyMetricOf(ended), 0)
	r.consume(ended)
	nan := r.timed(pod(gauge, "c", "/"), time.Time{}, r.at(1), 0)
	onlyMetricOf(nan).Gauge().DataPoints().At(0).SetDoubleValue(math.NaN())
	r.consume(nan)
	require.Equal(t, []string{
		"hits.avg{route:/} 10", "hits.count{route:/} 1", "hits.last{route:/} 10", "hits.max{route:/} 10", "hits.min{route:/} 10",
		"hits.sum{route:/} 10",
	}, told(r.poured(10*time.Second)))
	r.epochs(aggregate.RestsAfter + 1)
	require.Equal(t, []string{
		"hits.avg{route:/} ends", "hits.count{route:/} ends", "hits.last{route:/} ends", "hits.max{route:/} ends",
		"hits.min{route:/} ends", "hits.sum{route:/} ends",
	}, told(r.poured(time.Second)), "with the last of them")
	require.Zero(t, r.gauge("series", "total"), "and gives its place back")
	require.Empty(t, told(r.poured(time.Second)))
	r.epochs(aggregate.RestsAfter + 1)
	r.poured(time.Second)
	r.poured(time.Second)
	require.Empty(t, r.Aggregator.Made)
	require.Zero(t, r.Aggregator.Used.Load(), "nothing is left")
}

func TestNamesOfWhatIsMade(t *testing.T) {
	f := func(k kind, keep bool, outputs, want []string) {
		t.Helper()
		r := newRig(t, aggregating(AggregateConfig{By: []string{}, Outputs: outputs, KeepInput: keep}))
		passed := r.consume(r.timed(pod(k, "a", "/"), r.clock, r.at(1), 8))
		require.Equal(t, keep || want == nil, passed.DataPointCount() == 1)
		var names []string
		for _, text := range told(r.poured(10 * time.Second)) {
			name, _, _ := strings.Cut(text, "{")
			names = append(names, name)
		}
		slices.Sort(names)
		require.Equal(t, want, names)
	}
	for _, k := range []kind{cumulative, delta, upDown, histogram, exponential, gauge} {
		f(k, false, nil, []string{"hits"})
		f(k, true, nil, []string{"hits.sum"})
	}
	for _, k := range []kind{gauge, upDown} {
		f(k, false, []string{"max"}, []string{"hits"})
		f(k, false, []string{"max", "min"}, []string{"hits.max", "hits.min"})
		f(k, false, []string{"count"}, []string{"hits.count"})
	}
	f(cumulative, false, []string{"max", "count", "sum"}, []string{"hits", "hits.count"})
	f(cumulative, true, []string{"max", "count", "sum"}, []string{"hits.count", "hits.sum"})
	f(cumulative, false, []string{"count"}, []string{"hits.count"})
	f(cumulative, false, []string{"max", "last"}, nil)
	f(histogram, false, []string{"max", "sum", "count"}, []string{"hits"})
	f(histogram, false, []string{"count"}, nil)
	f(summary, false, []string{"sum", "count"}, nil)
}

func TestWhatStays(t *testing.T) {
	in := func(resource, attributes attrs) point {
		return point{resource: resource, name: "g", kind: gauge, attrs: attributes}
	}
	f := func(cfg AggregateConfig, want ...string) {
		t.Helper()
		r := newRig(t, aggregating(cfg))
		r.consume(r.timed(in(attrs{"both": "r", "a": "1", "only": "r"}, attrs{"both": "p", "b": "1"}), r.clock, r.at(1), 1))
		r.consume(r.timed(in(attrs{"both": "r", "a": "2", "only": "r"}, attrs{"both": "p", "b": "2"}), r.clock, r.at(1), 2))
		got := []string{}
		for _, rm := range r.poured(time.Second).ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				for i := range amount.PointCount(m) {
					got = append(got, spell(rm.Resource().Attributes().AsRaw())+" / "+spell(amount.AttributesAt(m, i).AsRaw()))
				}
			}
		}
		slices.Sort(got)
		require.Equal(t, want, got)
	}
	f(AggregateConfig{By: []string{}}, " / ")
	f(AggregateConfig{By: []string{"both"}}, `"both"=string:"r" / "both"=string:"p"`)
	f(AggregateConfig{By: []string{"resource:both"}}, `"both"=string:"r" / `)
	f(AggregateConfig{By: []string{"attribute:both"}}, ` / "both"=string:"p"`)
	f(AggregateConfig{By: []string{"b"}}, ` / "b"=string:"1"`, ` / "b"=string:"2"`)
	f(AggregateConfig{Without: []string{"a", "b"}}, `"both"=string:"r","only"=string:"r" / "both"=string:"p"`)
	f(AggregateConfig{Without: []string{"resource:both", "a", "b", "only"}}, ` / "both"=string:"p"`)
}

func TestOnlyWhatARuleMatchesIsAggregated(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Exempt = []MatchConfig{{Attributes: map[string]string{"route": "/keep"}}}
		aggregating(AggregateConfig{Without: []string{"pod"}}, func(r *RuleConfig) {
			r.Match = MatchConfig{Metric: "h*", Resource: map[string]string{"service": "s"}, Attributes: map[string]string{"route": "/*"}}
		})(c)
	})
	for _, p := range []point{pod(gauge, "a", "/keep"), pod(gauge, "a", "no"), {name: "hits", kind: gauge, attrs: attrs{"route": "/x"}}} {
		require.Equal(t, 1, r.consume(r.timed(p, r.clock, r.at(1), 1)).DataPointCount())
	}
	require.Empty(t, told(r.poured(time.Second)))
	require.Zero(t, r.consume(r.timed(pod(gauge, "a", "/x"), r.clock, r.at(1), 1)).DataPointCount())
	require.Equal(t, []string{"hits{route:/x service:s} 1"}, told(r.poured(time.Second)))
}

func TestWhatIsMadeIsLimited(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Memory.MaxSeries = 2
		aggregating(AggregateConfig{By: []string{"route"}})(c)
		c.Defaults.Exceed.OnExceed = []string{"overflow"}
	})
	for i := range 5 {
		for _, p := range []string{"a", "b"} {
			require.Zero(t, r.consume(r.timed(pod(cumulative, p, fmt.Sprint("/", i)), r.clock, r.at(1), 10)).DataPointCount())
		}
	}
	require.Equal(t, []string{"hits{route:/0} 20", "hits{route:/1} 20"}, told(r.poured(10*time.Second)))
	require.Equal(t, int64(3), r.rejected("total", "max_series", "overflow"))
	require.Equal(t, []string{"hits{otel.metric.overflow:true} 60"}, told(r.flushed(time.Second)))
}

func TestBeyondTheMemoryForItSeriesPass(t *testing.T) {
	r := newRig(t, aggregating(AggregateConfig{Without: []string{"pod"}}))
	a := pod(cumulative, "a", "/")
	require.Zero(t, r.consume(r.timed(a, r.clock, r.at(1), 5)).DataPointCount())
	begin, full := r.clock, r.Aggregator.Used.Load()
	r.Aggregator.Budget = full
	b := pod(cumulative, "b", "/")
	require.Equal(t, []string{b.identity()}, identities(r.consume(r.timed(b, begin, r.at(1), 7))))
	require.Zero(t, r.consume(r.timed(a, begin, r.at(2), 6)).DataPointCount(), "who is known stays")
	require.Equal(t, full, r.Aggregator.Used.Load())
	require.Equal(t, []string{"hits{route:/ service:s} 6"}, told(r.poured(10*time.Second)))

	r.Aggregator.Budget = 2 * full // the next value passes: the series continues from there, and is ended in the same batch
	md := r.consume(r.timed(b, begin, r.at(1), 9))
	require.Equal(t, []string{"hits{pod:b route:/ service:s} 9", "hits{pod:b route:/ service:s} ends"}, told(md))
	require.Equal(t, int64(1), r.gauge("series", "total"), "it has given its place back")
	require.Zero(t, r.consume(r.timed(b, begin, r.at(2), 12)).DataPointCount())
	require.Equal(t, []string{"hits{route:/ service:s} 9"}, told(r.poured(10*time.Second)))
}

func TestARuleThatComesLaterHasSeriesEnd(t *testing.T) {
	for _, k := range []kind{cumulative, gauge, upDown, delta, histogram} {
		r := newRig(t, func(*Config) {})
		p := pod(k, "a", "/")
		require.Len(t, identities(r.consume(r.timed(p, r.clock, r.at(1), 10))), 1)
		cfg := *r.cfg
		aggregating(AggregateConfig{By: []string{}})(&cfg)
		begin := r.clock
		r.clock = r.clock.Add(5 * time.Second)
		r.Apply(&cfg)
		md := r.consume(r.timed(p, begin, r.at(1), 14))
		switch k {
		case delta: // just ends
			require.Zero(t, md.DataPointCount())
		case gauge, upDown:
			require.Equal(t, []string{"hits{pod:a route:/ service:s} ends"}, told(md))
		default:
			require.Equal(t, 2, md.DataPointCount())
			m := onlyMetric(t, md)
			require.False(t, amount.WhenAt(m, 0).NoValue)
			require.Equal(t, amount.When{Start: amount.WhenAt(m, 0).Start, Time: amount.WhenAt(m, 0).Time + 1_000_000, NoValue: true}, amount.WhenAt(m, 1))
		}
		require.Zero(t, r.consume(r.timed(p, begin, r.at(2), 20)).DataPointCount())
		m := onlyMetric(t, r.poured(10*time.Second))
		n, _ := reading(m, 0)
		require.Equal(t, map[kind]int64{cumulative: 6, gauge: 20, upDown: 20, delta: 34, histogram: 6}[k], n)
	}
}

func TestADryRunAggregatesNothing(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Mode = policy.ModeDryRun
		aggregating(AggregateConfig{By: []string{}})(c)
	})
	require.Equal(t, 1, r.consume(r.timed(pod(gauge, "a", "/"), r.clock, r.at(1), 10)).DataPointCount())
	require.Empty(t, told(r.poured(time.Second)))
	require.Equal(t, int64(1), r.gauge("series", "total"), "what would have been made has a place")
}

func TestTenantsAreAggregatedApart(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Tenant.From = []string{"resource:org"}
		aggregating(AggregateConfig{By: []string{}})(c)
	})
	for i, org := range []string{"x", "y", "y"} {
		p := point{resource: attrs{"org": org, "pod": int64(i)}, name: "g", kind: gauge}
		r.consume(r.timed(p, r.clock, r.at(1), int64(i+1)))
	}
	require.Equal(t, []string{"g{org:x} 1", "g{org:y} 5"}, told(r.poured(time.Second)))
}

func TestADamagedLedgerOfAggregatesIsLeftOut(t *testing.T) {
	config := withStorage(aggregating(AggregateConfig{By: []string{}}))
	host := newMemory()
	r := newRig(t, config)
	require.NoError(t, r.begin(host))
	for _, k := range []kind{cumulative, gauge, histogram} {
		p := pod(k, "a", "/")
		p.name = fmt.Sprint("m", int(k))
		r.consume(r.timed(p, r.clock, r.at(1), 10))
	}
	r.poured(time.Second)
	require.NoError(t, r.shutdown(t.Context()))
	again := newRig(t, config)
	require.NoError(t, again.begin(host.killed()))
	require.Len(t, again.Aggregator.Order, 3)
	damaged := 0
	for key := range host.data {
		if !strings.HasPrefix(key, gate.SnapshotAggregates) {
			continue
		}
		for at := store.KeyMarkSize; at < len(host.data[key]); at += 7 {
			bad := host.killed()
			bad.data[key] = slices.Clone(bad.data[key])
			bad.data[key][at] ^= 0x40
			next := newRig(t, config)
			require.NoError(t, next.begin(bad))
			require.Empty(t, next.Aggregator.Order)
			next.Snapshot.Storage = nil
			damaged++
		}
	}
	require.Greater(t, damaged, 100)
}

// If two rules would create a series with the same name and attributes, only the first of them does: otherwise there
// would be two series that cannot be told apart.
func TestTwoRulesDoNotMakeTheSameSeries(t *testing.T) {
	rules := func(match bool, second AggregateConfig) func(*Config) {
		return func(c *Config) {
			c.Rules = []RuleConfig{{Name: "a", Aggregate: &AggregateConfig{By: []string{"service"}}}, {Name: "b", Aggregate: &second}}
			if match {
				c.Rules[0].Match, c.Rules[1].Match = MatchConfig{Attributes: map[string]string{"route": "/a"}}, MatchConfig{Attributes: map[string]string{"route": "/b"}}
			}
		}
	}
	refused := func(r *rig) int64 {
		got, err := r.telemetry.GetMetric("otelcol_processor_cardinality_unaggregated_points")
		if err != nil {
			return 0
		}
		return sumOf(got, attrs{"rule": "b", "reason": "output"})
	}
	say := func(r *rig, start time.Time, n int64) (passed int) {
		for _, p := range []string{"1", "2"} {
			for _, route := range []string{"/a", "/b"} {
				passed += r.consume(r.timed(pod(cumulative, p, route), start, r.at(1), n)).DataPointCount()
			}
		}
		return passed
	}
	r := newRig(t, rules(false, AggregateConfig{Without: []string{"pod", "route"}}))
	require.Zero(t, say(r, r.clock, 5), "taken by one of them")
	require.Equal(t, []string{"hits{service:s} 20"}, told(r.poured(10*time.Second)))
	require.Equal(t, int64(4), refused(r))

	r = newRig(t, rules(true, AggregateConfig{By: []string{"service"}}))
	require.Equal(t, 2, say(r, r.clock, 5), "they go by themselves")
	require.Equal(t, []string{"hits{service:s} 10"}, told(r.poured(10*time.Second)))
	require.Equal(t, int64(2), refused(r))

	r = newRig(t, rules(false, AggregateConfig{By: []string{"service"}, KeepInput: true}))
	require.Zero(t, say(r, r.clock, 5))
	require.Equal(t, []string{"hits.sum{service:s} 20", "hits{service:s} 20"}, told(r.poured(10*time.Second)), "of another name")
	require.Zero(t, refused(r))
}

// When a rule is renamed, its series continue.
func TestARuleThatIsRenamedGoesOn(t *testing.T) {
	r := newRig(t, aggregating(AggregateConfig{By: []string{"service"}}))
	begin := r.clock
	say := func(n int64) {
		for _, p := range []string{"1", "2"} {
			require.Zero(t, r.consume(r.timed(pod(cumulative, p, "/"), begin, r.at(1), n)).DataPointCount())
		}
	}
	say(5)
	md := r.poured(10 * time.Second)
	require.Equal(t, []string{"hits{service:s} 10"}, told(md))
	_, since := reading(onlyMetric(t, md), 0)
	say(6)
	cfg := *r.cfg
	cfg.Rules = []RuleConfig{{Name: "b", Aggregate: &AggregateConfig{By: []string{"service"}}}}
	r.clock = r.clock.Add(time.Second)
	r.Apply(&cfg)
	say(7) // counted from here on: it is unknown which rule has had which values
	require.Equal(t, []string{"hits{service:s} 12"}, told(r.poured(10*time.Second)))
	say(9)
	md = r.poured(10 * time.Second)
	require.Equal(t, []string{"hits{service:s} 16"}, told(md))
	_, start := reading(onlyMetric(t, md), 0)
	require.Equal(t, since, start)
}

// Whoever can write to the storage can also write data with a valid checksum. It may lead to wrong sums, but not to a
// crash.
func TestAStrangeLedgerOfAggregatesIsSurvived(t *testing.T) {
	racetest.Sequential(t)
	config := withStorage(aggregating(AggregateConfig{By: []string{}}))
	host := newMemory()
	r := newRig(t, config)
	require.NoError(t, r.begin(host))
	say := func(r *rig, seconds int) {
		for _, k := range []kind{cumulative, gauge, histogram, exponential, delta} {
			p := pod(k, "a", "/")
			p.name = fmt.Sprint("m", int(k))
			r.consume(r.timed(p, r.clock, r.at(seconds), 10))
		}
	}
	say(r, 1)
	r.poured(time.Second)
	r.Snapshot.Storage = nil // killed
	for key, saved := range host.data {
		if !strings.HasPrefix(key, gate.SnapshotAggregates) {
			continue
		}
		for at := store.KeyMarkSize + len(store.Magic); at < len(saved)-crc32.Size; at++ {
			strange := host.killed()
			value := slices.Clone(saved)
			value[at] ^= byte(1 << (at % 8))
			body := value[store.KeyMarkSize : len(value)-crc32.Size]
			binary.LittleEndian.PutUint32(value[len(value)-crc32.Size:], crc32.ChecksumIEEE(body))
			strange.data[key] = value
			next := newRig(t, config)
			require.NoError(t, next.begin(strange))
			say(next, 2)
			for range 2 {
				next.pour(t.Context(), next.Aggregator.All(next.clock))
				next.epochs(aggregate.RestsAfter + 1)
			}
			next.Snapshot.Storage = nil
		}
	}
}
