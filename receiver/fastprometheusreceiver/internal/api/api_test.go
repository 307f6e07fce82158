// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	promconfig "github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	v1 "github.com/prometheus/prometheus/web/api/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
)

var scraped = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

// A scene is a view with one job that has everything, and one that has nothing.
type scene struct{ registry *prometheus.Registry }

func newScene() *scene {
	s := &scene{registry: prometheus.NewRegistry()}
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "answer", Help: "The answer."})
	gauge.Set(42)
	s.registry.MustRegister(gauge)
	return s
}

func (*scene) Config() (text string, since time.Time, rejected bool) {
	return "global: {}\n", scraped, true
}

func (s *scene) Gatherer() prometheus.Gatherer { return s.registry }

func (*scene) Pools() []Pool {
	families := func() []Family {
		return []Family{
			{Name: "requests_total", Type: "counter", Help: "All <requests>."},
			{Name: "latency_seconds", Type: "histogram", Help: "How long.", Unit: "seconds"},
		}
	}
	rule := func(action relabel.Action, regex string) *relabel.Config {
		r := relabel.DefaultRelabelConfig
		r.Action, r.Regex = action, relabel.MustNewRegexp(regex)
		r.SourceLabels, r.TargetLabel = []model.LabelName{"__address__"}, "host"
		r.NameValidationScheme = model.UTF8Validation
		return &r
	}
	target := func(address string) Target {
		return Target{
			Discovered: labels.FromStrings("__address__", address, "__meta_x", "y"),
			Labels: labels.FromStrings("__address__", address, "__scheme__", "http", "__scrape_interval__", "15s",
				"__scrape_timeout__", "10s", "job", "node", "instance", address),
			URL: "http://" + address + "/metrics?a=b", Health: Up, LastScrape: scraped, Duration: 1500 * time.Millisecond,
			Families: families,
		}
	}
	down := target("[::1]:9100")
	down.Health, down.LastError, down.Families = Down, "connection <refused>", nil
	return []Pool{
		{Job: &promconfig.ScrapeConfig{JobName: "empty"}},
		{
			Job: &promconfig.ScrapeConfig{
				JobName:        "node",
				RelabelConfigs: []*relabel.Config{rule(relabel.Replace, "(.*):.*"), rule(relabel.Drop, "b.*"), rule(relabel.Replace, "(.*)")},
			},
			Targets: []Target{target("a:9100"), down},
			Dropped: []labels.Labels{labels.FromStrings("__address__", "z:1")},
			Drops:   3,
		},
	}
}

// serve starts a server on a free port, which runs until the test ends.
func serve(t *testing.T, change func(*Config)) *Server {
	t.Helper()
	cfg := NewDefaultConfig()
	cfg.Enabled, cfg.Server.NetAddr.Endpoint = true, "127.0.0.1:0"
	if change != nil {
		change(&cfg)
	}
	require.NoError(t, cfg.Validate())
	s := New(cfg, componenttest.NewNopTelemetrySettings(), component.BuildInfo{Version: "1.2.3"}, newScene())
	require.NoError(t, s.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, s.Shutdown(context.Background())) })
	return s
}

// get calls the handler without a network.
func get(t *testing.T, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	return ask(t, http.MethodGet, path, header...)
}

func ask(t *testing.T, method, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	cfg := NewDefaultConfig()
	s := New(cfg, componenttest.NewNopTelemetrySettings(), component.BuildInfo{Version: "1.2.3"}, newScene())
	r := httptest.NewRequest(method, path, http.NoBody)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.handler().ServeHTTP(w, r)
	return w
}

// data decodes a response into Prometheus's own type, which must have all of its fields.
func data[T any](t *testing.T, path string) T {
	t.Helper()
	w := get(t, path)
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	assert.Equal(t, "application/json", w.Header().Get("Content-Type"))
	var out T
	response := v1.Response{Data: &out}
	strictly(t, w.Body.Bytes(), &response)
	assert.EqualValues(t, "success", response.Status)
	return out
}

