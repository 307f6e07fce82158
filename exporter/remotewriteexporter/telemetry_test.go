// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/godwit-otel/godwit/internal/promwrite"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/metadata"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/queue"
)

// instrumented runs an exporter whose metrics and log can be read.
func instrumented(t *testing.T, endpoint string, change func(*Config)) (*remoteWrite, *componenttest.Telemetry, *observer.ObservedLogs) {
	t.Helper()
	return instrumentedOn(t, componenttest.NewNopHost(), endpoint, change)
}

func instrumentedOn(t *testing.T, host component.Host, endpoint string, change func(*Config)) (*remoteWrite, *componenttest.Telemetry, *observer.ObservedLogs) {
	t.Helper()
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	core, logs := observer.New(zap.InfoLevel)
	e := create(t, func(c *Config) {
		c.Endpoint = endpoint
		change(c)
	})
	set := exportertest.NewNopSettings(metadata.Type)
	set.ID = component.NewID(metadata.Type)
	set.TelemetrySettings = tel.NewTelemetrySettings()
	set.Logger = zap.New(core)
	e, err := newExporter(e.cfg, set, ownKeys)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), host))
	t.Cleanup(func() { require.NoError(t, e.Shutdown(context.Background())) })
	return e, tel, logs
}

// value returns the value of a metric with attributes such as `exporter=remotewrite`, or -1 if it has no such point.
func value(t *testing.T, tel *componenttest.Telemetry, name string, attributes ...string) float64 {
	t.Helper()
	m, err := tel.GetMetric(name)
	if err != nil {
		return -1
	}
	matches := func(got string) bool { return got == strings.Join(attributes, ",") }
	encoder := func(dp metricdata.DataPoint[int64]) string {
		var list []string
		require.True(t, dp.Attributes.HasValue("exporter"), name)
		for _, kv := range dp.Attributes.ToSlice() {
			if kv.Key == "exporter" { // on all of them
				require.Equal(t, "remotewrite", kv.Value.AsString())
				continue
			}
			list = append(list, string(kv.Key)+"="+kv.Value.String())
		}
		return strings.Join(list, ",")
	}
	var points []metricdata.DataPoint[int64]
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		points = data.DataPoints
	case metricdata.Gauge[int64]:
		points = data.DataPoints
	default:
		require.Fail(t, "unexpected kind", "%s is %T", name, m.Data)
	}
	for _, dp := range points {
		if matches(encoder(dp)) {
			return float64(dp.Value)
		}
	}
	return -1
}

func TestMetricsTellWhatHappens(t *testing.T) {
	d := newReceived(t, func(n int, w http.ResponseWriter, r *http.Request) bool {
		return status(1, http.StatusUnsupportedMediaType)(n, w, r) || n == 2 && status(3, http.StatusServiceUnavailable)(n, w, r) ||
			n == 4 && status(5, http.StatusConflict)(n, w, r)
	})
	e, tel, _ := instrumented(t, strings.Replace(d.URL, "http://", "http://user:secret@", 1)+"/write?token=secret", func(c *Config) { c.Queue.Size = 12345 })
	for n := range 3 {
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, n)))
		eventually(t, func() bool {
			s := e.Snapshot().Destinations[0]
			return s.Outcome.Samples+s.Outcome.Dropped["rejected"] == int64(10*(n+1)) && s.QueuedBlocks == 0
		}, "the block's fate is sealed")
	}
	destination := "destination=" + d.URL + "/write"
	f := func(want float64, name string, attributes ...string) {
		t.Helper()
		require.InDelta(t, want, value(t, tel, "otelcol_exporter_"+name, attributes...), 0, name)
	}
	f(20, "sent_metric_points")
	f(10, "send_failed_metric_points")
	f(0, "queue_size", "data_type=metrics")
	f(12345, "queue_capacity", "data_type=metrics")
	f(1, "remotewrite_requests", "code=415", destination)
	f(1, "remotewrite_requests", "code=503", destination)
	f(2, "remotewrite_requests", "code=204", destination)
	f(1, "remotewrite_retries", destination, "reason=server")
	f(1, "remotewrite_dropped_blocks", destination, "reason=rejected")
	f(10, "remotewrite_dropped_items", destination, "item=sample", "reason=rejected")
	f(1, "remotewrite_fallback", destination, "encoding=snappy", "version=2.0.0")
	f(0, "remotewrite_breaker_open", destination)
	f(0, "remotewrite_in_flight", destination)
	f(0, "remotewrite_queued_blocks", destination)
	f(1, "remotewrite_shards")
	f(10, "remotewrite_cache_series")
	f(20, "remotewrite_cache_lookups", "result=hit")
	f(10, "remotewrite_cache_lookups", "result=miss")
	require.Positive(t, value(t, tel, "otelcol_exporter_remotewrite_wire_bytes", destination))
	require.Greater(t, value(t, tel, "otelcol_exporter_remotewrite_raw_bytes", destination), 0.0)
	_, err := tel.GetMetric("otelcol_exporter_remotewrite_request_duration")
	require.NoError(t, err)
	_, err = tel.GetMetric("otelcol_exporter_remotewrite_oldest_block_age")
	require.NoError(t, err)
}

