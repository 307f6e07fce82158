// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pmetric"
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
	s := series(1)
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
		ctx := tenant{name: who, key: "tenant"}.context(t.Context())
		for i := range 3 {
			s := series(i)
			s.kind = delta
			_, _ = r.process(ctx, r.timed(s, r.clock, r.clock, 1))
		}
	}
	require.Equal(t, 2, r.flushed(time.Second).DataPointCount())
	require.Equal(t, []string{"a", "b"}, next.seen)
}
