// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/grpc/codes"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/otlpserver"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/targets"
	"github.com/godwit-otel/godwit/e2e/wait"
	"github.com/godwit-otel/godwit/e2e/wire"
)

// An agent that scrapes, receives OTLP, and sends it on by streams. Its scrape timeout is long: a scrape that fails on
// a busy machine would fire an alert.
const watchedAgent = `
extensions: {runtimeprofile: {refresh_interval: 1s}}
receivers:
  otlp: {protocols: {grpc: {endpoint: %[1]s}}}
  fastprometheus: {config: {global: {scrape_interval: 2s, scrape_timeout: 2s}, scrape_configs: [{job_name: ok, static_configs: [{targets: [%[2]q]}]}]}}
processors:
  memory_limiter: {check_interval: 1s, limit_mib: 1024}
  cardinality: {rules: [{name: all, max_series: 1000000}]}
exporters:
  remotewrite: {endpoint: %[3]q, batch: {timeout: 50ms}}
  otlpstream: {endpoint: %[4]s, tls: {insecure: true}, retry_on_failure: {initial_interval: 50ms, max_interval: 200ms}}
service:
  extensions: [health_check, runtimeprofile]
  pipelines:
    metrics: {receivers: [fastprometheus, otlp], processors: [memory_limiter, cardinality], exporters: [remotewrite]}
    traces: {receivers: [otlp], processors: [memory_limiter], exporters: [otlpstream]}
    logs: {receivers: [otlp], processors: [memory_limiter], exporters: [otlpstream]}
`

// A gateway for that agent.
const watchedGateway = `
extensions: {runtimeprofile: {refresh_interval: 1s}}
receivers:
  otlpstream: {protocols: {grpc: {endpoint: %[1]s}}}
  remotewrite: {endpoint: %[2]s}
processors:
  memory_limiter: {check_interval: 1s, limit_mib: 1024}
  cardinality: {rules: [{name: all, max_series: 1000000}]}
exporters:
  remotewrite: {endpoint: %[3]q, batch: {timeout: 50ms}}
  otlp_grpc: {endpoint: %[4]s, tls: {insecure: true}}
service:
  extensions: [health_check, runtimeprofile]
  pipelines:
    metrics: {receivers: [remotewrite, otlpstream], processors: [memory_limiter, cardinality], exporters: [remotewrite]}
    traces: {receivers: [otlpstream], processors: [memory_limiter], exporters: [otlp_grpc]}
    logs: {receivers: [otlpstream], processors: [memory_limiter], exporters: [otlp_grpc]}
`

// produce sends spans, log records and points until the test ends, whatever the responses.
func produce(t *testing.T, addr string) {
	t.Helper()
	l, y, conn := &ledger{padding: 1000}, newTally(), dial(t, addr)
	ctx := wait.Context(t, func() bool { return false })
	var producers sync.WaitGroup
	for range floodSenders {
		producers.Go(func() {
			for wait.Pause(ctx, steadyPause) {
				_ = l.send(ctx, conn)
			}
		})
	}
	producers.Go(func() {
		for wait.Pause(ctx, steadyPause) {
			_ = y.send(ctx, conn, 0)
		}
	})
	t.Cleanup(producers.Wait)
}

// stray sends, until the test ends, what cannot be stored: new sums beyond a limit, parties that compete for a shared
// limit, and points without a timestamp.
func stray(t *testing.T, addr string) {
	t.Helper()
	client, begin := pmetricotlp.NewGRPCClient(dial(t, addr)), pcommon.NewTimestampFromTime(time.Now())
	ctx := wait.Context(t, func() bool { return false })
	var sender sync.WaitGroup
	sender.Go(func() {
		for number := 0; wait.Pause(ctx, 10*steadyPause); number++ {
			_, _ = client.Export(ctx, pmetricotlp.NewExportRequestFromMetrics(strays(begin, number)))
		}
	})
	t.Cleanup(sender.Wait)
}

func strays(begin pcommon.Timestamp, number int) pmetric.Metrics {
	md := pmetric.NewMetrics()
	all := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	point := func(to pmetric.NumberDataPointSlice, name string, value int) pmetric.NumberDataPoint {
		p := to.AppendEmpty()
		p.Attributes().PutInt(name, int64(value))
		p.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
		p.SetIntValue(int64(number))
		return p
	}
	laps := all.AppendEmpty()
	laps.SetName("laps")
	sum := laps.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	for goose := range 10 {
		point(sum.DataPoints(), "goose", goose).SetStartTimestamp(begin)
	}
	shared := all.AppendEmpty()
	shared.SetName("shared")
	places := shared.SetEmptyGauge().DataPoints()
	for i := range 8 {
		point(places, "place", i).Attributes().PutStr("party", "first")
		if number > 0 {
			point(places, "place", i).Attributes().PutStr("party", "late")
		}
	}
	timeless := all.AppendEmpty()
	timeless.SetName("timeless")
	point(timeless.SetEmptyGauge().DataPoints(), "goose", 0).SetTimestamp(0)
	return md
}

