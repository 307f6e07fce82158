// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/insight"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// moody handles each message as configured.
type moody struct {
	consumer.Metrics

	panics any
	err    error
	calls  int
}

func (n *moody) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	n.calls++
	switch {
	case n.panics != nil:
		panic(n.panics)
	case n.err != nil:
		return n.err
	default:
		return n.Metrics.ConsumeMetrics(ctx, md)
	}
}

func (r *rig) refused(reason string) int64 {
	got, err := r.telemetry.GetMetric("otelcol_processor_cardinality_overflow_refused_points")
	if err != nil {
		return 0
	}
	return sumOf(got, attrs{"reason": reason})
}

// watched makes the logs of the processor available to the test.
func (r *rig) watched() *observer.ObservedLogs {
	core, logs := observer.New(zap.InfoLevel)
	r.Logger = zap.New(core)
	return logs
}

// A next consumer that panics in a flush loses nothing: the values are sent with the next flush, once, for all kinds.
func TestPanicsOfTheNextConsumerInAFlushAreContained(t *testing.T) {
	for _, k := range []kind{cumulative, delta, upDown, histogram, exponential, summary, gauge} {
		r := newRig(t, overflowing(1, func(rule *RuleConfig) { rule.Exceed.Gauge = policy.NameLast }))
		logs := r.watched()
		next := &moody{Metrics: r.sink, panics: errors.New("defect")}
		r.next = next
		r.send(point{name: "other"})
		start := r.clock
		send := func(n int64) {
			r.clock = r.clock.Add(time.Second)
			s := aSeries(1)
			s.kind = k
			r.consume(r.timed(s, start, r.clock, n))
		}
		send(3)
		for range 3 {
			require.Zero(t, r.flushed(time.Second).DataPointCount())
		}
		send(4)
		next.panics = "another"
		require.Zero(t, r.flushed(time.Second).DataPointCount())
		next.panics = nil
		n, _ := reading(onlyMetric(t, r.flushed(time.Second)), 0)
		switch k {
		case delta, exponential:
			require.Equal(t, int64(7), n, "kind %d", k)
		default:
			require.Equal(t, int64(4), n, "kind %d", k)
		}
		require.Equal(t, 5, next.calls)
		require.Equal(t, int64(4), r.refused(namePanic))
		require.Zero(t, sumOfFailed(r), "nothing is lost")
		require.Equal(t, 1, logs.FilterMessageSnippet("has a defect").Len(), "once")
		require.Equal(t, 1, logs.FilterMessageSnippet("sent again").Len())
		require.Equal(t, 2, logs.Len())
	}
}

// If the message of one tenant causes a panic, those of the others are sent nevertheless.
func TestAPanicCostsOneMessageOfAFlush(t *testing.T) {
	r := newRig(t, func(c *Config) {
		overflowing(1, func(rule *RuleConfig) { rule.GroupBy = []string{"tenant"} })(c)
		c.Tenant.From = []string{"metadata:tenant"}
	})
	next, bad := &refusing{Metrics: r.sink}, "a"
	r.next, _ = consumer.NewMetrics(func(ctx context.Context, md pmetric.Metrics) error {
		if err := next.ConsumeMetrics(ctx, md); err != nil || next.seen[len(next.seen)-1] != bad {
			return err
		}
		panic(bad)
	})
	send := func() {
		for _, who := range []string{"a", "b", "c"} {
			for i := range 3 {
				s := aSeries(i)
				s.kind = cumulative
				_, _ = r.process(ident.Tenant{Name: who, Key: "tenant"}.Context(t.Context()), r.timed(s, r.clock.Add(-time.Second), r.clock, 1))
			}
		}
	}
	send()
	r.flushed(time.Second)
	require.Equal(t, []string{"a", "b", "c"}, next.seen)
	require.Equal(t, int64(2), r.Points.Made.Load())
	require.Equal(t, int64(1), r.refused(namePanic))
	send() // no lock was kept
	r.Apply(r.cfg)
	require.NotEmpty(t, insight.New(r.Gate).Overview().Overflow)
}

// The ways in which a message can fail are distinguished in counters, and logged when they change.
func TestRefusalsOfAFlushAreCountedByReason(t *testing.T) {
	r := newRig(t, overflowing(1))
	logs := r.watched()
	next := &moody{Metrics: r.sink}
	r.next = next
	r.send(point{name: "other"})
	s := aSeries(1)
	s.kind = delta
	for _, mood := range []moody{{err: errBusy}, {err: errBusy}, {panics: 1}, {panics: 2}, {err: errBusy}, {err: consumererror.NewPermanent(errBusy)}, {}, {}} {
		next.err, next.panics = mood.err, mood.panics
		r.consume(r.timed(s, r.clock, r.clock, 1))
		r.flushed(time.Second)
	}
	require.Equal(t, []int64{3, 2, 1}, []int64{r.refused("refused"), r.refused(namePanic), r.refused("permanent")})
	require.Equal(t, 1, sumOfFailed(r))
	var said []string
	for _, e := range logs.All() {
		said = append(said, e.Level.String()+" "+e.Message)
	}
	require.Equal(t, []string{
		"warn Cannot send the overflow", "error Cannot send the overflow: the next component has a defect", "info The overflow is sent again",
	}, said)
}

// The goroutines that flush and shut down survive panics of the next consumer.
func TestOwnGoroutinesSurviveTheNextConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) {
			overflowing(1)(c)
			c.Overflow.Interval = time.Second
		})
		r.Now = time.Now
		r.Overflow.Begin = 0
		next := &moody{Metrics: r.sink, panics: "defect"}
		r.next = next
		require.NoError(t, r.start(t.Context(), componenttest.NewNopHost()))
		r.send(point{name: "other"})
		s := aSeries(1)
		s.kind = delta
		send := func() { r.consume(r.timed(s, time.Now(), time.Now(), 1)) }
		for range 3 {
			send()
			time.Sleep(time.Second)
			synctest.Wait()
		}
		require.Equal(t, 3, next.calls)
		require.NoError(t, r.shutdown(t.Context()))
		require.Equal(t, 4, next.calls, "and shutdown tried once more")
	})
}
