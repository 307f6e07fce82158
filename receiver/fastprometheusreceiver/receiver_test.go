// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

const (
	static = `
config:
  scrape_configs:
    - job_name: test
      scrape_interval: 100ms
      scrape_timeout: 100ms
      static_configs: [{targets: [%s]}]
`
	// leisurely gives busy machines enough time to respond.
	leisurely = `
config:
  scrape_configs:
    - job_name: test
      scrape_interval: 1s
      scrape_timeout: 1s
      static_configs: [{targets: [%s]}]
`
	text = "# TYPE requests counter\nrequests{code=\"200\"} 42\nrequests{code=\"500\"} 1\n"
)

func TestScrape(t *testing.T) {
	target := newEndpoint(t, text)
	var header atomic.Pointer[http.Header]
	target.handle(func(w http.ResponseWriter, r *http.Request) {
		header.Store(&r.Header)
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprint(w, text)
	})
	r := run(t, fmt.Sprintf(leisurely, target.address()))
	got := r.await(t, is("requests", 42))
	assert.Equal(t, "test", got.job)
	assert.Equal(t, target.address(), got.instance)
	assert.WithinDuration(t, time.Now(), got.at, patience)
	r.await(t, is("requests", 1))
	r.await(t, is("up", 1))
	r.await(t, is("scrape_samples_scraped", 2))

	sent := *header.Load()
	assert.Equal(t, "godwit/1.2.3", sent.Get("User-Agent"))
	assert.Equal(t, "1", sent.Get("X-Prometheus-Scrape-Timeout-Seconds"))
	assert.Equal(t, "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"+
		"application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"+
		"text/plain;version=0.0.4;q=0.3,*/*;q=0.2", sent.Get("Accept"))
	assert.Equal(t, 1, r.log.Len(), "nothing worth a line has happened but that memory is not used again")
}

func TestTargetGoesDownAndUp(t *testing.T) {
	target := newEndpoint(t, text)
	r := run(t, fmt.Sprintf(static, target.address()))
	r.await(t, is("requests", 42))
	target.handle(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusTeapot) })
	r.await(t, is("up", 0))
	r.await(t, stale("requests"))
	r.sink.Reset()
	target.text(text)
	r.await(t, is("requests", 42))

	down := r.log.FilterMessage("Target is down").All()
	require.NotEmpty(t, down)
	assert.Contains(t, down[0].ContextMap()["error"], "server returned HTTP status 418")
	assert.Equal(t, target.URL+"/metrics", down[0].ContextMap()["target"])
	require.Eventually(t, func() bool { return r.log.FilterMessage("Target is up again").Len() > 0 }, patience, glance)
	assert.Positive(t, r.failures(t, "status"))
}

// failures returns how many scrapes have failed for the given reason.
func (r *rig) failures(t *testing.T, reason string) int64 {
	t.Helper()
	for i := range reasons {
		if reasons[i] == reason {
			return r.counters.failures[i].Load()
		}
	}
	require.Fail(t, "no such reason")
	return 0
}

func TestFailures(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		reason string
		words  string
	}{
		"refused": {nil, "connection_refused", "connection refused"},
		"slow":    {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "timeout", "context deadline exceeded"},
		"status":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }, "status", "server returned HTTP status 404 Not Found"},
		"page of another kind": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>welcome</html>\n")
		}, "parse", ""},
		"bad gzip": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			fmt.Fprint(w, "not gzip at all")
		}, "encoding", ""},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, text)
		}, "connection_reset", ""},
		"too large":        {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("# a comment\n", 1000)) }, "body_size", "body size limit exceeded"},
		"too many samples": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "a 1\nb 1\nc 1\n") }, "limit", "sample limit exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			address := strings.TrimPrefix(closed.URL, "http://")
			if test.answer != nil {
				target := newEndpoint(t, "")
				target.handle(test.answer)
				address = target.address()
			}
			r := run(t, fmt.Sprintf(static, address)+"      body_size_limit: 1KB\n      sample_limit: 2\n")
			r.await(t, is("up", 0))
			require.Eventually(t, func() bool { return r.log.FilterMessage("Target is down").Len() == 1 }, patience, glance)
			if name != "slow" { // on a busy machine others may be slow once
				assert.Positive(t, r.failures(t, test.reason)+r.failures(t, "timeout"))
			} else {
				assert.Positive(t, r.failures(t, test.reason))
			}
			entry := r.log.FilterMessage("Target is down").All()[0]
			if test.words != "" && r.failures(t, "timeout") == 0 {
				assert.Contains(t, entry.ContextMap()["error"], test.words)
			}
			require.Eventually(t, func() bool { return r.counters.scrapes.Load() > 5 }, patience, glance)
			assert.Equal(t, 1, r.log.FilterMessage("Target is down").Len(), "a line for a change, not for a scrape")
		})
	}
}

