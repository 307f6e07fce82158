// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// fleet has counters that are scraped all at once, each of which increases by one a second from its start.
type fleet struct {
	*rig

	pods map[int]time.Time
	last map[string]int64 // of the output, by identity and start
}

func newFleet(t *testing.T, change func(*Config)) *fleet {
	return &fleet{rig: newRig(t, change), pods: map[int]time.Time{}, last: map[string]int64{}}
}

func (f *fleet) begin(from, to int) {
	for i := from; i < to; i++ {
		f.pods[i] = f.clock.Add(-time.Second)
	}
}

// end sends stale markers.
func (f *fleet) end(from, to int) {
	md := pmetric.NewMetrics()
	f.clock = f.clock.Add(time.Millisecond)
	for i := from; i < to; i++ {
		end := f.timed(aSeries(i), f.pods[i], f.clock, 0)
		amount.Silence(onlyMetricOf(end), 0)
		end.ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
		delete(f.pods, i)
	}
	f.count(f.consume(md))
}

// scrape sends all counters, and returns how many passed as they are, or as series of their own.
func (f *fleet) scrape() (passed int) {
	md := pmetric.NewMetrics()
	for i := range 100 {
		if start, ok := f.pods[i]; ok {
			f.timed(aSeries(i), start, f.clock, int64(f.clock.Sub(start).Seconds())).ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
		}
	}
	return f.count(f.consume(md))
}

func (f *fleet) count(md pmetric.Metrics) (n int) {
	for i, id := range identities(md) {
		m := md.ResourceMetrics().At(i).ScopeMetrics().At(0).Metrics().At(0)
		if amount.WhenAt(m, 0).NoValue {
			continue
		}
		value, start := reading(m, 0)
		stream := fmt.Sprint(id, start)
		require.GreaterOrEqual(f.t, value, f.last[stream], id)
		f.last[stream] = value
		n++
	}
	return n
}

// minute runs four scrapes and a flush, after which more than an epoch has passed.
func (f *fleet) minute() (passed int) {
	for range 4 {
		f.clock = f.clock.Add(15 * time.Second)
		passed = f.scrape()
	}
	for range 2 * f.Limiter.Shards() {
		f.Sweep()
	}
	f.count(f.flushed(0))
	return passed
}

func (f *fleet) total() (n int64) {
	for _, value := range f.last {
		n += value
	}
	return n
}

func (f *fleet) want() (n int64) {
	for _, start := range f.pods {
		n += int64(f.clock.Sub(start).Seconds())
	}
	return n
}

// New series beyond the rate wait for it: within two minutes all have a place, and none are added up.
func TestNewcomersWaitForThePace(t *testing.T) {
	f := newFleet(t, overflowing(0, func(rule *RuleConfig) { rule.MaxNewSeriesPerMinute = 10 }))
	f.begin(0, 20)
	require.Equal(t, 10, f.scrape())
	for range 2 {
		f.minute()
	}
	require.Equal(t, 20, f.scrape())
	require.Equal(t, f.want(), f.total())
	require.Positive(t, f.rejected("r", "series_rate", policy.NameWait))
	require.Zero(t, f.rejected("r", "series_rate", "overflow"))
	require.Zero(t, f.unaccounted(""))
}

// If the rate is exceeded for longer they are added up, and get places of their own as the rate permits.
func TestPacedNewcomersAllGetAPlaceInTheEnd(t *testing.T) {
	racetest.Sequential(t)
	f := newFleet(t, overflowing(0, func(rule *RuleConfig) { rule.MaxNewSeriesPerMinute = 2 }))
	f.begin(0, 60)
	for range 60 {
		f.minute()
	}
	require.Equal(t, 60, f.scrape())
	require.Positive(t, f.rejected("r", "series_rate", "overflow"))
	f.count(f.flushed(0))
	require.Equal(t, f.want(), f.total()+f.missing())
}

// missing returns how much first values contained that could not be counted: here, the whole value of a series that had
// waited too long.
func (f *fleet) missing() (n int64) {
	require.Equal(f.t, f.unaccounted("baseline"), f.unaccounted(""))
	if f.unaccounted("baseline") == 0 {
		return 0
	}
	f.t.Log("missing", f.want()-f.total(), "in", f.unaccounted("baseline"))
	return f.want() - f.total()
}

