// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"context"
	"errors"
	"fmt"
	rand "math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/overflow"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

type refusing struct {
	consumer.Metrics

	err  error
	seen []string
}

func (n *refusing) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	n.seen = append(n.seen, client.FromContext(ctx).Metadata.Get("tenant")...)
	if n.err != nil {
		return n.err
	}
	return n.Metrics.ConsumeMetrics(ctx, md)
}

func TestDeltasAreKeptWhenTheyCannotBeSent(t *testing.T) {
	r := newRig(t, overflowing(1))
	next := &refusing{Metrics: r.sink, err: errors.New("busy")}
	r.next = next
	r.send(point{name: "other"})
	begin := r.clock
	s := aSeries(1)
	s.kind = delta
	send := func() { r.consume(r.timed(s, r.clock, r.clock, 5)) }
	send()
	require.Zero(t, r.flushed(time.Minute).DataPointCount())
	send()
	next.err = nil
	dp := onlyMetric(t, r.flushed(time.Minute)).Sum().DataPoints().At(0)
	require.Equal(t, int64(10), dp.IntValue())
	require.Equal(t, begin.UnixNano(), dp.StartTimestamp().AsTime().UnixNano())
	send()
	next.err = consumererror.NewPermanent(errors.New("never"))
	require.Zero(t, r.flushed(time.Minute).DataPointCount())
	next.err = nil
	require.Zero(t, r.flushed(time.Minute).DataPointCount(), "what is refused for good is counted, not repeated")
	require.Equal(t, int64(1), r.gauge("overflow_failed_points", ""))
}

func TestOverflowOfEachTenantIsSentAsTheirs(t *testing.T) {
	r := newRig(t, func(c *Config) {
		overflowing(1, func(rule *RuleConfig) { rule.GroupBy = []string{"tenant"} })(c)
		c.Tenant.From = []string{"metadata:tenant"}
	})
	next := &refusing{Metrics: r.sink}
	r.next = next
	for _, who := range []string{"a", "b"} {
		ctx := ident.Tenant{Name: who, Key: "tenant"}.Context(t.Context())
		for i := range 3 {
			s := aSeries(i)
			s.kind = delta
			_, _ = r.process(ctx, r.timed(s, r.clock, r.clock, 1))
		}
	}
	require.Equal(t, 2, r.flushed(time.Second).DataPointCount())
	require.Equal(t, []string{"a", "b"}, next.seen)
}

// Gauges that could not be sent are sent with the next ones, merged as the rule says.
func TestGaugesAreKeptWhenTheyCannotBeSent(t *testing.T) {
	for mode, want := range map[string]float64{"last": 4, "min": 2, policy.NameMax: 9, policy.NameMean: 5} {
		r := newRig(t, overflowing(1, func(rule *RuleConfig) { rule.Exceed.Gauge = mode }))
		next := &refusing{Metrics: r.sink, err: errBusy}
		r.next = next
		r.send(point{name: "other"})
		send := func(values ...float64) {
			for i, v := range values {
				s := aSeries(i)
				s.kind, s.value = gauge, v
				r.send(s)
			}
		}
		said := func() float64 { return onlyMetric(t, r.flushed(time.Minute)).Gauge().DataPoints().At(0).DoubleValue() }
		send(9, 5)
		require.Zero(t, r.flushed(time.Minute).DataPointCount())
		require.Zero(t, r.flushed(time.Minute).DataPointCount())
		send(2, 4)
		require.Zero(t, r.flushed(time.Minute).DataPointCount())
		next.err = nil
		require.InDelta(t, want, said(), 0, mode)
		require.Zero(t, r.flushed(time.Minute).DataPointCount())
		next.err = errBusy
		send(7)
		require.Zero(t, r.flushed(time.Minute).DataPointCount())
		next.err = nil
		require.InDelta(t, 7, said(), 0, mode)
		require.Equal(t, 0, sumOfFailed(r))
	}
}

func sumOfFailed(r *rig) int {
	got, err := r.telemetry.GetMetric("otelcol_processor_cardinality_overflow_failed_points")
	if err != nil {
		return 0
	}
	return int(sumOf(got, nil))
}

// choosy refuses about every second message.
type choosy struct {
	consumer.Metrics

	random *rand.Rand
	bytes  []int
}

func (n *choosy) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	var sizer pmetric.ProtoMarshaler
	n.bytes = append(n.bytes, sizer.MetricsSize(md))
	if n.random.IntN(2) == 0 {
		return errBusy
	}
	return n.Metrics.ConsumeMetrics(ctx, md)
}

// A flush is split into messages of an acceptable size, each of which may be refused separately.
func TestLargeFlushesGoInPieces(t *testing.T) {
	racetest.Sequential(t)
	r := newRig(t, overflowing(1, func(rule *RuleConfig) {
		rule.Exceed.KeepLabels = []string{"route", "pod"}
		rule.Exceed.Gauge = "last"
	}))
	r.send(point{name: "other"})
	const series = 4500
	for i := range series {
		p := point{name: "m", kind: []kind{delta, gauge, histogram}[i%3], attrs: attrs{"route": fmt.Sprint(strings.Repeat("/customers", 60), i)}}
		if i%2 == 0 {
			p.resource = attrs{"pod": strings.Repeat("p", 50) + strconv.Itoa(i)}
		}
		r.consume(r.timed(p, r.clock.Add(time.Millisecond), r.clock.Add(time.Second), 1))
	}
	next := &choosy{Metrics: r.sink, random: rand.New(rand.NewPCG(1, 2))}
	r.next = next
	said := map[kind]map[string]int64{delta: {}, gauge: {}, histogram: {}}
	for range 12 {
		md := r.flushed(time.Minute)
		ids, at := identities(md), 0
		for _, rm := range md.ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				for range amount.PointCount(m) {
					said[kindIn(m)][ids[at]]++
					at++
				}
			}
		}
	}
	for k, times := range said {
		require.Len(t, times, series/3, "all were sent")
		for id, n := range times {
			require.Equal(t, k == histogram, n > 1, "%s: %d times", id, n)
		}
	}
	for _, n := range next.bytes {
		require.LessOrEqual(t, n, overflow.ShipmentBytes+1000)
	}
	require.Greater(t, slices.Max(next.bytes), overflow.ShipmentBytes/2)
}