func strictly(t *testing.T, text []byte, out any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(out), string(text))
}

func TestScrapePools(t *testing.T) {
	assert.Equal(t, []string{"empty", "node"}, data[v1.ScrapePoolsDiscovery](t, "/api/v1/scrape_pools").ScrapePools)
}

func TestTargets(t *testing.T) {
	got := data[v1.TargetDiscovery](t, "/api/v1/targets")
	assert.Equal(t, &v1.Target{
		DiscoveredLabels:   labels.FromStrings("__address__", "a:9100", "__meta_x", "y"),
		Labels:             labels.FromStrings("job", "node", "instance", "a:9100"),
		ScrapePool:         "node",
		ScrapeURL:          "http://a:9100/metrics?a=b",
		GlobalURL:          "http://a:9100/metrics?a=b",
		LastScrape:         scraped,
		LastScrapeDuration: 1.5,
		Health:             "up",
		ScrapeInterval:     "15s",
		ScrapeTimeout:      "10s",
	}, got.ActiveTargets[0])
	assert.EqualValues(t, "down", got.ActiveTargets[1].Health)
	assert.Equal(t, "connection <refused>", got.ActiveTargets[1].LastError)
	assert.Equal(t, "http://127.0.0.1:9100/metrics?a=b", got.ActiveTargets[1].GlobalURL)
	assert.Equal(t, []*v1.DroppedTarget{{DiscoveredLabels: labels.FromStrings("__address__", "z:1"), ScrapePool: "node"}}, got.DroppedTargets)
	assert.Equal(t, map[string]int{"empty": 0, "node": 3}, got.DroppedTargetCounts)
}

// Filters select parts of the same result. Lists are never null where Prometheus has lists.
func TestTargetFilters(t *testing.T) {
	for query, want := range map[string][2]int{
		"?state=any":         {2, 1},
		"?state=active":      {2, 0},
		"?state=DROPPED":     {0, 1},
		"?state=other":       {0, 0},
		"?scrapePool=node":   {2, 1},
		"?scrapePool=empty":  {0, 0},
		"?scrapePool=absent": {0, 0},
	} {
		got := data[v1.TargetDiscovery](t, "/api/v1/targets"+query)
		assert.Len(t, got.ActiveTargets, want[0], query)
		assert.Len(t, got.DroppedTargets, want[1], query)
		assert.NotNil(t, got.ActiveTargets, query)
		assert.NotNil(t, got.DroppedTargets, query)
	}
}

// exported is Prometheus's response for targets/metadata, whose type is not exported.
type exported struct {
	Target labels.Labels `json:"target"`
	Metric string        `json:"metric"`
	Type   string        `json:"type"`
	Help   string        `json:"help"`
	Unit   string        `json:"unit"`
}

func TestTargetMetadata(t *testing.T) {
	got := data[[]exported](t, "/api/v1/targets/metadata")
	target := labels.FromStrings("job", "node", "instance", "a:9100")
	assert.Equal(t, []exported{
		{target, "latency_seconds", "histogram", "How long.", "seconds"},
		{target, "requests_total", "counter", "All <requests>.", ""},
	}, got)
	for query, want := range map[string]int{
		`?match_target={job="node"}`:                2,
		`?match_target={job="other"}`:               0,
		`?match_target={instance=~"a.*",job!="x"}`:  2,
		`?metric=requests_total`:                    1,
		`?metric=absent`:                            0,
		`?limit=0`:                                  0,
		`?limit=1&match_target={job="node",a=""}`:   2, // the limit is checked per target, as in Prometheus
		`?metric=requests_total&match_target={x=1}`: -1,
		`?match_target={`:                           -1,
		`?limit=x`:                                  -1,
	} {
		path := "/api/v1/targets/metadata" + strings.NewReplacer("{", "%7B", "}", "%7D", `"`, "%22", " ", "%20").Replace(query)
		if want >= 0 {
			assert.Len(t, data[[]exported](t, path), want, query)
			continue
		}
		failure(t, get(t, path), http.StatusBadRequest, "bad_data")
	}
}