// writeWithoutName sends a series without a name, which is invalid.
func writeWithoutName(ctx context.Context, url string) {
	raw, err := (&prompb.WriteRequest{Timeseries: []prompb.TimeSeries{{
		Labels:  []prompb.Label{{Name: "job", Value: "geese"}},
		Samples: []prompb.Sample{{Timestamp: time.Now().UnixMilli()}},
	}}}).Marshal()
	if err != nil {
		return
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(snappy.Encode(nil, raw)))
	if err != nil {
		return
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("Content-Encoding", "snappy")
	if resp, err := http.DefaultClient.Do(req); err == nil { // the response does not matter
		resp.Body.Close()
	}
}

// startWell starts an agent and a gateway without any problem.
func startWell(t *testing.T) map[string]*collector {
	t.Helper()
	metrics, rest := rwserver.New(t, rwserver.Options{CountOnly: true}), otlpserver.New(t, otlpserver.Options{CountOnly: true})
	streams, writes, programs := freeport.Addr(t), freeport.Addr(t), freeport.Addr(t)
	gateway := startDistribution(t, "godwit-gateway", fmt.Sprintf(watchedGateway, streams, writes, metrics.URL(), rest.GRPCAddr()))
	agent := startDistribution(t, "godwit-agent",
		fmt.Sprintf(watchedAgent, programs, geese(t).Addr(), "http://"+writes+"/api/v1/write", streams))
	produce(t, programs)
	return map[string]*collector{"agent:8888": agent, "gateway:8888": gateway}
}

// All problems of an agent: with jobs, limits, destinations, memory.
const illAgent = `
receivers:
  otlp/tiny: {protocols: {grpc: {endpoint: %[1]s}}}
  fastprometheus:
    series_limit: 20
    reload_interval: 100ms
    target_allocator: {endpoint: "http://127.0.0.1:1", interval: 1s, collector_id: nobody}
    config:
      scrape_config_files: [%[2]q]
      scrape_configs:
        - {job_name: refused, static_configs: [{targets: ["127.0.0.1:1"]}]}
        - {job_name: many, scrape_interval: 500ms, scrape_timeout: 500ms, static_configs: [{targets: [%[3]q]}]}
        - {job_name: late, static_configs: [{targets: [%[4]q]}]}
  fastprometheus/tiny: {config: {scrape_configs: [{job_name: many, scrape_interval: 500ms, scrape_timeout: 500ms, static_configs: [%[8]s]}]}}
processors:
  memory_limiter/tiny: {check_interval: 1s, limit_mib: 2, spike_limit_mib: 1}
  cardinality: {rules: [], rules_file: %[5]q, rules_poll_interval: 1s, idle_timeout: 10s, overflow: {interval: 1s}}
exporters:
  nop:
  remotewrite/refusing: {endpoint: %[6]q, batch: {timeout: 50ms}}
  remotewrite/down: {endpoint: %[7]q, batch: {timeout: 50ms}, queue: {size: 20000, on_full: drop_newest}, retry: {initial_interval: 50ms, max_interval: 100ms}, circuit_breaker: {open_for: 200ms}}
service:
  pipelines:
    metrics/refusing: {receivers: [otlp, fastprometheus], exporters: [remotewrite/refusing]}
    metrics/down: {receivers: [fastprometheus, otlp], exporters: [remotewrite/down]}
    metrics/tiny: {receivers: [otlp/tiny, fastprometheus/tiny], processors: [memory_limiter/tiny], exporters: [nop]}
    traces/tiny: {receivers: [otlp/tiny], processors: [memory_limiter/tiny], exporters: [nop]}
    logs/tiny: {receivers: [otlp/tiny], processors: [memory_limiter/tiny], exporters: [nop]}
`

// A gateway with small limits, a slow and picky destination, and another one that is down.
const illGateway = `
receivers:
  otlpstream: {in_flight: {bytes: 20000}}
  otlp/queued: {protocols: {grpc: {endpoint: %[1]s}}}
processors:
  memory_limiter/tiny: {check_interval: 1s, limit_mib: 2, spike_limit_mib: 1}
  cardinality: {rules: [{name: tight, max_series: 3}], idle_timeout: 10s}
  cardinality/refused:
    idle_timeout: 10s
    overflow: {interval: 1s}
    rules:
      - {name: few, match: {metric: laps}, max_series: 3}
      - {name: shared, match: {metric: shared}, max_series: 8, adaptive: {share_by: ["attribute:party"]}}
exporters:
  otlp_grpc: {sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}
  otlp_grpc/down: {endpoint: "127.0.0.1:1", tls: {insecure: true}, sending_queue: {queue_size: 2}, retry_on_failure: {max_elapsed_time: 0}}
  otlp_grpc/refusing: {endpoint: %[3]s, tls: {insecure: true}, sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}
  remotewrite/refusing: {endpoint: %[2]q, batch: {timeout: 50ms}}
service:
  pipelines:
    metrics/refusing: {receivers: [remotewrite], exporters: [remotewrite/refusing]}
    metrics/refused: {receivers: [otlp/queued], processors: [cardinality/refused], exporters: [otlp_grpc/refusing]}
    traces/queued: {receivers: [otlp/queued], exporters: [otlp_grpc/down]}
    logs/queued: {receivers: [otlp/queued], exporters: [otlp_grpc/down]}
`

// fewBlocks is a command prefix that limits the size of files: beyond it, writes fail as on a full disk.
var fewBlocks = []string{"sh", "-c", `ulimit -f 200 && trap "" XFSZ && exec "$@"`, "sh"}

// startIll starts agents and a gateway with every problem.
func startIll(t *testing.T) map[string]*collector {
	t.Helper()
	metrics, refusing, down := rwserver.New(t, rwserver.Options{CountOnly: true}), rwserver.New(t, rwserver.Options{CountOnly: true}), rwserver.New(t, rwserver.Options{CountOnly: true})
	refusing.Always(rwserver.Step{Status: 400, Body: "out of order"})
	down.Always(rwserver.Step{Status: 503})
	rest := otlpserver.New(t, otlpserver.Options{CountOnly: true})
	rest.Always(otlpserver.Step{Delay: 50 * time.Millisecond})
	never := otlpserver.New(t, otlpserver.Options{CountOnly: true})
	never.Always(otlpserver.Step{Code: codes.InvalidArgument})

	streams, writes, queued := freeport.Addr(t), freeport.Addr(t), freeport.Addr(t)
	gateway := startDistribution(t, "godwit-gateway",
		fmt.Sprintf(watchedGateway, streams, writes, metrics.URL(), rest.GRPCAddr()), fmt.Sprintf(illGateway, queued, refusing.URL(), never.GRPCAddr()))

	dir := t.TempDir()
	jobsFile, rulesFile := filepath.Join(dir, "jobs.yaml"), filepath.Join(dir, "rules.yaml")
	put := func(file, text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	put(jobsFile, "scrape_configs: []\n")
	put(rulesFile, "rules: [{name: tight, max_series: 3}]\n")
	many := targets.NewFunc(t, func(scrape int) targets.Page {
		var text strings.Builder
		for i := range 30 {
			fmt.Fprintf(&text, "fresh{number=\"%d\"} 1\n", 30*scrape+i)
		}
		return targets.Page{Body: text.String()}
	})
	late := targets.NewFunc(t, func(int) targets.Page {
		const broken = "# TYPE broken histogram\nbroken_bucket{le=\"1\"} 5\nbroken_bucket{le=\"+Inf\"} 3\nbroken_sum 1\nbroken_count 3\n"
		return targets.Page{Body: fmt.Sprintf("%stomorrow 1 %d\n", broken, time.Now().Add(time.Hour).UnixMilli())}
	})
	herd := make([]string, 20) // so many that the pipeline limits them, not a target's own limit
	for i := range herd {
		herd[i] = fmt.Sprintf("{targets: [%q], labels: {number: %q}}", many.Addr(), strconv.Itoa(i))
	}
	programs, tiny := freeport.Addr(t), freeport.Addr(t)
	w := wire.New(t, streams)
	agent := startDistribution(t, "godwit-agent",
		fmt.Sprintf(watchedAgent, programs, geese(t).Addr(), "http://"+writes+"/api/v1/write", w.Addr()),
		fmt.Sprintf(illAgent, tiny, jobsFile, many.Addr(), late.Addr(), rulesFile, refusing.URL(), down.URL(), strings.Join(herd, ", ")))
	stored := freeport.Addr(t)
	stuck := startUnder(t, fewBlocks, "godwit-agent", fmt.Sprintf(impatient, down.URL(), stored), withQueue)
	for _, addr := range []string{programs, tiny, queued, stored} {
		produce(t, addr)
	}
	for _, addr := range []string{programs, queued} {
		stray(t, addr)
	}
	// Files become invalid, connections are cut, and destinations reject some data.
	put(rulesFile, "rules: [{name: without_end\n")
	ctx := wait.Context(t, func() bool { return false })
	var trouble sync.WaitGroup
	trouble.Go(func() {
		for i := 0; wait.Pause(ctx, time.Second); i++ {
			_ = os.WriteFile(jobsFile, fmt.Appendf(nil, "scrape_configs: [{job_name: without_end_%d\n", i), 0o600)
			w.Cut()
			rest.Then(otlpserver.Step{Code: codes.InvalidArgument}, otlpserver.Step{Code: codes.InvalidArgument})
			writeWithoutName(ctx, "http://"+writes+"/api/v1/write")
		}
	})
	t.Cleanup(trouble.Wait)
	return map[string]*collector{"illagent:8888": agent, "illgateway:8888": gateway, "stuckagent:8888": stuck}
}
