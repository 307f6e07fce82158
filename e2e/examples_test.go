// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/otlpserver"
	"github.com/godwit-otel/godwit/e2e/process"
	"github.com/godwit-otel/godwit/e2e/repository"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/serve"
	"github.com/godwit-otel/godwit/e2e/targets"
	"github.com/godwit-otel/godwit/e2e/wait"
)

const examples = "examples/"

// Merged into an example, so that a test need not wait for its intervals.
const (
	exampleTelemetry = "service: {telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: %d}}}}]}}}"
	scrapeOften      = "receivers: {%s: {config: {global: {scrape_interval: 500ms, scrape_timeout: 500ms}}}}"
	tryOften         = "exporters: {remotewrite: {batch: {timeout: 50ms}, retry: {initial_interval: 50ms, max_interval: 200ms}, circuit_breaker: {open_for: 200ms}}}"
)

// exampleRuns runs each example with data.
var exampleRuns = map[string]func(t *testing.T, name string){
	"agent-to-prometheus.yaml":         runPrometheusExample,
	"agent-to-mimir.yaml":              runMimirExample,
	"agent-to-victoriametrics.yaml":    runVictoriaMetricsExample,
	"streaming-agent.yaml":             runStreamingExample,
	"streaming-gateway.yaml":           nil, // tested with streaming-agent.yaml
	"node-exporters.yaml":              runNodeExportersExample,
	"kube-state-metrics.yaml":          runKubeStateMetricsExample,
	"kubernetes-target-allocator.yaml": runTargetAllocatorExample,
	"tenant-limits.yaml":               runTenantLimitsExample,
	"contrib-drop-in.yaml":             runContribExample,
}

func TestExamples(t *testing.T) {
	t.Parallel()
	index := repository.Read(t, examples+"README.md")
	var found []string
	for _, name := range repository.Files(t) {
		if !strings.HasPrefix(name, examples) || path.Ext(name) != ".yaml" {
			continue
		}
		file := strings.TrimPrefix(name, examples)
		found = append(found, file)
		assert.Contains(t, index, "("+file+")", "the README does not have it")
		run, known := exampleRuns[file]
		assert.True(t, known, "%s is never run", name)
		if run != nil {
			t.Run(file, func(t *testing.T) {
				t.Parallel()
				run(t, file)
			})
		}
	}
	assert.Len(t, exampleRuns, len(found))
}

// startExample starts the distribution for an example and waits until it runs.
func startExample(t *testing.T, name string, env []string, overlays ...string) *collector {
	t.Helper()
	port := freeport.Get(t)
	file := filepath.Join(repository.Root(t), examples, name)
	args := []string{"--config", file}
	for _, overlay := range append(overlays, fmt.Sprintf(exampleTelemetry, port)) {
		args = append(args, "--config", configFile(t, overlay))
	}
	binary := binaryFor(t, shipped{where: examples + name, text: repository.Read(t, examples+name)})
	c := &collector{telemetry: fmt.Sprintf("http://127.0.0.1:%d/metrics", port)}
	c.Process = process.Start(t, process.Settings{
		Path: process.Binary(t, binary), Args: args,
		Env: append(configEnv(t), append([]string{
			"GODWIT_TELEMETRY_PORT=" + strconv.Itoa(port), "GODWIT_CONSOLE_PORT=" + strconv.Itoa(freeport.Get(t)),
		}, env...)...),
	})
	c.running()
	return c
}

// running waits for the last log line of the start.
func (c *collector) running() { c.WaitLog(firstWords, "Everything is ready.") }

// arrives waits for a series and returns the first match.
func arrives(t *testing.T, server *rwserver.Server, name string, pairs ...string) rwserver.Series {
	t.Helper()
	var found []rwserver.Series
	wait.Until(t, firstSeries, func() (bool, string) {
		found = server.Series(name, pairs...)
		return len(found) > 0, fmt.Sprintf("%s with %q has not arrived", name, pairs)
	})
	return found[0]
}