func TestPointsThatCannotBeSentAreCountedAndLoggedOnce(t *testing.T) {
	d := newReceived(t, nil)
	e, tel, logs := instrumented(t, d.URL, func(*Config) {})
	for n := range 3 {
		md := gauges(10, n)
		sum := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().AppendEmpty()
		sum.SetName("steps")
		sum.SetEmptySum().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		sum.Sum().DataPoints().AppendEmpty().SetTimestamp(1e18)
		require.NoError(t, e.ConsumeMetrics(t.Context(), md))
	}
	eventually(t, func() bool { return d.samples() == 30 }, "what can be sent arrives")
	require.InDelta(t, 3, value(t, tel, "otelcol_exporter_remotewrite_untranslated_points", "reason=temporality"), 0)
	require.Equal(t, 1, logs.Len())
	require.Equal(t, "steps", logs.All()[0].ContextMap()["metric"])
}

func TestLoadIsMeasured(t *testing.T) {
	release := make(chan struct{})
	d := newReceived(t, func(int, http.ResponseWriter, *http.Request) bool {
		<-release
		return false
	})
	e := create(t, func(c *Config) { c.Endpoint = d.URL })
	e.intake.suitable = e.intake.shards.count // decided by the test
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	for n := range 3 {
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(1, n)))
		eventually(t, func() bool { return e.Snapshot().Destinations[0].QueuedBlocks == n+1 }, "the block is queued")
	}
	loads := e.intake.loads(time.Second)
	close(release)
	require.Equal(t, []load{{waiting: 2}}, loads)
	require.NoError(t, e.Shutdown(t.Context()))
	l := e.intake.loads(time.Second)[0]
	require.Positive(t, l.busy)
	require.InDelta(t, l.busy/2, l.latency, 1e-9, "there were two in a second: what waited went together")
	require.Zero(t, l.waiting)
	require.Equal(t, load{latency: l.latency}, e.intake.loads(time.Second)[0], "each look begins anew")
}

func TestFailuresDoNotTellHowFarADestinationIs(t *testing.T) {
	var b busy
	f := func(wantBusy, wantLatency float64) {
		t.Helper()
		busy, latency := b.take(time.Second)
		require.InDelta(t, wantBusy, busy, 1e-9)
		require.InDelta(t, wantLatency, latency, 1e-9)
	}
	b.add(30*time.Second, false) // no response
	f(30, 0)
	b.add(time.Second, true)
	b.add(time.Millisecond, false) // connection refused
	f(1.001, 1)
	b.add(time.Millisecond, false)
	f(0.001, 1)
}

func TestRefusedPointsAreCounted(t *testing.T) {
	d := newReceived(t, status(1<<30, http.StatusServiceUnavailable))
	e, tel, _ := instrumented(t, d.URL, func(c *Config) {
		c.Queue.Size, c.Queue.OnFull, c.ShutdownTimeout = 1, onFullDropNewest, 1
	})
	require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 0)))
	eventually(t, func() bool { return e.Snapshot().Destinations[0].QueuedBlocks == 1 }, "the queue is full")
	require.ErrorIs(t, e.ConsumeMetrics(t.Context(), gauges(7, 1)), errQueueFull)
	require.InDelta(t, 7, value(t, tel, "otelcol_exporter_enqueue_failed_metric_points"), 0)
}

