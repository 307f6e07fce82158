// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// moody handles each request at random: it acknowledges it now, later, twice or never, refuses it permanently or for
// now, asks for a pause, or breaks the stream.
func moody(p *peer) error {
	for {
		r, err := p.recv()
		if err != nil {
			return eof(err)
		}
		switch n := rand.IntN(1000); {
		case n < 3:
			return status.Error(codes.Unavailable, "gone")
		case n < 5:
			return otlpstream.Busy("busy", time.Duration(rand.IntN(3))*time.Millisecond).Err()
		case n < 6:
			return status.Error(codes.InvalidArgument, "a strange fault")
		case n < 8:
			_ = p.send(otlpstream.Response{Drain: true})
			p.ack(r.id)
		case n < 100:
			_ = p.send(otlpstream.Response{ID: r.id, Code: otlpstream.FailedRetryable})
		case n < 150:
			_ = p.send(otlpstream.Response{ID: r.id, Code: otlpstream.FailedNoneRetryable})
		case n < 200:
			p.ack(r.id)
			p.ack(r.id)
		case n < 210: // never
		case n < 300:
			go p.ack(r.id)
		default:
			p.ack(r.id)
		}
	}
}

// page reads all metrics at once, like a scrape, and returns the difference between received items and their results,
// by destination.
func page(t *testing.T, tel *componenttest.Telemetry) (difference map[string]int64) {
	var all metricdata.ResourceMetrics
	require.NoError(t, tel.Reader.Collect(context.Background(), &all))
	difference = map[string]int64{}
	add := func(points []metricdata.DataPoint[int64], sign int64) {
		for _, p := range points {
			difference[valueOf(p, "destination")] += sign * p.Value
		}
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch strings.TrimPrefix(m.Name, "otelcol_exporter_otlpstream_") {
			case "received_items":
				add(m.Data.(metricdata.Sum[int64]).DataPoints, 1)
			case "acked_items", "dropped_items":
				add(m.Data.(metricdata.Sum[int64]).DataPoints, -1)
			case "queued_items", "pending_items":
				add(m.Data.(metricdata.Gauge[int64]).DataPoints, -1)
			}
		}
	}
	return difference
}

func TestAccountsAddUpAtAnyMomentUnderRandomFaults(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		tiny := otlpstream.Limits{MaxMessage: 200}.Headers()
		a, b, c := run(t, &testServer{stream: moody}, kind), run(t, &testServer{stream: moody, header: tiny}, kind), run(t, &testServer{
			unary: func(context.Context, string) error {
				switch n := rand.IntN(10); n {
				case 0:
					return status.Error(codes.Unavailable, "gone")
				case 1:
					return status.Error(codes.InvalidArgument, "no")
				}
				return nil
			},
		}, kind)
		flaky := newProxy(t, a.addr, func(p *proxy) { p.cutAfter = func() int64 { return 1 + rand.Int64N(20_000) } })
		e, tel := traced(t, testConfig(kind, "", several(a.addr, b.addr, c.addr, flaky.addr), func(cfg *Config) {
			cfg.Streams = 2
			cfg.AckTimeout = 2 * time.Second
			cfg.Rebalance.Requests = 100
			cfg.Shutdown.Timeout = 200 * time.Millisecond
			cfg.Queue.Get().QueueSize = 100
		}))
		var producers sync.WaitGroup
		var taken atomic.Int64
		for range 4 {
			producers.Go(func() {
				for i := range 150 {
					if e.ConsumeTraces(context.Background(), spans(batch(i), 1+i%20)) == nil {
						taken.Add(int64(1 + i%20))
					}
				}
			})
		}
		// The times: while data is added, while it is sent, while everything shuts down.
		over := make(chan struct{})
		var watching sync.WaitGroup
		watching.Go(func() {
			for {
				for _, d := range e.dests {
					balanced(t, d)
				}
				select {
				case <-over:
					return
				case <-time.After(time.Millisecond):
				}
			}
		})
		pages := 0
		scraped := make(chan struct{})
		var scraping sync.WaitGroup
		scraping.Go(func() {
			for ; ; pages++ {
				select {
				case <-scraped:
					return
				default:
					assert.Equal(t, map[string]int64{"a": 0, "b": 0, "c": 0, "d": 0}, page(t, tel), "the metrics of one page")
				}
			}
		})
		producers.Wait()
		for _, d := range e.dests {
			eventually(t, func() bool {
				if e.ConsumeTraces(context.Background(), spans("more", 1)) == nil {
					taken.Add(1) // in case all others failed
				}
				return d.account.Balance().Acked > 0
			}, "something is delivered to "+d.name)
		}
		close(scraped) // the metrics end with the exporter
		scraping.Wait()
		require.Positive(t, pages)
		require.NoError(t, e.Shutdown(context.Background()))
		close(over)
		watching.Wait()
		for _, d := range e.dests {
			b := balanced(t, d)
			require.Equal(t, taken.Load(), b.Received)
			require.Zero(t, b.Queued+b.Pending+b.Requests+b.Bytes, "all has found its end")
		}
	})
}
