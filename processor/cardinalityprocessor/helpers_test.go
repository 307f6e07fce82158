// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/metadata"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/overflow"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/series"
)

type attrs = map[string]any

// point is a data point with everything that identifies it.
type point struct {
	resource attrs
	scope    string
	name     string
	unit     string
	kind     kind
	attrs    attrs
	value    float64
}

type kind int

const (
	gauge kind = iota
	cumulative
	delta
	upDown
	histogram
	exponential
	summary
	kinds
)

// metricsOf puts each point into a resource, scope and metric of its own, to keep their order.
func metricsOf(points ...point) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for _, p := range points {
		appendPoint(md, p)
	}
	return md
}

func appendPoint(md pmetric.Metrics, p point) {
	rm := md.ResourceMetrics().AppendEmpty()
	must(rm.Resource().Attributes().FromRaw(p.resource))
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName(p.scope)
	m := sm.Metrics().AppendEmpty()
	m.SetName(p.name)
	m.SetUnit(p.unit)
	number := func(points pmetric.NumberDataPointSlice) {
		dp := points.AppendEmpty()
		must(dp.Attributes().FromRaw(p.attrs))
		dp.SetDoubleValue(p.value)
	}
	switch p.kind {
	case gauge:
		number(m.SetEmptyGauge().DataPoints())
	case cumulative, delta, upDown:
		sum := m.SetEmptySum()
		sum.SetIsMonotonic(p.kind != upDown)
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		if p.kind == delta {
			sum.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		}
		number(sum.DataPoints())
	case histogram:
		m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		must(m.Histogram().DataPoints().AppendEmpty().Attributes().FromRaw(p.attrs))
	case exponential:
		m.SetEmptyExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		must(m.ExponentialHistogram().DataPoints().AppendEmpty().Attributes().FromRaw(p.attrs))
	default:
		must(m.SetEmptySummary().DataPoints().AppendEmpty().Attributes().FromRaw(p.attrs))
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// identity returns a series as text, including types.
func (p point) identity() string {
	return fmt.Sprintf("%s %q %q %q %d %s", spell(p.resource), p.scope, p.name, p.unit, p.kind, spell(p.attrs))
}

func spell(a attrs) string {
	var parts []string
	for k, v := range a {
		parts = append(parts, fmt.Sprintf("%q=%T:%q", k, v, fmt.Sprint(v)))
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

// identities returns every point of md as text, in order.
func identities(md pmetric.Metrics) []string {
	var out []string
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				for i := range amount.PointCount(m) {
					out = append(out, point{
						resource: rm.Resource().Attributes().AsRaw(), scope: sm.Scope().Name(), name: m.Name(), unit: m.Unit(),
						kind: kindIn(m), attrs: amount.AttributesAt(m, i).AsRaw(),
					}.identity())
				}
			}
		}
	}
	return out
}

// placed is the position of a point.
type placed struct {
	metric pmetric.Metric
	at     int
}

// allPoints returns all points with their identities.
func allPoints(md pmetric.Metrics) iter.Seq2[string, placed] {
	return func(yield func(string, placed) bool) {
		ids, n := identities(md), 0
		for _, rm := range md.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					for i := range amount.PointCount(m) {
						if !yield(ids[n], placed{m, i}) {
							return
						}
						n++
					}
				}
			}
		}
	}
}

func kindIn(m pmetric.Metric) kind {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return gauge
	case pmetric.MetricTypeSum:
		switch {
		case !m.Sum().IsMonotonic():
			return upDown
		case m.Sum().AggregationTemporality() == pmetric.AggregationTemporalityDelta:
			return delta
		default:
			return cumulative
		}
	case pmetric.MetricTypeHistogram:
		return histogram
	case pmetric.MetricTypeExponentialHistogram:
		return exponential
	default:
		return summary
	}
}

func defaultConfig() *Config { return createDefaultConfig().(*Config) }

// rig is a processor whose clock is set by hand.
type rig struct {
	*cardinalityProcessor

	sink      *consumertest.MetricsSink
	t         testing.TB
	telemetry *componenttest.Telemetry

	mu    sync.Mutex
	clock time.Time
}

