// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/internal/inspect"
)

// watcher is an extension, and its host.
type watcher struct {
	component.StartFunc
	component.ShutdownFunc

	source       inspect.Source
	unregistered bool
}

func (w *watcher) RegisterInspection(s inspect.Source) func() {
	w.source = s
	return func() { w.unregistered = true }
}

func (w *watcher) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{component.MustNewID("watcher"): w}
}

func TestInspection(t *testing.T) {
	w := &watcher{}
	good, down := newReceived(t, nil), newReceived(t, status(1<<30, http.StatusServiceUnavailable))
	e := start(t, w, func(c *Config) {
		c.ShutdownTimeout = time.Millisecond
		for _, d := range []*received{good, down} {
			endpoint := EndpointConfig{HTTP: defaultClient()}
			endpoint.HTTP.Endpoint = d.URL
			c.Endpoints = append(c.Endpoints, endpoint)
		}
	})
	require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 0)))
	eventually(t, func() bool {
		f := w.source.Flow()
		return f.In == 10 && f.Out == 10 && f.QueuedBytes > 0 && f.WireBytes > 0
	}, "one has it, the other does not")
	require.Equal(t, 2*DefaultQueueSize(), w.source.Flow().QueueCapacity)
	eventually(t, func() bool { return w.source.Delivery().Destinations[1].LastError != "" }, "it is known what is wrong")

	d := w.source.Delivery()
	require.Equal(t, 10, d.CacheSeries)
	ok, bad := d.Destinations[0], d.Destinations[1]
	require.Equal(t, good.URL, ok.Name)
	require.Equal(t, "remote write 2.0.0", ok.Protocol)
	require.Equal(t, "zstd", ok.Compression)
	require.Equal(t, int64(10), ok.Sent)
	require.Equal(t, map[string]int64{"204": 1}, ok.Responses)
	require.Equal(t, int64(1), ok.Acks)
	require.Positive(t, ok.AckSeconds)
	require.Empty(t, ok.LastError)
	require.Zero(t, bad.Sent)
	require.Contains(t, bad.LastError, "503")
	require.Positive(t, bad.Retries)
	require.Equal(t, int64(1), bad.Queue.Items)
	require.Equal(t, "bytes", bad.Queue.Unit)

	require.NoError(t, e.Shutdown(t.Context()))
	require.True(t, w.unregistered)
	require.Error(t, e.ConsumeMetrics(t.Context(), gauges(3, 1)))
	f := e.flow()
	require.Equal(t, int64(3), f.Refused)
	require.Equal(t, int64(10), f.Dropped["shutdown"])
}

func TestWhatCannotBeExpressedIsShown(t *testing.T) {
	w := &watcher{}
	d := newReceived(t, nil)
	e := start(t, w, func(c *Config) { c.Endpoint = d.URL })
	md := gauges(2, 0)
	md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).SetTimestamp(0)
	require.NoError(t, e.ConsumeMetrics(t.Context(), md))
	eventually(t, func() bool { return w.source.Flow().Dropped["time"] == 1 }, "the point without a time is counted")
}

func TestAnErrorThatIsAnsweredIsKnown(t *testing.T) {
	w := &watcher{}
	picky := newReceived(t, status(1<<30, http.StatusUnprocessableEntity))
	e := start(t, w, func(c *Config) { c.Endpoint = picky.URL })
	require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 0)))
	eventually(t, func() bool { return w.source.Flow().Dropped["rejected"] == 10 }, "it is dropped")
	require.Equal(t, "answered 422 Unprocessable Entity: no thanks", w.source.Delivery().Destinations[0].LastError)
	picky.recover()
	require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 1)))
	eventually(t, func() bool { return w.source.Flow().Out == 10 }, "it is taken")
	require.Empty(t, w.source.Delivery().Destinations[0].LastError)
}

func TestAPauseThatWasAskedForIsKnown(t *testing.T) {
	w := &watcher{}
	busy := newReceived(t, status(1<<30, http.StatusTooManyRequests, "Retry-After", "60"))
	e := start(t, w, func(c *Config) { c.Endpoint, c.ShutdownTimeout = busy.URL, time.Millisecond })
	require.Zero(t, w.source.Delivery().Destinations[0].ThrottledUntil)
	require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 0)))
	eventually(t, func() bool { return !w.source.Delivery().Destinations[0].ThrottledUntil.IsZero() }, "it asks for a pause")
	require.InDelta(t, 60, time.Until(w.source.Delivery().Destinations[0].ThrottledUntil).Seconds(), 15)
}

func TestAnErrorOnTheWayIsKnown(t *testing.T) {
	w := &watcher{}
	e := start(t, w, func(c *Config) {
		c.Endpoint, c.ShutdownTimeout = "http://127.0.0.1:1/write?token=secret", time.Millisecond
	})
	require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 0)))
	fault := func() string { return w.source.Delivery().Destinations[0].LastError }
	eventually(t, func() bool { return fault() != "" }, "it is known what is wrong")
	require.Contains(t, fault(), "connection refused")
	require.NotContains(t, fault(), "secret")
}