// A target that service discovery no longer finds is marked stale when it has missed two scrapes.
func TestTargetVanishes(t *testing.T) {
	stays, goes := newEndpoint(t, text), newEndpoint(t, text)
	file := filepath.Join(t.TempDir(), "targets.json")
	fill(t, file, fmt.Sprintf(`[{"targets": [%q, %q]}]`, stays.address(), goes.address()))
	r := run(t, fmt.Sprintf(`
config:
  scrape_configs:
    - job_name: test
      scrape_interval: 200ms
      scrape_timeout: 200ms
      file_sd_configs: [{files: [%q]}]
`, file))
	r.await(t, of(stays, is("requests", 42)))
	r.await(t, of(goes, is("requests", 42)))

	fill(t, file, fmt.Sprintf(`[{"targets": [%q]}]`, stays.address()))
	marker := r.await(t, of(goes, stale("requests")))
	r.await(t, of(goes, stale("up")))
	for _, p := range r.some(of(goes, is("requests", 42))) {
		assert.True(t, p.at.Before(marker.at), "the marker comes last")
	}
	assert.Empty(t, r.some(of(stays, stale("requests"))))
	require.Eventually(t, func() bool { return len(r.Snapshot().Jobs[0].Targets) == 1 }, patience, glance)
}

func TestTargetLimit(t *testing.T) {
	a, b := newEndpoint(t, text), newEndpoint(t, text)
	r := run(t, fmt.Sprintf(static, a.address()+", "+b.address())+"      target_limit: 1\n")
	r.await(t, of(a, is("up", 0)))
	r.await(t, of(b, is("up", 0)))
	assert.Zero(t, a.served.Load()+b.served.Load())
	assert.Positive(t, r.failures(t, "target_limit"))
	down := r.log.FilterMessage("Target is down").All()
	assert.Equal(t, "target_limit exceeded (number of targets: 2, limit: 1)", down[0].ContextMap()["error"])
}

func TestFailureLogFile(t *testing.T) {
	target := newEndpoint(t, text)
	target.handle(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	file := filepath.Join(t.TempDir(), "failures.log")
	r := run(t, fmt.Sprintf(static, target.address())+fmt.Sprintf("      scrape_failure_log_file: %q\n", file))
	r.await(t, is("up", 0))
	var line string
	require.Eventually(t, func() bool {
		content, err := os.ReadFile(file)
		line, _, _ = strings.Cut(string(content), "\n")
		return err == nil && line != ""
	}, patience, glance)
	assert.Contains(t, line, `"level":"ERROR"`)
	assert.Contains(t, line, `"msg":"server returned HTTP status 502 Bad Gateway"`)
	assert.Contains(t, line, `"job_name":"test"`)
	assert.Contains(t, line, `"target":"`+target.URL+`/metrics"`)
}

// Relabelling may set a unix socket as the address of a target.
func TestUnixSocket(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "metrics")
	listener, err := net.Listen("unix", socket)
	require.NoError(t, err)
	host := make(chan string, 1)
	server := &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case host <- r.Host:
		default:
		}
		fmt.Fprint(w, text)
	})}
	var serving sync.WaitGroup
	serving.Go(func() { assert.ErrorIs(t, server.Serve(listener), http.ErrServerClosed) })
	defer serving.Wait()
	defer server.Close()
	r := run(t, fmt.Sprintf(leisurely, "behind:80")+fmt.Sprintf("      relabel_configs: [{target_label: __unix_socket__, replacement: %q}]\n", socket))
	got := r.await(t, is("requests", 42))
	assert.Equal(t, "behind:80", got.instance)
	assert.Equal(t, "behind:80", <-host)
}

// A permanent error does not affect the next scrape.
func TestPermanentRefusal(t *testing.T) {
	target := newEndpoint(t, text)
	next, err := consumer.NewMetrics(func(context.Context, pmetric.Metrics) error {
		return consumererror.NewPermanent(errors.New("bad data"))
	})
	require.NoError(t, err)
	r := run(t, fmt.Sprintf(static, target.address()), withConsumer(next))
	require.Eventually(t, func() bool { return r.out.refusals.scrapes.Load() >= 5 }, patience, glance)
	assert.Zero(t, r.skips.total())
}

