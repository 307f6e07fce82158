// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/featuregate"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper"
	"go.uber.org/zap/zaptest/observer"
)

// The sizes of pages: small enough to be kept as trees, and large enough to be sent in parts.
const small, large = 100, 17_000

// roads is a configuration with several pipelines, which all lead to one end.
const roads = `
receivers:
  fastprometheus/rw: {config: {scrape_configs: [{job_name: rw, <<: &scrape {scrape_interval: 2s, scrape_timeout: 2s}, static_configs: &targets [{targets: [%[1]s]}], metrics_path: /rw}]}}
  fastprometheus/limited: {config: {scrape_configs: [{job_name: limited, <<: *scrape, static_configs: *targets, metrics_path: /limited}]}}
  fastprometheus/stream: {config: {scrape_configs: [{job_name: stream, <<: *scrape, static_configs: *targets, metrics_path: /stream}, {job_name: streaml, <<: *scrape, static_configs: *targets, metrics_path: /streamlarge}]}}
  fastprometheus/tenants: {config: {scrape_configs: [{job_name: tenants, <<: *scrape, static_configs: *targets, metrics_path: /tenants}, {job_name: tenantsl, <<: *scrape, static_configs: *targets, metrics_path: /tenantslarge}]}}
  remotewrite: {endpoint: "%[2]s"}
  otlpstream: {protocols: {grpc: {endpoint: "%[3]s"}}}
processors:
  memory_limiter: {check_interval: 1s, limit_mib: 4000}
  cardinality: {}
  cardinality/limits: {rules: [{name: few, match: {attributes: {number: "*"}}, max_series: 50, on_exceed: [drop]}]}
  checking: {}
exporters:
  nop: {}
  remotewrite: {endpoint: "http://%[2]s/api/v1/write", batch: {timeout: 50ms}}
  remotewrite/limited: {endpoint: "http://%[2]s/api/v1/write", batch: {timeout: 50ms}}
  remotewrite/tenants: {endpoint: "http://%[2]s/api/v1/write", batch: {timeout: 50ms}, tenant: {header: X-Scope-OrgID, from_resource_attribute: service.name, default: nobody}}
  otlpstream: {endpoint: "%[3]s", tls: {insecure: true}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    metrics/rw: {receivers: [fastprometheus/rw], exporters: [remotewrite]}
    metrics/limited: {receivers: [fastprometheus/limited], processors: [memory_limiter, cardinality/limits], exporters: [remotewrite/limited]}
    metrics/stream: {receivers: [fastprometheus/stream], exporters: [otlpstream]}
    metrics/tenants: {receivers: [fastprometheus/tenants], exporters: [remotewrite/tenants]}
    metrics/end: {receivers: [remotewrite, otlpstream], processors: [cardinality, checking], exporters: [nop]}
`

// An end checks what arrives.
type end struct {
	mu    sync.Mutex
	count map[string]int // points per pipeline
	wrong []string
}

// page returns a page of series whose values say which they are, and one of another type.
func page(road string) string {
	n := small
	if strings.HasSuffix(road, "large") {
		n = large
	}
	var b strings.Builder
	b.WriteString("# TYPE birds gauge\n")
	for i := range n {
		fmt.Fprintf(&b, "birds{road=%q,number=\"%d\"} %d\n", road, i, i)
	}
	fmt.Fprintf(&b, "# TYPE flights_total counter\nflights_total{road=%q,number=\"7\"} 7\n", road)
	return b.String()
}

func (e *end) take(md pmetric.Metrics) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				e.metric(m)
			}
		}
	}
}

func (e *end) metric(m pmetric.Metric) {
	var points pmetric.NumberDataPointSlice
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		points = m.Gauge().DataPoints()
	case pmetric.MetricTypeSum:
		points = m.Sum().DataPoints()
	default:
		e.wrong = append(e.wrong, m.Name()+" is a "+m.Type().String())
		return
	}
	for _, dp := range points.All() {
		number, isOurs := dp.Attributes().Get("number")
		if !isOurs {
			continue // scrape metrics
		}
		if dp.Flags().NoRecordedValue() {
			continue // a scrape has failed, on a busy machine
		}
		road, _ := dp.Attributes().Get("road")
		want, err := strconv.Atoi(number.Str())
		if err != nil || dp.DoubleValue() != float64(want) || m.Name() != "birds" && !strings.HasPrefix(m.Name(), "flights") {
			e.wrong = append(e.wrong, fmt.Sprintf("%s %v is %v", m.Name(), dp.Attributes().AsRaw(), dp.DoubleValue()))
		}
		e.count[road.Str()]++
	}
}