func TestLogTellsChangesOnly(t *testing.T) {
	d := newReceived(t, func(n int, w http.ResponseWriter, r *http.Request) bool {
		switch {
		case n < 3: // until the last format
			return status(3, http.StatusUnsupportedMediaType)(n, w, r)
		case n > 10 && n <= 20:
			http.Error(w, "the nest is empty", http.StatusServiceUnavailable)
			return true
		case n > 30 && n <= 35:
			http.Error(w, "no such bird", http.StatusUnprocessableEntity)
			return true
		}
		return false
	})
	e, _, logs := instrumented(t, d.URL, func(*Config) {})
	for n := range 40 {
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(1, n)))
		eventually(t, func() bool { return e.Snapshot().Destinations[0].QueuedBlocks == 0 && len(d.headers()) > n }, "the block's fate is sealed")
	}
	var got []string
	for _, entry := range logs.All() {
		got = append(got, entry.Message)
		require.Equal(t, d.URL, entry.ContextMap()["destination"])
	}
	require.Equal(t, []string{
		"format of the destination changed",
		"destination accepts no data; it stays in the queue and is retried",
		"destination accepts data again",
		"lost data of a block; more of the same is counted, not logged",
	}, got)
	require.Contains(t, logs.All()[1].ContextMap()["answer"], "the nest is empty")
	require.Contains(t, logs.All()[3].ContextMap()["answer"], "no such bird")
}

func TestLossesOfTheQueueAreLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.WarnLevel)
		set := exportertest.NewNopSettings(metadata.Type)
		set.Logger = zap.New(core)
		tel, err := newTelemetry(set)
		require.NoError(t, err)
		defer tel.shutdown()
		tel.addDestination("http://user:secret@one/write")
		tel.addDestination("http://two/write")
		lines := func() (said []string) {
			for _, l := range logs.TakeAll() {
				fields := l.ContextMap()
				said = append(said, fmt.Sprint(fields["reason"], " ", fields["destination"], " ", fields["samples"]))
			}
			return said
		}
		for range 3 {
			tel.queueDropped(0, queue.ReasonFull, block.Header{Version: promwrite.V2, Samples: 7})
		}
		tel.queueDropped(1, queue.ReasonFull, block.Header{Version: promwrite.V2, Samples: 7})
		tel.queueDropped(0, queue.ReasonAge, block.Header{Version: promwrite.V2, Samples: 8})
		tel.queueDropped(0, queue.ReasonCorrupt, block.Header{})
		require.Equal(t, []string{"queue_full http://one/write 7", "queue_full http://two/write 7", "max_age http://one/write 8", "corrupt http://one/write <nil>"}, lines())
		time.Sleep(time.Minute - 1)
		tel.queueDropped(0, queue.ReasonFull, block.Header{Version: promwrite.V2, Samples: 7})
		require.Empty(t, lines())
		time.Sleep(time.Nanosecond)
		tel.queueDropped(0, queue.ReasonFull, block.Header{Version: promwrite.V2, Samples: 9})
		require.Equal(t, []string{"queue_full http://one/write 9"}, lines())
	})
}

// TestEachDestinationHasAName, which distinguishes their metrics.
func TestEachDestinationHasAName(t *testing.T) {
	tel, err := newTelemetry(exportertest.NewNopSettings(metadata.Type))
	require.NoError(t, err)
	var names []string
	for _, endpoint := range []string{"http://a/write?extra_label=x=1", "http://a/write?extra_label=x=2", "http://a/write?extra_label=x=3", "http://a/write#b", "http://b/write"} {
		tel.addDestination(endpoint)
		names = append(names, tel.destinations[len(names)].name)
	}
	require.Equal(t, []string{"http://a/write", "http://a/write#2", "http://a/write#3", "http://a/write#b", "http://b/write"}, names)
}

func TestNamesOfDestinationsHoldNoSecrets(t *testing.T) {
	require.Equal(t, "https://host:1/path#part", destinationName("https://user:password@host:1/path?key=secret#part"))
	require.Equal(t, "invalid", destinationName("http://a b"))
}
