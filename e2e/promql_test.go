// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/grpc/metadata"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/history"
	"github.com/godwit-otel/godwit/e2e/otlpserver"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// answered is a gateway with limits, and a history of its inputs and outputs as Prometheus would store them. Their
// metric names begin with `raw_` and `made_`.
type answered struct {
	t           *testing.T
	gateway     *collector
	client      pmetricotlp.GRPCClient
	destination *otlpserver.Server
	seen        int // requests of the output that are recorded
	past        *history.History
	now         time.Time
}

const answeredConfig = `
receivers: {otlpstream: {protocols: {grpc: {endpoint: %q, include_metadata: true}}}}
processors: {cardinality: %s}
exporters: {otlp_grpc: {endpoint: %q, tls: {insecure: true}, sending_queue: {enabled: false}}}
service: {pipelines: {metrics: {receivers: [otlpstream], processors: [cardinality], exporters: [otlp_grpc]}}}
`

func startAnswered(t *testing.T, limits string) *answered {
	t.Helper()
	addr, destination := freeport.Addr(t), otlpserver.New(t, otlpserver.Options{})
	g := startDistribution(t, "godwit-gateway", fmt.Sprintf(answeredConfig, addr, limits, destination.GRPCAddr()))
	return &answered{
		t: t, gateway: g, client: pmetricotlp.NewGRPCClient(dial(t, addr)), destination: destination, past: history.New(t), now: time.Now(),
	}
}

// tick returns the timestamp of the next points: no two are equal.
func (a *answered) tick() time.Time {
	a.now = a.now.Add(time.Millisecond)
	if now := time.Now().Truncate(time.Millisecond); now.After(a.now) {
		a.now = now
	}
	return a.now
}

// send sends points, for a tenant unless it is empty.
func (a *answered) send(md pmetric.Metrics, tenant string) {
	a.t.Helper()
	ctx := a.t.Context()
	if tenant != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "x-scope-orgid", tenant)
	}
	_, err := a.client.Export(ctx, pmetricotlp.NewExportRequestFromMetrics(md))
	require.NoError(a.t, err)
}

// record stores inputs or outputs in the history.
func (a *answered) record(prefix string, md pmetric.Metrics) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				counter := m.Type() == pmetric.MetricTypeSum
				for _, p := range pointsOf(m).All() {
					a.recordPoint(seriesOf(prefix+m.Name(), rm.Resource(), p), p, counter)
				}
			}
		}
	}
}

func pointsOf(m pmetric.Metric) pmetric.NumberDataPointSlice {
	if m.Type() == pmetric.MetricTypeSum {
		return m.Sum().DataPoints()
	}
	return m.Gauge().DataPoints()
}

func (a *answered) recordPoint(series labels.Labels, p pmetric.NumberDataPoint, counter bool) {
	v := p.DoubleValue()
	if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
		v = float64(p.IntValue())
	}
	switch at := p.Timestamp().AsTime(); {
	case p.Flags().NoRecordedValue():
		a.past.PutEnd(series, at)
	case counter:
		a.past.PutCounter(series, p.StartTimestamp().AsTime(), at, v)
	default:
		a.past.Put(series, at, v)
	}
}

func seriesOf(name string, resource pcommon.Resource, p pmetric.NumberDataPoint) labels.Labels {
	b := labels.NewScratchBuilder(4)
	b.Add("__name__", name)
	for _, attributes := range []pcommon.Map{resource.Attributes(), p.Attributes()} {
		for key, v := range attributes.All() {
			b.Add(strings.ReplaceAll(key, ".", "_"), v.AsString())
		}
	}
	b.Sort()
	return b.Labels()
}

// take records the output since its last call.
func (a *answered) take() {
	all := a.destination.Metrics()
	for _, md := range all[a.seen:] {
		a.record("made_", md)
	}
	a.seen = len(all)
}

// agree waits until two queries, one of the inputs and one of the outputs, have the same result by a label.
func (a *answered) agree(raw, made, by string) {
	a.t.Helper()
	wait.Until(a.t, delivery, func() (bool, string) {
		a.take()
		a.past.MoveTo(time.Now().Add(time.Second)) // later than all of it
		want, got := map[string]float64{}, map[string]float64{}
		for _, s := range a.past.Query(raw) {
			want[s.Metric.Get(by)] = s.F
		}
		for _, s := range a.past.Query(made) {
			got[s.Metric.Get(by)] = s.F
		}
		for key, v := range want {
			if d := got[key] - v; d > 1e-6 || d < -1e-6 {
				return false, fmt.Sprintf("%s of %s is %v, and %s is %v", raw, key, v, made, got[key])
			}
		}
		for key, v := range got {
			if _, ok := want[key]; !ok && v != 0 {
				return false, fmt.Sprintf("%s of %s is %v, and nothing came in", made, key, v)
			}
		}
		return len(want) > 0, "nothing came in"
	})
}