func TestSnapshot(t *testing.T) {
	good, bad := newEndpoint(t, text), newEndpoint(t, text)
	bad.handle(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	r := run(t, fmt.Sprintf(`
config:
  scrape_configs:
    - job_name: b
      scrape_interval: 100ms
      scrape_timeout: 90ms
      static_configs: [{targets: [%s, %s], labels: {__meta_zone: east}}]
      relabel_configs: [{source_labels: [__meta_zone], target_label: zone}]
    - job_name: a
      static_configs: [{targets: [gone:1, gone:2]}]
      keep_dropped_targets: 1
      relabel_configs: [{action: drop}]
`, good.address(), bad.address()))
	require.Eventually(t, func() bool {
		states := r.census()
		return states[stateHealthy] == 1 && states[stateFailing] == 1 && states[stateDropped] == 2
	}, patience, glance)
	s := r.Snapshot()
	require.Len(t, s.Jobs, 2)
	assert.Equal(t, "a", s.Jobs[0].Name)
	assert.Equal(t, 2, s.Jobs[0].Drops)
	require.Len(t, s.Jobs[0].Dropped, 1)
	assert.Contains(t, s.Jobs[0].Dropped[0].Get("__address__"), "gone:")
	require.Len(t, s.Jobs[1].Targets, 2)
	for _, target := range s.Jobs[1].Targets {
		assert.Equal(t, "east", target.Discovered.Get("__meta_zone"))
		assert.Equal(t, "east", target.Labels.Get("zone"))
		assert.Equal(t, 100*time.Millisecond, target.Interval)
		assert.Equal(t, 90*time.Millisecond, target.Timeout)
		assert.WithinDuration(t, time.Now(), target.LastScrape, patience)
		if target.URL == good.URL+"/metrics" {
			assert.Equal(t, stateHealthy, target.State)
			assert.Empty(t, target.LastError)
			assert.Equal(t, 2, target.Samples)
			assert.Positive(t, target.LastDuration)
		} else {
			assert.Equal(t, stateFailing, target.State)
			assert.Contains(t, target.LastError, "404")
		}
	}
}

func TestTelemetry(t *testing.T) {
	target := newEndpoint(t, text)
	r := run(t, fmt.Sprintf(leisurely, target.address()))
	r.await(t, is("requests", 42))
	for name, least := range map[string]float64{
		"scrapes": 1, "samples_scraped": 2, "wire_bytes": 10, "body_bytes": 10, "plans": 0, "plan_bytes": 0,
		"plan_misses": 0, "plan_hits": 0, "process_time": 0, "refused_scrapes": 0, "skipped_scrapes": 0, "limited_samples": 0, "late_samples": 0,
		"broken_histograms": 0, "in_flight_scrapes": 0, "backlog_bytes": 0,
		"scrape_failures": 0, "config_reloads": 0, "targets": 1,
	} {
		got, err := r.telemetry.GetMetric("otelcol_receiver_fastprometheus_" + name)
		require.NoError(t, err, name)
		assert.GreaterOrEqual(t, total(t, got), least, name)
	}
	accepted, err := r.telemetry.GetMetric("otelcol_receiver_accepted_metric_points")
	require.NoError(t, err)
	assert.GreaterOrEqual(t, total(t, accepted), 7.0)
}

// Together, the members of a group scrape each target once.
func TestSharding(t *testing.T) {
	target := newEndpoint(t, text)
	var list strings.Builder
	for i := range 30 {
		fmt.Fprintf(&list, "        - {targets: [%q], labels: {n: \"%d\"}}\n", target.address(), i)
	}
	var total int
	for index := range 2 {
		r := run(t, fmt.Sprintf("sharding: {members: 2, index: %d}\n", index)+`
config:
  scrape_configs:
    - job_name: test
      static_configs:
`+list.String())
		require.Eventually(t, func() bool { return len(r.Snapshot().Jobs[0].Targets) > 0 }, patience, glance)
		job := r.Snapshot().Jobs[0]
		assert.Equal(t, 30, len(job.Targets)+job.Elsewhere)
		assert.Equal(t, job.Elsewhere, r.census()[stateElsewhere])
		total += len(job.Targets)
	}
	assert.Equal(t, 30, total)
}

func TestAlignScrapes(t *testing.T) {
	a, b := newEndpoint(t, text), newEndpoint(t, text)
	r := run(t, "align_scrapes: true"+fmt.Sprintf(leisurely, a.address()+", "+b.address()))
	// On a busy machine some scrapes are late, and late ones have their actual time.
	r.await(t, of(a, func(first point) bool {
		return len(r.some(of(b, func(second point) bool { return second.at.Sub(first.at)%time.Second == 0 }))) > 0
	}))
}

func TestSeriesLimit(t *testing.T) {
	target := newEndpoint(t, text)
	r := run(t, "series_limit: 2"+fmt.Sprintf(leisurely, target.address()))
	r.await(t, is("requests", 42))
	target.text(text + "extra 7\n")
	r.await(t, is("scrape_samples_scraped", 3))
	assert.Positive(t, r.counters.limited.Load())
	assert.Empty(t, r.some(is("extra", 7)))
	assert.Empty(t, r.some(is("up", 0)))
}

func TestNoStaleMarkers(t *testing.T) {
	target := newEndpoint(t, text)
	r := run(t, "stale_markers: false"+fmt.Sprintf(leisurely, target.address()))
	r.await(t, is("requests", 42))
	target.text("other 7\n")
	r.await(t, is("other", 7))
	assert.Empty(t, r.some(func(p point) bool { return p.stale }))
}

// A page with a target_info of its own does not rename the job if that is not wanted, and its attributes are there.
func TestKeepJobAndInstance(t *testing.T) {
	target := newEndpoint(t, text+"# TYPE target_info gauge\ntarget_info{\"service.name\"=\"theirs\",\"service.instance.id\"=\"x\",\"os.type\"=\"linux\"} 1\n")
	identity := func(config string) map[string]any {
		r := run(t, config+fmt.Sprintf(leisurely, target.address()))
		r.await(t, is("up", 1))
		attributes := r.sink.AllMetrics()[0].ResourceMetrics().At(0).Resource().Attributes().AsRaw()
		for _, other := range []string{"server.port", "server.address", "url.scheme"} {
			delete(attributes, other)
		}
		return attributes
	}
	assert.Equal(t, map[string]any{"service.name": "theirs", "service.instance.id": "x", "os.type": "linux"}, identity(""))
	assert.Equal(t, map[string]any{
		"service.name": "test", "service.instance.id": target.address(), "service_name": "theirs", "service_instance_id": "x", "os.type": "linux",
	}, identity("keep_job_and_instance: true"))
}

// Series without an instance, because the page has an empty one like a Pushgateway's or because a rule removed it, do
// not get the instance of their target if job and instance are to be those of Prometheus.
func TestSeriesWithoutInstance(t *testing.T) {
	target := newEndpoint(t, "pushed{job=\"batch\",instance=\"\"} 7\nnobodys{job=\"\",instance=\"\"} 7\nruled{zone=\"a\"} 7\nplain 7\n")
	owners := func(config string) map[string]string {
		r := run(t, config+fmt.Sprintf(leisurely, target.address())+"      honor_labels: true\n"+
			"      metric_relabel_configs: [{source_labels: [__name__], regex: ruled, target_label: instance, replacement: \"\"}]\n")
		r.await(t, is("plain", 7))
		of := map[string]string{}
		for _, md := range r.sink.AllMetrics() {
			for _, rm := range md.ResourceMetrics().All() {
				attributes := rm.Resource().Attributes().AsRaw()
				for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
					of[m.Name()] = fmt.Sprint(attributes["service.name"], attributes["job"], attributes["service.instance.id"], attributes["instance"])
				}
			}
		}
		return of
	}
	at := target.address()
	own := fmt.Sprint("test", "test", at, at)
	kept := owners("keep_job_and_instance: true\njob_and_instance: true")
	assert.Equal(t, fmt.Sprint("batch", "batch", nil, nil), kept["pushed"])
	assert.Equal(t, fmt.Sprint(nil, nil, nil, nil), kept["nobodys"])
	assert.Equal(t, fmt.Sprint("test", "test", nil, nil), kept["ruled"])
	assert.Equal(t, own, kept["plain"])
	assert.Equal(t, own, kept["up"])
	for name, of := range owners("job_and_instance: true") {
		want := own
		if name == "pushed" {
			want = fmt.Sprint("batch", "batch", at, at)
		}
		assert.Equal(t, want, of, name)
	}
}

// The resource of every series has its job and instance under both names.
func TestJobAndInstance(t *testing.T) {
	target := newEndpoint(t, text+"a{job=\"theirs\",instance=\"there:80\"} 7\n")
	r := run(t, "job_and_instance: true"+fmt.Sprintf(leisurely, target.address())+"      honor_labels: true\n")
	r.await(t, is("a", 7))
	jobs := map[string]bool{}
	for _, md := range r.sink.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			attributes := rm.Resource().Attributes().AsRaw()
			assert.Equal(t, attributes["service.name"], attributes["job"])
			assert.Equal(t, attributes["service.instance.id"], attributes["instance"])
			jobs[fmt.Sprint(attributes["job"], " at ", attributes["instance"])] = true
		}
	}
	assert.Equal(t, map[string]bool{"test at " + target.address(): true, "theirs at there:80": true}, jobs)

	r = run(t, fmt.Sprintf(leisurely, target.address()))
	r.await(t, is("up", 1))
	_, ok := r.sink.AllMetrics()[0].ResourceMetrics().At(0).Resource().Attributes().Get("job")
	assert.False(t, ok, "not unless it is asked for")
}