func (e *end) factory() processor.Factory {
	return processor.NewFactory(component.MustNewType("checking"), func() component.Config { return &struct{}{} }, processor.WithMetrics(
		func(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Metrics) (processor.Metrics, error) {
			return processorhelper.NewMetrics(ctx, set, cfg, next, func(_ context.Context, md pmetric.Metrics) (pmetric.Metrics, error) {
				e.take(md)
				return md, nil
			})
		}, component.StabilityLevelDevelopment,
	))
}

// With any of the Collector's feature gates that affect pdata, scraped metrics arrive unchanged, several times, from
// small and large pages.
func TestEveryGateOfTheData(t *testing.T) {
	found := 0
	featuregate.GlobalRegistry().VisitAll(func(g *featuregate.Gate) {
		if !strings.HasPrefix(g.ID(), "pdata.") || g.Stage() == featuregate.StageStable || g.Stage() == featuregate.StageDeprecated {
			return
		}
		found++
		for _, on := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s=%v", g.ID(), on), func(t *testing.T) {
				was := g.IsEnabled()
				require.NoError(t, featuregate.GlobalRegistry().Set(g.ID(), on))
				t.Cleanup(func() { require.NoError(t, featuregate.GlobalRegistry().Set(g.ID(), was)) })
				testRoads(t, on && g.ID() == "pdata.useProtoPooling")
			})
		}
	})
	require.Positive(t, found)
}

// gatesBeside are the Collector's gates that do not affect the data of metrics, with what they do according to the
// versions in go.mod.
var gatesBeside = map[string]string{
	"confmap.enableMergeAppendOption":                       "how lists of several configurations are merged",
	"service.AllowNoPipelines":                              "whether there may be none",
	"service.partialReload":                                 "which components a change of the configuration begins anew: TestRandomRoads has it on and off",
	"service.partialReloadReceivers":                        "whether these may be receivers alone",
	"service.profilesSupport":                               "another signal",
	"pkg.exporterhelper.queueBatchEnabled":                  "whether the Collector's own queues of exporters make batches by default",
	"pkg.translator.prometheus.PermissiveLabelSanitization": "names of labels, in exporters of others",
	"receiverhelper.newReceiverMetrics":                     "how what is refused is counted",
	"telemetry.newPipelineTelemetry":                        "attributes of the Collector's own metrics",
}

// TestAllGatesAreKnown: new gates of the Collector have to be looked at unless they are listed here or belong to a kind
// of components.
func TestAllGatesAreKnown(t *testing.T) {
	found := map[string]bool{}
	featuregate.GlobalRegistry().VisitAll(func(g *featuregate.Gate) {
		if g.Stage() == featuregate.StageStable || g.Stage() == featuregate.StageDeprecated || strings.HasPrefix(g.ID(), "pdata.") {
			return
		}
		kind, _, _ := strings.Cut(g.ID(), ".")
		switch kind {
		case "receiver", "processor", "exporter", "connector", "extension", "ottl", "transform", "filter":
			return // gates of components
		}
		assert.Contains(t, gatesBeside, g.ID(), g.Description())
		found[g.ID()] = true
	})
	for id := range gatesBeside {
		assert.True(t, found[id], "%s is no gate any more", id)
	}
}

func testRoads(t *testing.T, pooling bool) {
	t.Helper()
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprint(w, page(strings.TrimPrefix(r.URL.Path, "/")))
	}))
	t.Cleanup(target.Close)
	e := &end{count: map[string]int{}}
	c := start(t, fmt.Sprintf(roads, strings.TrimPrefix(target.URL, "http://"), freeAddress(t), freeAddress(t)), e.factory())
	said := used
	if pooling {
		said = unused
	}
	scrapers := c.log.FilterMessage(said).Filter(func(e observer.LoggedEntry) bool {
		return strings.HasPrefix(fmt.Sprint(e.ContextMap()["otelcol.component.id"]), "fastprometheus")
	})
	require.Equal(t, 4, scrapers.Len(), "with pooling memory is not used again, else it is")
	require.Eventually(t, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		for road, points := range map[string]int{
			"rw": 3 * small, "limited": 3 * small, "stream": 3 * small, "tenants": 3 * small, "streamlarge": 2 * large, "tenantslarge": 2 * large,
		} {
			if e.count[road] < points {
				return len(e.wrong) > 0
			}
		}
		return true
	}, patience, glance)
	e.mu.Lock()
	defer e.mu.Unlock()
	require.Empty(t, e.wrong[:min(len(e.wrong), 5)])
	require.Zero(t, c.log.FilterMessageSnippet("came back changed").Len(), "what limits reject is put back")
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}