// flock is the random life of the inputs of one aggregate.
type flock struct {
	name   string
	random *rand.Rand
	birds  []*goose
	rings  int
}

// goose is one input: a counter and a gauge.
type goose struct {
	ring  string
	since time.Time
	honks int64
	last  time.Time // timestamp of its points
	ended bool
}

// live acts on some of the birds and returns their points: those that count and those that come too late.
func (f *flock) live(a *answered, seen map[string]int) (points, late []goosePoint) {
	if len(f.birds) < 2 || f.random.IntN(4) == 0 {
		now := a.tick()
		f.rings++
		f.birds = append(f.birds, &goose{ring: strconv.Itoa(f.rings), since: now, last: now})
	}
	for _, b := range f.birds {
		switch what := f.random.IntN(12); {
		case what == 0 && !b.ended:
			seen["end"]++
			b.ended = true
			points = append(points, b.at(a.tick(), true))
			continue
		case what < 3: // no point this time
			seen["silence"]++
			continue
		case what == 3:
			seen["restart"]++
			b.since, b.honks = a.tick(), 0
		case what == 4 && b.honks > 1:
			seen["reset"]++
			b.honks, b.ended = f.random.Int64N(b.honks-1), false // a lower value without a new start
			points = append(points, b.at(a.tick(), false))
			continue
		case what == 5 && !b.ended && b.last.After(b.since.Add(2*time.Millisecond)):
			seen["late"]++
			late = append(late, goosePoint{b, b.since.Add(time.Millisecond), 1, false})
		}
		if b.ended {
			seen["return"]++
			b.ended = false
		}
		b.honks += f.random.Int64N(1000)
		points = append(points, b.at(a.tick(), false))
	}
	return points, late
}

type goosePoint struct {
	*goose

	when  time.Time
	value int64
	end   bool
}

func (b *goose) at(now time.Time, end bool) goosePoint {
	b.last = now
	return goosePoint{b, now, b.honks, end}
}

func (f *flock) metrics(points []goosePoint) pmetric.Metrics {
	md := pmetric.NewMetrics()
	all := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	counters, gauges := all.AppendEmpty(), all.AppendEmpty()
	counters.SetName("honks")
	sum := counters.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	gauges.SetName("height")
	heights := gauges.SetEmptyGauge().DataPoints()
	for _, b := range points {
		for _, p := range []pmetric.NumberDataPoint{sum.DataPoints().AppendEmpty(), heights.AppendEmpty()} {
			p.Attributes().PutStr("flock", f.name)
			p.Attributes().PutStr("ring", b.ring)
			p.SetTimestamp(pcommon.NewTimestampFromTime(b.when))
			p.SetIntValue(b.value)
			p.SetFlags(p.Flags().WithNoRecordedValue(b.end))
		}
		sum.DataPoints().At(sum.DataPoints().Len() - 1).SetStartTimestamp(pcommon.NewTimestampFromTime(b.since))
	}
	return md
}

// Over random lives, an aggregate equals `sum by` over its inputs, evaluated by Prometheus' engine. Counters end, are
// silent, come back, and are reset with and without a new start; gauges are included.
func TestAggregatesAreWhatPromQLSays(t *testing.T) {
	t.Parallel()
	const rounds, flocks = 8, 40
	a := startAnswered(t, "{rules: [{name: flocks, aggregate: {by: [flock], interval: 1s}}]}")
	var all []*flock
	for i := range flocks {
		all = append(all, &flock{name: strconv.Itoa(i), random: rand.New(rand.NewPCG(uint64(i), 47))})
	}
	seen := map[string]int{}
	for range rounds {
		for _, f := range all {
			points, late := f.live(a, seen)
			md := f.metrics(points)
			a.record("raw_", md)
			f.metrics(late).ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
			a.send(md, "")
		}
		a.agree(`sum by (flock) (increase(raw_honks[1h] anchored))`, `increase(made_honks[1h] anchored)`, "flock")
		a.agree(`sum by (flock) (raw_height)`, `made_height`, "flock")
	}
	for _, what := range []string{"end", "silence", "restart", "reset", "late", "return"} {
		assert.Positive(t, seen[what], what)
	}
	assert.Zero(t, a.gateway.Stop(syscall.SIGTERM, drainTime))
}