func newRig(t testing.TB, change func(*Config)) *rig {
	cfg := defaultConfig()
	cfg.Memory.MaxSeries = 200_000 // the minimum number of shards: most tests visit all of them again and again
	cfg.Defaults.Exceed.OnExceed = []string{"drop"}
	change(cfg)
	require.NoError(t, cfg.Validate())
	telemetry := componenttest.NewTelemetry()
	set := processortest.NewNopSettings(metadata.Type)
	set.ID = component.NewID(metadata.Type)
	set.TelemetrySettings = telemetry.NewTelemetrySettings()
	sink := new(consumertest.MetricsSink)
	p, err := newProcessor(cfg, set, sink)
	require.NoError(t, err)
	p.Hash = *testHasher() // estimates are the same each time
	require.NoError(t, p.Observe())
	t.Cleanup(func() {
		require.NoError(t, p.shutdown(context.Background()))
		require.NoError(t, telemetry.Shutdown(context.Background()))
	})
	r := &rig{cardinalityProcessor: p, sink: sink, t: t, telemetry: telemetry, clock: time.Unix(1_000_000, 0)}
	p.Now = func() time.Time {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.clock
	}
	p.Overflow.Begin = pcommon.NewTimestampFromTime(r.clock)
	for _, s := range p.Aggregator.States {
		s.Since = p.Overflow.Begin
		s.Flushed = s.Since
	}
	return r
}

// send sends points and returns the identities of those that pass with their value.
func (r *rig) send(points ...point) []string {
	all, _ := r.say(points...)
	return all
}

// say is like send, but also returns the identities of series that end.
func (r *rig) say(points ...point) (with, without []string) {
	md := r.consume(metricsOf(points...))
	ids, i := identities(md), 0
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				for at := range amount.PointCount(m) {
					if amount.WhenAt(m, at).NoValue {
						without = append(without, ids[i])
					} else {
						with = append(with, ids[i])
					}
					i++
				}
			}
		}
	}
	return with, without
}

// process decides about metrics that are not refused.
func (p *cardinalityProcessor) process(ctx context.Context, md pmetric.Metrics) (pmetric.Metrics, error) {
	b := p.NewBatch("")
	defer func() { p.Conclude(ctx, b, true) }()
	came := md.DataPointCount()
	left := p.decide(ctx, b, md)
	if in, out := b.Points(); in != int64(came) || out != int64(md.DataPointCount()) {
		panic(fmt.Sprintf("%d and %d points, and %d and %d are counted", came, md.DataPointCount(), in, out))
	}
	if !left {
		return md, errNothing
	}
	return md, nil
}

var errNothing = errors.New("nothing is left")

func (r *rig) consume(md pmetric.Metrics) pmetric.Metrics {
	out, err := r.process(r.t.Context(), md)
	if err != nil {
		require.ErrorIs(r.t, err, errNothing)
		return pmetric.NewMetrics()
	}
	return out
}

// passes reports which of the points pass.
func (r *rig) passes(points ...point) []bool {
	var out []bool
	for _, p := range points {
		out = append(out, len(r.send(p)) == 1)
	}
	return out
}

// begin starts the processor without its background work.
func (r *rig) begin(host component.Host) error {
	err := r.start(r.t.Context(), host)
	r.cancel()
	r.done.Wait()
	return err
}

// epochs advances time by epochs.
func (r *rig) epochs(n int) { r.sweeps(n * r.Limiter.Shards()) }

// sweeps advances time by sweeps, which may be parts of an epoch.
func (r *rig) sweeps(n int) {
	for range n {
		r.Sweep()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clock = r.clock.Add(time.Duration(n) * r.cfg.IdleTimeout / time.Duration(moment.IdleEpochs*r.Limiter.Shards()))
}

// idle advances time until everything that is not seen has expired.
func (r *rig) idle() { r.epochs(series.KeptValueEpochs + 2) }

// rejected returns the counter of rejected points, by rule, reason and action.
func (r *rig) rejected(rule, reason, action string) int64 {
	got, err := r.telemetry.GetMetric("otelcol_processor_cardinality_rejected_points")
	if err != nil {
		return 0
	}
	return sumOf(got, attrs{"rule": rule, "reason": reason, "action": action})
}

// waited returns how many points were withheld because their series wait for a place.
func (r *rig) waited() int64 {
	got, err := r.telemetry.GetMetric("otelcol_processor_cardinality_rejected_points")
	if err != nil {
		return 0
	}
	return sumOf(got, attrs{"action": policy.NameWait})
}

// unaccounted returns how many points were not added, for one reason or for all.
func (r *rig) unaccounted(reason string) int64 {
	got, err := r.telemetry.GetMetric("otelcol_processor_cardinality_unaccounted_points")
	if err != nil {
		return 0
	}
	if reason == "" {
		return sumOf(got, nil)
	}
	return sumOf(got, attrs{"reason": reason})
}

func (r *rig) gauge(name, rule string) int64 {
	got, err := r.telemetry.GetMetric("otelcol_processor_cardinality_" + name)
	require.NoError(r.t, err)
	if rule == "" {
		return sumOf(got, nil)
	}
	return sumOf(got, attrs{"rule": rule})
}

func attributesOf(raw attrs) pcommon.Map {
	m := pcommon.NewMap()
	must(m.FromRaw(raw))
	return m
}

// overflowing returns a rule that admits n series.
func overflowing(n int, change ...func(*RuleConfig)) func(*Config) {
	return func(c *Config) {
		rule := RuleConfig{Name: "r", MaxSeries: n, Exceed: ExceedConfig{OnExceed: []string{"collapse", "overflow"}}}
		for _, f := range change {
			f(&rule)
		}
		c.Rules = []RuleConfig{rule}
	}
}

// flushed returns what a flush after the given time sends.
func (r *rig) flushed(after time.Duration) pmetric.Metrics {
	r.clock = r.clock.Add(after)
	r.sink.Reset()
	r.flush(r.t.Context())
	all := pmetric.NewMetrics()
	for _, md := range r.sink.AllMetrics() {
		requireNoDuplicates(r.t, md)
		md.ResourceMetrics().MoveAndAppendTo(all.ResourceMetrics())
	}
	return all
}

// requireNoDuplicates: no series has two values, nor two ends.
func requireNoDuplicates(t testing.TB, md pmetric.Metrics) {
	seen, ids, at := map[string]bool{}, identities(md), 0
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				for i := range amount.PointCount(m) {
					id := fmt.Sprint(ids[at], " ends: ", amount.WhenAt(m, i).NoValue)
					at++
					require.False(t, seen[id], "%s twice", id)
					seen[id] = true
				}
			}
		}
	}
}