func failure(t *testing.T, w *httptest.ResponseRecorder, status int, kind string) {
	t.Helper()
	assert.Equal(t, status, w.Code)
	var out v1.Response
	strictly(t, w.Body.Bytes(), &out)
	assert.EqualValues(t, "error", out.Status)
	assert.Equal(t, kind, out.ErrorType)
	assert.NotEmpty(t, out.Error)
}

func TestMetricMetadata(t *testing.T) {
	type metadata = map[string][]exported
	got := data[metadata](t, "/api/v1/metadata")
	assert.Equal(t, metadata{
		"latency_seconds": {{Type: "histogram", Help: "How long.", Unit: "seconds"}},
		"requests_total":  {{Type: "counter", Help: "All <requests>."}},
	}, got)
	assert.Len(t, data[metadata](t, "/api/v1/metadata?limit=1"), 1)
	assert.Len(t, data[metadata](t, "/api/v1/metadata?metric=requests_total"), 1)
	assert.Len(t, data[metadata](t, "/api/v1/metadata?limit_per_metric=1"), 2)
	failure(t, get(t, "/api/v1/metadata?limit_per_metric=x"), http.StatusBadRequest, "bad_data")
}

func TestRelabelSteps(t *testing.T) {
	const path = "/api/v1/targets/relabel_steps?scrapePool=node&labels="
	type step struct {
		Rule   json.RawMessage `json:"rule"`
		Output labels.Labels   `json:"output"`
		Keep   bool            `json:"keep"`
	}
	type steps struct {
		Steps []step `json:"steps"`
	}
	kept := data[steps](t, path+`%7B%22__address__%22:%22a:1%22%7D`).Steps
	require.Len(t, kept, 3)
	assert.Equal(t, "a", kept[0].Output.Get("host"))
	assert.True(t, kept[2].Keep)
	assert.Equal(t, "a:1", kept[2].Output.Get("host"))
	dropped := data[steps](t, path+`%7B%22__address__%22:%22b:1%22%7D`).Steps
	assert.Equal(t, []bool{true, false, false}, []bool{dropped[0].Keep, dropped[1].Keep, dropped[2].Keep})
	assert.True(t, dropped[2].Output.IsEmpty())

	rule := data[v1.RelabelStepsResponse](t, path+`%7B%22__address__%22:%22a:1%22%7D`).Steps[0].Rule
	assert.Equal(t, "host", rule.TargetLabel)

	failure(t, get(t, path), http.StatusBadRequest, "bad_data")
	failure(t, get(t, path+"nonsense"), http.StatusBadRequest, "bad_data")
	failure(t, get(t, "/api/v1/targets/relabel_steps?scrapePool=absent&labels=%7B%7D"), http.StatusBadRequest, "bad_data")
}

func TestStatus(t *testing.T) {
	info := data[v1.RuntimeInfo](t, "/api/v1/status/runtimeinfo")
	assert.Positive(t, info.GoroutineCount)
	assert.Positive(t, info.GOMAXPROCS)
	assert.NotZero(t, info.GOMEMLIMIT)
	assert.False(t, info.ReloadConfigSuccess)
	assert.Equal(t, scraped, info.LastConfigTime)
	assert.WithinDuration(t, time.Now(), info.ServerTime, time.Minute)

	build := data[v1.PrometheusVersion](t, "/api/v1/status/buildinfo")
	assert.Equal(t, "1.2.3", build.Version)
	assert.True(t, strings.HasPrefix(build.GoVersion, "go"))

	assert.Equal(t, map[string]string{"yaml": "global: {}\n"}, data[map[string]string](t, "/api/v1/status/config"))
	assert.Empty(t, data[map[string]string](t, "/api/v1/status/flags"))
}

