// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	promconfig "github.com/prometheus/prometheus/config"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/discover"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/metadata"
)

const (
	patience = 60 * time.Second
	glance   = 5 * time.Millisecond
)

// An endpoint is a target with a changeable response.
type endpoint struct {
	*httptest.Server

	handler atomic.Pointer[http.HandlerFunc]
	served  atomic.Int64
}

func newEndpoint(t *testing.T, text string) *endpoint {
	t.Helper()
	p := &endpoint{}
	p.text(text)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.served.Add(1)
		(*p.handler.Load())(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *endpoint) handle(f http.HandlerFunc) { p.handler.Store(&f) }

func (p *endpoint) text(text string) {
	p.handle(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprint(w, text)
	})
}

func (p *endpoint) address() string { return strings.TrimPrefix(p.URL, "http://") }

// A rig is a running receiver and all that can be observed of it.
type rig struct {
	*scraper

	sink      *consumertest.MetricsSink
	log       *observer.ObservedLogs
	telemetry *componenttest.Telemetry
	to        consumer.Metrics
	untraced  bool
}

type option func(*rig)

// withoutTraces saves the memory of test telemetry, which keeps every span.
func withoutTraces(r *rig) { r.untraced = true }

// withConsumer replaces the sink.
func withConsumer(next consumer.Metrics) option { return func(r *rig) { r.to = next } }

// configure reads the section of a receiver.
func configure(t testing.TB, text string) *Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	conf, err := confmaptest.LoadConf(file)
	require.NoError(t, err)
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, conf.Unmarshal(cfg))
	require.NoError(t, confmap.Validate(cfg))
	return cfg
}

// run starts a receiver, which runs until the test ends.
func run(t testing.TB, text string, options ...option) *rig {
	t.Helper()
	r := prepare(t, configure(t, text), options...)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, r.Shutdown(context.Background())) })
	return r
}

func prepare(t testing.TB, cfg *Config, options ...option) *rig {
	t.Helper()
	r := &rig{sink: new(consumertest.MetricsSink), telemetry: componenttest.NewTelemetry()}
	t.Cleanup(func() { require.NoError(t, r.telemetry.Shutdown(context.Background())) })
	r.to = r.sink
	for _, option := range options {
		option(r)
	}
	core, log := observer.New(zap.InfoLevel)
	r.log = log
	set := receivertest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = r.telemetry.NewTelemetrySettings()
	if r.untraced {
		set.TracerProvider = componenttest.NewNopTelemetrySettings().TracerProvider
	}
	set.Logger = zap.New(core)
	set.BuildInfo = component.BuildInfo{Command: "godwit", Version: "1.2.3"}
	s, err := newReceiver(cfg, set, r.to)
	require.NoError(t, err)
	r.scraper = s
	return r
}

// stranger returns a target that is never scraped.
func (r *rig) stranger() *target {
	with := &tools{cfg: &promconfig.ScrapeConfig{JobName: "test"}}
	return &target{job: newJob(r.scraper, "test"), have: &assignment{Target: &discover.Target{URL: "http://host:80"}, tools: with}}
}

var _ receiver.Metrics = (*scraper)(nil)

// A point is a number data point in the form that tests compare.
type point struct {
	job, instance, name string
	value               float64
	stale               bool
	at                  time.Time
}

// points returns the number data points in a sink.
func points(all []pmetric.Metrics) []point {
	var out []point
	for _, md := range all {
		for _, rm := range md.ResourceMetrics().All() {
			job, _ := rm.Resource().Attributes().Get("service.name")
			instance, _ := rm.Resource().Attributes().Get("service.instance.id")
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					for _, p := range numbers(m).All() {
						out = append(out, point{
							job: job.Str(), instance: instance.Str(), name: m.Name(), value: p.DoubleValue(),
							stale: p.Flags().NoRecordedValue(), at: p.Timestamp().AsTime(),
						})
					}
				}
			}
		}
	}
	return out
}

func numbers(m pmetric.Metric) pmetric.NumberDataPointSlice {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return m.Gauge().DataPoints()
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints()
	default:
		return pmetric.NewNumberDataPointSlice()
	}
}

// some returns the points that meet the condition.
func (r *rig) some(condition func(point) bool) []point {
	var out []point
	for _, p := range points(r.sink.AllMetrics()) {
		if condition(p) {
			out = append(out, p)
		}
	}
	return out
}

// await waits for a point that meets the condition, and returns it.
func (r *rig) await(t *testing.T, condition func(point) bool) point {
	t.Helper()
	var found []point
	require.Eventually(t, func() bool {
		found = r.some(condition)
		return len(found) > 0
	}, patience, glance)
	return found[0]
}

func is(name string, value float64) func(point) bool {
	return func(p point) bool { return p.name == name && p.value == value && !p.stale }
}

func of(p *endpoint, condition func(point) bool) func(point) bool {
	return func(got point) bool { return got.instance == p.address() && condition(got) }
}

func stale(name string) func(point) bool {
	return func(p point) bool { return p.name == name && p.stale }
}

// fill replaces the content of a file atomically.
func fill(t *testing.T, file, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(file+".new", []byte(text), 0o600))
	require.NoError(t, os.Rename(file+".new", file))
}

// total sums up the points of one of our own metrics.
func total(t *testing.T, m metricdata.Metrics) float64 {
	t.Helper()
	var sum float64
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			sum += float64(p.Value)
		}
	case metricdata.Gauge[int64]:
		for _, p := range data.DataPoints {
			sum += float64(p.Value)
		}
	case metricdata.Sum[float64]:
		for _, p := range data.DataPoints {
			sum += p.Value
		}
	default:
		require.Fail(t, "another kind of metric")
	}
	return sum
}