// onlyMetric returns the one metric in md.
func onlyMetric(t *testing.T, md pmetric.Metrics) pmetric.Metric {
	t.Helper()
	require.Equal(t, 1, md.MetricCount())
	return md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
}

// timed returns a point with times and an integer value.
func (r *rig) timed(p point, start, at time.Time, n int64) pmetric.Metrics {
	md := metricsOf(p)
	m := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
	s, ts := pcommon.NewTimestampFromTime(start), pcommon.NewTimestampFromTime(at)
	if start.IsZero() {
		s = 0
	}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		m.Gauge().DataPoints().At(0).SetIntValue(n)
		m.Gauge().DataPoints().At(0).SetTimestamp(ts)
	case pmetric.MetricTypeSum:
		dp := m.Sum().DataPoints().At(0)
		dp.SetIntValue(n)
		dp.SetStartTimestamp(s)
		dp.SetTimestamp(ts)
	case pmetric.MetricTypeHistogram:
		dp := m.Histogram().DataPoints().At(0)
		dp.SetCount(uint64(n))
		dp.SetSum(float64(n))
		dp.ExplicitBounds().FromRaw([]float64{1, 2})
		dp.BucketCounts().FromRaw([]uint64{uint64(n / 2), uint64(n - n/2), 0})
		dp.SetStartTimestamp(s)
		dp.SetTimestamp(ts)
	case pmetric.MetricTypeExponentialHistogram:
		dp := m.ExponentialHistogram().DataPoints().At(0)
		dp.SetCount(uint64(n))
		dp.SetSum(float64(n))
		dp.SetScale(int32(n % 5))
		dp.Positive().SetOffset(int32(n % 40))
		dp.Positive().BucketCounts().FromRaw([]uint64{uint64(n)})
		dp.SetStartTimestamp(s)
		dp.SetTimestamp(ts)
	default:
		dp := m.Summary().DataPoints().At(0)
		dp.SetCount(uint64(n))
		dp.SetSum(float64(n))
		dp.SetStartTimestamp(s)
		dp.SetTimestamp(ts)
	}
	return md
}

// reading returns the value of a point (its count, for histograms) and its start.
func reading(m pmetric.Metric, i int) (int64, pcommon.Timestamp) {
	v, w := amount.ValueAt(m, i), amount.WhenAt(m, i)
	if m.Type() == pmetric.MetricTypeSum || m.Type() == pmetric.MetricTypeGauge {
		return int64(v.Number()), w.Start
	}
	return int64(v.Count), w.Start
}

// everybody returns all members.
func everybody(o *overflow.Overflow) map[uint64]*overflow.Member {
	all := map[uint64]*overflow.Member{}
	for i := range o.Shards {
		maps.Copy(all, o.Shards[i].Members)
	}
	return all
}

// addTo calls Stage and Commit.
func addTo(o *overflow.Overflow, fp uint64, a overflow.Arrival, epoch uint32, build func() *overflow.Output) amount.Loss {
	var s overflow.Staged
	if lost := o.Stage(&s, fp, &a, build); lost != amount.LossNone {
		return lost
	}
	var lost [amount.Losses]int64
	o.Commit(&overflow.Settlement{Staged: &s, Epoch: epoch, Now: time.Unix(a.Now/1e9, 0), Placed: func(uint64) bool { return false }, Lost: &lost})
	for l := range lost {
		if lost[l] > 0 {
			return amount.Loss(l)
		}
	}
	return amount.LossNone
}