// geese starts a target with a small page.
func geese(t *testing.T) *targets.Target {
	t.Helper()
	return targets.New(t, targets.Page{Body: goodPage + "# TYPE go_threads gauge\ngo_threads 7\n"})
}

func runPrometheusExample(t *testing.T, name string) {
	server := rwserver.New(t, rwserver.Options{Encodings: []string{rwserver.Snappy}}) // as Prometheus
	c := startExample(t, name, []string{"GODWIT_REMOTE_WRITE_URL=" + server.URL(), "GODWIT_TARGET=" + geese(t).Addr()},
		fmt.Sprintf(scrapeOften, "fastprometheus"), tryOften)
	arrives(t, server, "geese_flying", "job", "node", "flock", "north")
	arrives(t, server, "otelcol_process_uptime", "job", "godwit-agent")
	arrives(t, server, "up", "job", "godwit-agent")
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
	assert.Empty(t, server.Violations())
}

func runMimirExample(t *testing.T, name string) {
	server := rwserver.New(t, rwserver.Options{})
	startExample(t, name, []string{
		"GODWIT_REMOTE_WRITE_URL=" + server.URL(), "GODWIT_TARGET=" + geese(t).Addr(),
		"GODWIT_USER=me", "GODWIT_PASSWORD=secret", "GODWIT_TENANT=birds",
	}, fmt.Sprintf(scrapeOften, "fastprometheus"), tryOften)
	arrives(t, server, "geese_flying", "job", "node", "cluster", "main")
	request := http.Request{Header: server.Requests()[0].Header}
	user, password, _ := request.BasicAuth()
	assert.Equal(t, []string{"me", "secret", "birds"}, []string{user, password, request.Header.Get("X-Scope-Orgid")})
}

// The queue on disk survives a kill of the agent.
func runVictoriaMetricsExample(t *testing.T, name string) {
	server := rwserver.New(t, rwserver.Options{Versions: []string{rwserver.V1}}) // as VictoriaMetrics
	target := targets.NewFunc(t, func(scrape int) targets.Page { return targets.Page{Body: fmt.Sprintf(beatsPage, scrape)} })
	c := startExample(t, name, []string{"GODWIT_REMOTE_WRITE_URL=" + server.URL(), "GODWIT_TARGET=" + target.Addr()},
		fmt.Sprintf(scrapeOften, "fastprometheus"), tryOften)
	arrives(t, server, "beats_total", "job", "node")
	requests := server.Requests()
	assert.Equal(t, []string{rwserver.V1, rwserver.Zstd}, []string{requests[len(requests)-1].Version, requests[len(requests)-1].Encoding})

	server.Always(rwserver.Step{Status: 503})
	during := target.Scrapes() + 1 // one more scrape may have been in progress
	wait.Until(t, firstSeries, func() (bool, string) { return target.Scrapes() >= during+5, "no further scrape" })
	c.Kill()
	killed := target.Scrapes()
	server.Always(rwserver.Step{})
	c.Restart()
	c.running()
	wait.Until(t, firstSeries, func() (bool, string) {
		arrived, _ := beats(server, "job", "node")
		// The last ones may not have been on disk yet.
		has := slices.ContainsFunc(arrived, func(scrape int) bool { return scrape >= during && scrape < killed })
		return has, fmt.Sprintf("scrapes %d to %d are lost", during, killed-1)
	})
}