// A rolling update at the limit: each new pod gets the place of an old one as soon as that has ended, and nothing
// counts twice, whatever was added up meanwhile.
func TestRollingUpdateAtTheLimit(t *testing.T) {
	f := newFleet(t, overflowing(20))
	f.begin(0, 20)
	f.minute()
	old := int64(0)
	f.begin(20, 40) // all new pods are first
	require.Equal(t, 20, f.minute())
	for i := range 20 {
		old += int64(f.clock.Sub(f.pods[i]).Seconds())
	}
	f.end(0, 20)
	require.Zero(t, f.gaugeNow("r"), "the places are free at once")
	require.Equal(t, int64(20), f.Limiter.Ended.Load())
	for range 3 {
		f.minute()
	}
	require.Equal(t, 20, f.scrape(), "all new pods have a place")
	require.Equal(t, int64(20), f.gaugeNow("r"))
	require.Equal(t, f.want()+old, f.total())
	require.Zero(t, f.unaccounted("baseline"))
}

// A tenant's new series wait for the rate of this tenant only.
func TestTenantsWaitForTheirOwnPace(t *testing.T) {
	r := newRig(t, func(c *Config) {
		overflowing(0, func(rule *RuleConfig) {
			rule.GroupBy, rule.MaxNewSeriesPerMinute = []string{"tenant"}, 10
		})(c)
		c.Tenant.From = []string{"metadata:tenant"}
	})
	start := r.clock.Add(-time.Second)
	scrape := func(who string, n int) int {
		md := pmetric.NewMetrics()
		for i := range n {
			r.timed(aSeries(i), start, r.clock, r.clock.Unix()).ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
		}
		_, _ = r.process(ident.Tenant{Name: who, Key: "tenant"}.Context(t.Context()), md)
		return md.DataPointCount()
	}
	require.Equal(t, 10, scrape("loud", 90))
	require.Equal(t, 5, scrape("quiet", 5))
	for range 30 {
		r.clock = r.clock.Add(15 * time.Second)
		scrape("loud", 90)
		require.Equal(t, 5, scrape("quiet", 5))
		r.sweeps(2 * r.Limiter.Shards())
		r.flush(t.Context())
	}
	require.Equal(t, 90, scrape("loud", 90), "in the end all have a place")
}

// A marker in a refused batch does not count, and one that is followed by a value ends nothing.
func TestOnlyWhatEndsGivesItsPlaceBack(t *testing.T) {
	p := newPiped(t, overflowing(1))
	start := p.clock
	value := func(n int64) pmetric.Metrics {
		p.clock = p.clock.Add(time.Second)
		return p.timed(aSeries(0), start, p.clock, n)
	}
	marker := func() pmetric.Metrics {
		md := value(0)
		amount.Silence(onlyMetricOf(md), 0)
		return md
	}
	send := func(all ...pmetric.Metrics) error {
		md := pmetric.NewMetrics()
		for _, one := range all {
			one.ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
		}
		return p.front.ConsumeMetrics(t.Context(), md)
	}
	require.NoError(t, send(value(1)))
	p.err = errBusy
	require.Error(t, send(marker()))
	require.Equal(t, int64(1), p.gaugeNow("r"))
	p.err = nil
	require.NoError(t, send(marker(), value(2)))
	require.Equal(t, int64(1), p.gaugeNow("r"))
	require.NoError(t, send(value(3), marker()))
	require.Zero(t, p.gaugeNow("r"))
	require.NoError(t, send(value(4)))
	require.Equal(t, int64(1), p.gaugeNow("r"), "it is back")
	require.Equal(t, pcommon.NewTimestampFromTime(start), amount.WhenAt(onlyMetricOf(p.sink.AllMetrics()[len(p.sink.AllMetrics())-1]), 0).Start)
}

// New rules do not know yet which series count where. Series that they refuse for that reason wait until they do.
func TestRefusalsOfNewRulesDoNotOutliveThem(t *testing.T) {
	f := newFleet(t, overflowing(0))
	f.begin(0, 31)
	f.minute()
	cfg := *f.cfg
	cfg.Rules = []RuleConfig{{
		Name: "other", Match: MatchConfig{Attributes: map[string]string{"i": "3*"}}, MaxSeries: 5, Exceed: cfg.Rules[0].Exceed,
	}}
	f.Apply(&cfg)
	f.begin(31, 32)
	md := f.timed(aSeries(31), f.pods[31], f.clock, 1)
	require.Zero(t, f.consume(md).DataPointCount(), "31 may be in it")
	for range 2 {
		f.minute()
	}
	require.Equal(t, 32, f.scrape())
	require.Equal(t, f.want(), f.total())
	require.Zero(t, f.rejected("other", "max_series", "overflow"))
}