// pods returns a counter for each pod of a deployment.
func (a *answered) pods(names []string, began, now time.Time, value int64, end bool) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for _, name := range names {
		rm := md.ResourceMetrics().AppendEmpty()
		rm.Resource().Attributes().PutStr("pod", name)
		m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName("requests")
		sum := m.SetEmptySum()
		sum.SetIsMonotonic(true)
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		p := sum.DataPoints().AppendEmpty()
		p.SetStartTimestamp(pcommon.NewTimestampFromTime(began))
		p.SetTimestamp(pcommon.NewTimestampFromTime(now))
		p.SetIntValue(value)
		p.SetFlags(p.Flags().WithNoRecordedValue(end))
	}
	return md
}

func (a *answered) say(md pmetric.Metrics) {
	a.t.Helper()
	a.record("raw_", md)
	a.send(md, "")
}

// In a rolling update at the limit, each new pod gets the place of an old one, and each request is counted exactly
// once.
func TestRollingUpdateAtTheLimit(t *testing.T) {
	t.Parallel()
	const replicas = 20
	a := startAnswered(t, fmt.Sprintf("{overflow: {interval: 1s}, rules: [{name: pods, match: {metric: requests}, max_series: %d, on_exceed: [overflow]}]}", replicas))
	names := func(version string) (all []string) {
		for i := range replicas {
			all = append(all, fmt.Sprintf("web-%s-%d", version, i))
		}
		return all
	}
	total := `sum(increase(raw_requests[1h] anchored))`
	same := func() {
		t.Helper()
		a.agree(total, `sum(increase(made_requests[1h] anchored))`, "")
	}
	now := a.tick()
	old, began := names("v0"), now
	a.say(a.pods(old, began, a.tick(), 10, false))
	for _, version := range []string{"v1", "v2", "v3"} {
		next := names(version)
		now = a.tick()
		for i := range next { // one after the other: the new pod starts, then the old one ends
			a.say(a.pods(next[i:i+1], now, a.tick(), 3, false))
			a.say(a.pods(old[i:i+1], began, a.tick(), 0, true))
			a.say(a.pods(next[i:i+1], now, a.tick(), 7, false))
			a.say(a.pods(next[:i+1], now, a.tick(), int64(20+i), false))
		}
		same()
		old, began = next, now
		value := int64(100)
		wait.Until(t, delivery, func() (bool, string) { // each as a series of its own
			value++
			a.say(a.pods(old, began, a.tick(), value, false))
			a.take()
			a.past.MoveTo(time.Now().Add(time.Second))
			n := len(a.past.Query(fmt.Sprintf(`made_requests{pod=~"web-%s-.*"}`, version)))
			return n == replicas, fmt.Sprintf("%d of the pods of %s have a place", n, version)
		})
		same()
	}
	assert.Zero(t, a.gateway.Stop(syscall.SIGTERM, drainTime))
}

// One tenant's flood goes into its overflow series and both tenants' sums stay right. Each series of the other tenant
// arrives unchanged.
func TestTenantsFloodIsItsOwn(t *testing.T) {
	t.Parallel()
	const places, flood = 10, 200
	a := startAnswered(t, fmt.Sprintf("{overflow: {interval: 1s}, tenant: {from: [\"metadata:x-scope-orgid\", \"resource:tenant\"]}, "+
		"overrides: {\"*\": {max_series: %d}}, defaults: {on_exceed: [overflow]}}", places))
	began := a.tick()
	tell := func(tenant string, n int, value int64) {
		t.Helper()
		var names []string
		for i := range n {
			names = append(names, strconv.Itoa(i))
		}
		md := a.pods(names, began, a.tick(), value, false)
		for _, rm := range md.ResourceMetrics().All() {
			rm.Resource().Attributes().PutStr("tenant", tenant)
		}
		a.record("raw_", md)
		a.send(md, tenant)
	}
	for round := range int64(3) {
		tell("loud", flood, 10*(round+1))
		tell("quiet", places, 7*(round+1))
		a.agree(`sum by (tenant) (increase(raw_requests[1h] anchored))`, `sum by (tenant) (increase(made_requests[1h] anchored))`, "tenant")
	}
	a.agree(`count by (tenant) (raw_requests{tenant="quiet"})`, `count by (tenant) (made_requests{tenant="quiet", otel_metric_overflow=""})`, "tenant")
	assert.Len(t, a.past.Query(`made_requests{tenant="loud", otel_metric_overflow=""}`), places)
	assert.Len(t, a.past.Query(`made_requests{tenant="loud", otel_metric_overflow="true"}`), 1)
	assert.Empty(t, a.past.Query(`made_requests{tenant="quiet", otel_metric_overflow="true"}`))
	assert.Zero(t, a.gateway.Stop(syscall.SIGTERM, drainTime))
}