func runStreamingExample(t *testing.T, name string) {
	overBoth(t, func(t *testing.T, transport string) {
		metrics, rest := rwserver.New(t, rwserver.Options{}), otlpserver.New(t, otlpserver.Options{})
		grpc, http, programs := freeport.Addr(t), freeport.Addr(t), freeport.Addr(t)
		startExample(t, "streaming-gateway.yaml", []string{
			"GODWIT_LISTEN_GRPC=" + grpc, "GODWIT_LISTEN_HTTP=" + http,
			"GODWIT_REMOTE_WRITE_URL=" + metrics.URL(), "GODWIT_OTLP_ENDPOINT=" + rest.GRPCAddr(),
		}, tryOften)
		to := map[string]string{overGRPC: grpc, overWebSocket: http}[transport]
		c := startExample(t, name, []string{
			"GODWIT_GATEWAY=" + to, "GODWIT_TRANSPORT=" + transport, "GODWIT_OTLP_LISTEN=" + programs, "GODWIT_TARGET=" + geese(t).Addr(),
		}, fmt.Sprintf(scrapeOften, "fastprometheus"))
		arrives(t, metrics, "geese_flying", "job", "node", "flock", "south")
		l := &ledger{}
		stop := l.flood(t, programs)
		flows(t, l, streamProgress)
		stop()
		wait.Until(t, delivery, l.arrived(rest))
		assert.Positive(t, c.metric(t, "otelcol_exporter_otlpstream_streams_opened"))
	})
}

// Each agent of a fleet scrapes a part of the targets, and together they scrape all.
func runNodeExportersExample(t *testing.T, name string) {
	const members, fleet = 3, 12
	dir := t.TempDir()
	all := targets.Many(t, fleet, func(int, int) targets.Page { return targets.Page{Body: goodPage + "go_threads 7\n"} })
	targets.WriteFileSD(t, filepath.Join(dir, "rack.json"), map[string]string{"rack": "r1"}, all...)
	var servers []*rwserver.Server
	for index := range members {
		server := rwserver.New(t, rwserver.Options{})
		servers = append(servers, server)
		startExample(t, name, []string{
			"GODWIT_REMOTE_WRITE_URL=" + server.URL(), "GODWIT_TARGETS=" + dir,
			fmt.Sprintf("GODWIT_MEMBERS=%d", members), fmt.Sprintf("GODWIT_INDEX=%d", index),
		}, fmt.Sprintf(scrapeOften, "fastprometheus"), tryOften)
	}
	times := map[string]int{}
	wait.Until(t, firstSeries, func() (bool, string) {
		clear(times)
		for _, server := range servers {
			for _, series := range server.Series("geese_flying", "rack", "r1", "flock", "north") {
				times[series.Labels.Get("instance")]++
			}
		}
		return len(times) == fleet, fmt.Sprintf("%d of %d targets are scraped", len(times), fleet)
	})
	for instance, n := range times {
		assert.Equal(t, 1, n, instance)
		assert.NotContains(t, instance, ":", "the port")
	}
	for _, server := range servers {
		assert.Empty(t, server.Series("go_threads"))
	}
}

const kubePage = `# TYPE kube_pod_info gauge
kube_pod_info{namespace="ponds",pod="goose-1",uid="0a1b"} 1
# TYPE kube_pod_tolerations gauge
kube_pod_tolerations{namespace="ponds",pod="goose-1",uid="0a1b"} 1
# TYPE kube_namespace_created gauge
kube_namespace_created{namespace="ponds"} 1.7e9
`

func runKubeStateMetricsExample(t *testing.T, name string) {
	server := rwserver.New(t, rwserver.Options{})
	target := targets.New(t, targets.Page{Body: kubePage})
	startExample(t, name, []string{"GODWIT_REMOTE_WRITE_URL=" + server.URL(), "GODWIT_KUBE_STATE_METRICS=" + target.Addr()},
		fmt.Sprintf(scrapeOften, "fastprometheus"), tryOften)
	info := arrives(t, server, "kube_pod_info", "namespace", "ponds", "pod", "goose-1")
	assert.False(t, info.Labels.Has("uid"))
	assert.Empty(t, server.Series("kube_pod_tolerations"))
	assert.Empty(t, server.Series("kube_namespace_created"))
}

