// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver"
)

// clock is a slow pipeline that expects the times of each resource in ascending order.
type clock struct {
	takes func()

	mu        sync.Mutex
	last      map[int64]int64
	backwards int
	taken     int
}

func (*clock) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (c *clock) ConsumeTraces(_ context.Context, td ptrace.Traces) error {
	c.takes()
	rs := td.ResourceSpans().At(0)
	resource, _ := rs.Resource().Attributes().Get("resource")
	at := int64(rs.ScopeSpans().At(0).Spans().At(0).StartTimestamp())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		c.last = map[int64]int64{}
	}
	c.taken++
	if at < c.last[resource.Int()] {
		c.backwards++
	}
	c.last[resource.Int()] = max(at, c.last[resource.Int()])
	return nil
}

func (c *clock) listen(tb testing.TB, transport string) (addr string) {
	addr = freePort(tb)
	r := newTracesReceiver(tb, otlpstreamreceiver.NewFactory(), transport, addr, c)
	require.NoError(tb, r.Start(context.Background(), componenttest.NewNopHost()))
	tb.Cleanup(func() { require.NoError(tb, r.Shutdown(context.Background())) })
	return addr
}

func at(resource, moment int) ptrace.Traces {
	td := spans("x", 100)
	rs := td.ResourceSpans().At(0)
	rs.Resource().Attributes().PutInt("resource", int64(resource))
	rs.ScopeSpans().At(0).Spans().At(0).SetStartTimestamp(pcommon.Timestamp(1 + moment))
	return td
}

func ordered(cfg *otlpstreamexporter.Config) {
	cfg.Ordered, cfg.Streams = true, 4
	cfg.Queue.Get().BlockOnOverflow = true
}

func unordered(cfg *otlpstreamexporter.Config) { ordered(cfg); cfg.Ordered = false }

func TestTimeGoesForwardForEachResource(t *testing.T) {
	const n, resources = 1000, 7
	sometimes := func() { time.Sleep(time.Duration(rand.IntN(int(time.Millisecond)))) }
	bothTransports(t, func(t *testing.T, transport string) {
		for name, change := range map[string]func(*otlpstreamexporter.Config){
			"steady":                           func(*otlpstreamexporter.Config) {},
			"through streams that come and go": func(cfg *otlpstreamexporter.Config) { cfg.Rebalance.Requests = 20 },
		} {
			t.Run(name, func(t *testing.T) {
				to := &clock{takes: sometimes}
				e := newTestExporter(t, transport, to.listen(t, transport), ordered, change)
				for i := range n {
					require.NoError(t, e.ConsumeTraces(t.Context(), at(i%resources, i)))
				}
				require.Equal(t, int64(100*n), e.settled().Acked)
				require.Zero(t, to.backwards)
				require.Equal(t, n, to.taken)
			})
		}
	})
}

// A server that does not keep order gets one request at a time.
func TestTimeGoesForwardWithoutStreams(t *testing.T) {
	const n = 100
	to := &clock{takes: func() {}}
	addr := freePort(t)
	r := newTracesReceiver(t, otlpreceiver.NewFactory(), transportGRPC, addr, to)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(t, r.Shutdown(context.Background())) }()
	e := newTestExporter(t, transportGRPC, addr, ordered)
	for i := range n {
		require.NoError(t, e.ConsumeTraces(t.Context(), at(0, i)))
	}
	require.Equal(t, int64(100*n), e.settled().Acked)
	require.Zero(t, to.backwards)
}

// BenchmarkOrder measures the cost of order: a batch of 100 spans through a pipeline that takes no time, and through
// one that waits for a millisecond.
func BenchmarkOrder(b *testing.B) {
	for _, takes := range []time.Duration{0, time.Millisecond} {
		for _, c := range []struct {
			name      string
			change    func(*otlpstreamexporter.Config)
			resources int
		}{{"none", unordered, 1}, {"ordered", ordered, 1}, {"ordered", ordered, 50}} {
			b.Run(fmt.Sprintf("takes=%v/order=%s/resources=%d", takes, c.name, c.resources), func(b *testing.B) {
				to := &clock{takes: func() { time.Sleep(takes) }}
				e := newTestExporter(b, transportGRPC, to.listen(b, transportGRPC), c.change)
				b.ResetTimer()
				for i := range b.N { // until the last response, which b.Loop would not include
					require.NoError(b, e.ConsumeTraces(context.Background(), at(i%c.resources, i)))
				}
				e.settled()
				b.StopTimer()
				require.Equal(b, b.N, to.taken)
				b.ReportMetric(float64(to.backwards)/float64(b.N), "backwards/batch")
			})
		}
	}
}
