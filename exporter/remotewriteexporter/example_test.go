// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter"
)

// Only the endpoint must be set; an error lists the valid values.
func ExampleNewFactory() {
	factory := remotewriteexporter.NewFactory()
	cfg := factory.CreateDefaultConfig()
	for _, set := range []map[string]any{
		{"endpoint": "http://127.0.0.1:9090/api/v1/write"},
		{"queue": map[string]any{"on_full": "wait"}},
	} {
		if err := confmap.NewFromStringMap(set).Unmarshal(cfg); err != nil {
			fmt.Println("cannot read:", err)
			continue
		}
		fmt.Println(factory.Type(), confmap.Validate(cfg))
	}
	// Output:
	// remotewrite <nil>
	// remotewrite `queue.on_full` must be block, drop_oldest or drop_newest, got "wait"
}

// A program may use the exporter without a Collector.
func ExampleNew() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Prometheus-Remote-Write-Samples-Written", "1")
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()

	cfg := remotewriteexporter.NewDefaultConfig()
	cfg.HTTP.Endpoint = server.URL
	cfg.Labels.TargetInfo.Enabled = false
	e, err := remotewriteexporter.New(cfg, exportertest.NewNopSettings(remotewriteexporter.NewFactory().Type()), remotewriteexporter.Keys{QueueSize: "queue.size"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	if err := e.Start(ctx, componenttest.NewNopHost()); err != nil {
		fmt.Println(err)
		return
	}
	metrics := pmetric.NewMetrics()
	m := metrics.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("geese")
	point := m.SetEmptyGauge().DataPoints().AppendEmpty()
	point.SetIntValue(42)
	point.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	fmt.Println("taken:", e.ConsumeMetrics(ctx, metrics))
	fmt.Println("ended:", e.Shutdown(ctx)) // which delivers everything in the queue
	fmt.Println("delivered:", e.(interface {
		Snapshot() remotewriteexporter.Snapshot
	}).Snapshot().Destinations[0].Outcome.Samples)
	// Output:
	// taken: <nil>
	// ended: <nil>
	// delivered: 1
}