// The HTTP API of the operator's target allocator, as far as an agent uses it.
func runTargetAllocatorExample(t *testing.T, name string) {
	target, server := geese(t), rwserver.New(t, rwserver.Options{})
	listener := serve.Listen(t, "127.0.0.1:0")
	serve.HTTP(t, listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var answer any
		switch r.URL.RequestURI() {
		case "/scrape_configs":
			answer = map[string]any{"serviceMonitor/ponds/geese/0": map[string]any{
				"job_name": "serviceMonitor/ponds/geese/0", "scrape_interval": "1s", "scrape_timeout": "1s", "metrics_path": "/metrics",
			}}
		case "/jobs/serviceMonitor%2Fponds%2Fgeese%2F0/targets?collector_id=agent-7":
			answer = []any{map[string]any{"targets": []string{target.Addr()}, "labels": map[string]string{"namespace": "ponds"}}}
		default:
			w.WriteHeader(http.StatusNotFound)
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	c := startExample(t, name, []string{
		"GODWIT_ALLOCATOR=http://" + listener.Addr().String(), "POD_NAME=agent-7", "GODWIT_REMOTE_WRITE_URL=" + server.URL(),
		"GODWIT_LISTEN=127.0.0.1", fmt.Sprintf("GODWIT_HEALTH_PORT=%d", freeport.Get(t)),
	}, tryOften)
	arrives(t, server, "geese_flying", "job", "serviceMonitor/ponds/geese/0", "namespace", "ponds")
	assert.Zero(t, c.metric(t, "otelcol_receiver_fastprometheus_allocator_failures"))
}

// One tenant exceeds its limit; the other is unaffected.
func runTenantLimitsExample(t *testing.T, name string) {
	const limit, quietSeries, noisySeries = 20, 5, 200
	server := rwserver.New(t, rwserver.Options{})
	listen := freeport.Addr(t)
	c := startExample(t, name, []string{
		"GODWIT_REMOTE_WRITE_URL=" + server.URL(), "GODWIT_LISTEN_REMOTE_WRITE=" + listen, "GODWIT_LISTEN_GRPC=" + freeport.Addr(t),
		fmt.Sprintf("GODWIT_TENANT_SERIES=%d", limit),
	}, tryOften)
	send := func(tenant string, n int) {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, "series_of{tenant=%q,number=\"%d\"} 1\n", tenant, i)
		}
		startCollector(t, fmt.Sprintf(scraping, "http://"+listen+"/api/v1/write", jobs(job("all", targets.New(t, targets.Page{Body: text.String()}).Addr(), ""))),
			fmt.Sprintf("exporters: {remotewrite: {http: {headers: {X-Scope-OrgID: %s}}}}", tenant))
	}
	send("noisy", noisySeries)
	wait.Until(t, firstSeries, func() (bool, string) {
		return c.metric(t, "otelcol_processor_cardinality_rejected_points") > 0, "nothing is turned away"
	})
	send("quiet", quietSeries)
	wait.Until(t, firstSeries, func() (bool, string) {
		n := len(server.Series("series_of", "tenant", "quiet"))
		return n == quietSeries, fmt.Sprintf("%d of %d series of the quiet tenant arrived", n, quietSeries)
	})
	noisy := len(server.Series("series_of", "tenant", "noisy"))
	assert.LessOrEqual(t, noisy, limit)
	assert.Positive(t, noisy)
	tenants := map[string]bool{}
	for _, r := range server.Requests() {
		tenants[r.Header.Get("X-Scope-Orgid")] = true
	}
	assert.Equal(t, map[string]bool{"noisy": true, "quiet": true}, tenants)
}

func runContribExample(t *testing.T, name string) {
	server := rwserver.New(t, rwserver.Options{})
	startExample(t, name, []string{
		"GODWIT_REMOTE_WRITE_URL=" + server.URL(), "GODWIT_TARGET=" + geese(t).Addr(), fmt.Sprintf("GODWIT_HEALTH_PORT=%d", freeport.Get(t)),
	}, fmt.Sprintf(scrapeOften, "prometheus"))
	series := arrives(t, server, "geese_flying", "job", "node", "env", "production", "cluster", "main", "flock", "north")
	assert.NotEmpty(t, series.Labels.Get(model.InstanceLabel))
	assert.Empty(t, server.Series("go_threads"))
	require.NotEmpty(t, server.Requests())
	assert.Equal(t, rwserver.V1, server.Requests()[0].Version, "as contrib's does")
}
