// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package prometheusremotewriteexporter

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/featuregate"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/godwit-otel/godwit/exporter/prometheusremotewriteexporter/internal/metadata"
)

// receiver responds with a code, and counts what it has accepted.
type receiver struct {
	*httptest.Server

	code  atomic.Int64
	taken atomic.Int64
	last  atomic.Pointer[http.Header]
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.code.Store(http.StatusNoContent)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		code := int(r.code.Load())
		if code/100 == 2 {
			r.taken.Add(1)
		}
		r.last.Store(&request.Header)
		w.WriteHeader(code)
	}))
	t.Cleanup(r.Close)
	return r
}

// start runs the exporter with some of contrib's keys.
func start(t *testing.T, keys map[string]any) (e exporter.Metrics, logs *observer.ObservedLogs) {
	t.Helper()
	factory := NewFactory()
	cfg := factory.CreateDefaultConfig().(*Config)
	require.NoError(t, confmap.NewFromStringMap(keys).Unmarshal(cfg))
	require.NoError(t, cfg.Validate())
	core, logs := observer.New(zap.InfoLevel)
	set := exportertest.NewNopSettings(metadata.Type)
	set.ID = component.NewID(metadata.Type)
	set.Logger = zap.New(core)
	e, err := factory.CreateMetrics(t.Context(), set, cfg)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, e.Shutdown(context.Background())) })
	return e, logs
}

func soon(t *testing.T, condition func() bool, what string) {
	t.Helper()
	require.Eventually(t, condition, 30*time.Second, time.Millisecond, what)
}

// With `wal`, acknowledged data survives the process, like with contrib's log.
func TestWALKeepsTheQueueOnDisk(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "log")
	r := newReceiver(t)
	r.code.Store(http.StatusServiceUnavailable)
	keys := map[string]any{"endpoint": r.URL, "wal": map[string]any{"directory": directory}, "timeout": "50ms"}
	e, logs := start(t, keys)
	require.NoError(t, e.ConsumeMetrics(t.Context(), metrics()))
	require.NoError(t, e.Shutdown(t.Context()))
	require.Zero(t, r.taken.Load())
	require.Empty(t, logs.FilterMessageSnippet("wal").All())

	r.code.Store(http.StatusNoContent)
	_, _ = start(t, keys)
	soon(t, func() bool { return r.taken.Load() > 0 }, "it arrives")

	require.NoError(t, os.MkdirAll(filepath.Join(directory, contribLog), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(directory, contribLog, "00000000000000000001"), []byte("x"), 0o600))
	core, logs := observer.New(zap.InfoLevel)
	(&WALConfig{Directory: directory}).warnOfContribs(zap.New(core))
	require.Len(t, logs.All(), 1, "what nobody will send is told of")
}

func TestWithoutAQueueTheCallerIsTold(t *testing.T) {
	r := newReceiver(t)
	e, _ := start(t, map[string]any{"endpoint": r.URL, "remote_write_queue": map[string]any{"enabled": false}})
	for n := range 5 {
		require.NoError(t, e.ConsumeMetrics(t.Context(), metrics()))
		require.GreaterOrEqual(t, r.taken.Load(), int64(n+1), "it has been delivered")
	}
	r.code.Store(http.StatusConflict)
	err := e.ConsumeMetrics(t.Context(), metrics())
	require.ErrorContains(t, err, "409")
	require.True(t, consumererror.IsPermanent(err))
}

func TestQueueSizeCountsBatches(t *testing.T) {
	r := newReceiver(t)
	r.code.Store(http.StatusServiceUnavailable)
	e, _ := start(t, map[string]any{"endpoint": r.URL, "timeout": "50ms", "remote_write_queue": map[string]any{"queue_size": 3}})
	for range 3 {
		require.NoError(t, e.ConsumeMetrics(t.Context(), metrics()))
	}
	require.EqualError(t, e.ConsumeMetrics(t.Context(), metrics()), "the queue of every destination is full: raise `remote_write_queue.queue_size`")
	r.code.Store(http.StatusNoContent)
	soon(t, func() bool { return e.ConsumeMetrics(t.Context(), metrics()) == nil }, "there is room again")
}

func TestAllMetadataKeysAreForwarded(t *testing.T) {
	r := newReceiver(t)
	e, _ := start(t, map[string]any{"endpoint": r.URL, "include_metadata_keys": []any{"X-Scope-OrgID", "x-team"}})
	md := client.NewMetadata(map[string][]string{"x-scope-orgid": {"blue"}, "x-team": {"birds", "fish"}})
	require.NoError(t, e.ConsumeMetrics(client.NewContext(t.Context(), client.Info{Metadata: md}), metrics()))
	soon(t, func() bool { return r.taken.Load() > 0 }, "it arrives")
	h := *r.last.Load()
	require.Equal(t, []string{"blue"}, h.Values("X-Scope-Orgid"))
	require.Equal(t, []string{"birds", "fish"}, h.Values("X-Team"))
}

// TestManyClientsAreForwarded: contrib's exporter does not limit the number of clients, and the limit here is far above
// the default of the remotewrite exporter.
func TestManyClientsAreForwarded(t *testing.T) {
	const clients = 1500
	var mu sync.Mutex
	requests := map[string]int{} // by client
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		requests[strings.Join(r.Header.Values("X-Scope-Orgid"), "+")]++
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(server.Close)
	e, _ := start(t, map[string]any{"endpoint": server.URL, "include_metadata_keys": []any{"X-Scope-OrgID"}})
	for n := range clients {
		md := client.NewMetadata(map[string][]string{"x-scope-orgid": {"tenant", strconv.Itoa(n)}})
		require.NoError(t, e.ConsumeMetrics(client.NewContext(t.Context(), client.Info{Metadata: md}), metrics()))
	}
	soon(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(requests) == clients
	}, "each has a request of its own")
	mu.Lock()
	defer mu.Unlock()
	for n := range clients {
		require.Positive(t, requests["tenant+"+strconv.Itoa(n)])
	}
}

func TestGatesOfContribAreKnown(t *testing.T) {
	registry := featuregate.GlobalRegistry()
	for _, g := range contribs {
		require.NoError(t, registry.Set(g.ID, true), "contrib's own, or ours: it is there")
		t.Cleanup(func() { _ = registry.Set(g.ID, false) })
	}
	core, logs := observer.New(zap.InfoLevel)
	contribs.Warn(zap.New(core))
	require.Len(t, logs.All(), 1)

	read := func(keys map[string]any) error {
		return confmap.NewFromStringMap(keys).Unmarshal(createDefaultConfig().(*Config))
	}
	require.ErrorContains(t, read(map[string]any{"endpoint": "http://localhost"}), "`endpoint` must be under `http`")
	require.NoError(t, read(map[string]any{"namespace": "a", "http": map[string]any{"endpoint": "http://localhost"}}))
}