// No field of Prometheus's types is missing either.
func TestNoFieldIsMissing(t *testing.T) {
	for path, want := range map[string]any{
		"status/runtimeinfo": v1.RuntimeInfo{},
		"status/buildinfo":   v1.PrometheusVersion{},
		"targets":            v1.TargetDiscovery{},
		"scrape_pools":       v1.ScrapePoolsDiscovery{},
	} {
		text, err := json.Marshal(want)
		require.NoError(t, err)
		assert.ElementsMatch(t, fields(t, text), fields(t, raw(t, path)), path)
	}
	var got struct {
		Active []json.RawMessage `json:"activeTargets"`
	}
	require.NoError(t, json.Unmarshal(raw(t, "targets"), &got))
	text, err := json.Marshal(v1.Target{})
	require.NoError(t, err)
	assert.ElementsMatch(t, fields(t, text), fields(t, got.Active[0]))
}

func raw(t *testing.T, path string) json.RawMessage {
	t.Helper()
	var out struct {
		Data json.RawMessage `json:"data"`
	}
	require.NoError(t, json.Unmarshal(get(t, "/api/v1/"+path).Body.Bytes(), &out))
	return out.Data
}

func fields(t *testing.T, text []byte) []string {
	t.Helper()
	var tree map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(text, &tree))
	var out []string
	for name := range tree {
		out = append(out, name)
	}
	return out
}

func TestWhatAnAgentDoesNotServe(t *testing.T) {
	for _, path := range []string{"query?query=up", "query_range", "labels", "label/job/values", "series", "rules", "alerts", "alertmanagers", "status/tsdb", "admin/tsdb/snapshot"} {
		failure(t, get(t, "/api/v1/"+path), http.StatusUnprocessableEntity, "execution")
		failure(t, ask(t, http.MethodPost, "/api/v1/"+path), http.StatusUnprocessableEntity, "execution")
	}
	for _, path := range []string{"", "absent", "targets/absent", "write"} {
		failure(t, get(t, "/api/v1/"+path), http.StatusNotFound, "not_found")
	}
	failure(t, ask(t, http.MethodPost, "/api/v1/targets"), http.StatusNotFound, "not_found")
	assert.Equal(t, http.StatusNotFound, get(t, "/").Code)
	assert.Equal(t, http.StatusNoContent, ask(t, http.MethodOptions, "/api/v1/targets").Code)
}

func TestHealth(t *testing.T) {
	assert.Equal(t, http.StatusOK, get(t, "/-/healthy").Code)
	assert.Equal(t, http.StatusOK, get(t, "/-/ready").Code)
	w := get(t, "/metrics")
	assert.Equal(t, http.StatusOK, w.Code)
	assert.Contains(t, w.Body.String(), "answer 42")
}

func TestCompression(t *testing.T) {
	plain := get(t, "/api/v1/targets").Body.Bytes()
	for accept, zipped := range map[string]bool{"gzip": true, "br, gzip;q=0.5": true, "gzip;q=0": false, "identity": false} {
		w := get(t, "/api/v1/targets", "Accept-Encoding", accept)
		body := w.Body.Bytes()
		if assert.Equal(t, zipped, w.Header().Get("Content-Encoding") == "gzip", accept); zipped {
			reader, err := gzip.NewReader(w.Body)
			require.NoError(t, err)
			body, err = io.ReadAll(reader)
			require.NoError(t, err)
		}
		assert.Equal(t, string(plain), string(body))
	}
}

func TestGlobalURL(t *testing.T) {
	for _, c := range []struct{ target, endpoint, want string }{
		{"http://a:1/x", "host:9090", "http://a:1/x"},
		{"https://localhost:1/x?y=z", "host:9090", "https://host:1/x?y=z"},
		{"https://localhost:9090/x", "host:9090", "http://host:9090/x"},
		{"http://127.0.0.1/x", "host:9090", "http://host/x"},
		{"http://[::1]:1/x", "[::2]:9090", "http://[::2]:1/x"},
		{"http://localhost/x", "no port", "http://localhost/x"},
		{"http://localhost/x", "[::2]:1", "http://[::2]/x"},
		{"://", "host:9090", "://"},
	} {
		assert.Equal(t, c.want, globalURL(c.target, c.endpoint), c.target)
	}
}
