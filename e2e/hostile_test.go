// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/process"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/targets"
	"github.com/godwit-otel/godwit/e2e/wait"
)

const (
	// The share that a healthy neighbour must still get of what it gets alone.
	fairShare = 0.9
	// How often a share is measured before it counts as too small: the machine has other load, and an attack that
	// starves a neighbour does so each time.
	shareTries = 10
	// The limits under attack: memory in MiB, including the binary's pages, and CPU cores while an attacker sends a few
	// times a second, and after it.
	maxBesieged                    = 384
	maxBesiegedCores, maxRestCores = 1.3, 0.5
)

// siegeWindow returns the duration of a measurement, which GODWIT_HOSTILE can set.
func siegeWindow(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("GODWIT_HOSTILE")
	if text == "" {
		return 1200 * time.Millisecond
	}
	window, err := time.ParseDuration(text)
	require.NoError(t, err)
	return window
}

// tried reports whether to run a case: with GODWIT_HOSTILE all, otherwise every fifth and the most telling ones.
func tried(i int, name string) bool {
	return os.Getenv("GODWIT_HOSTILE") != "" || i%5 == 0 || slices.Contains(telling, name)
}

var telling = []string{
	"60,000 labels on a line", "odd NaN", "gzip bomb", "hanging", "endless line", "files that are not there", "a pipe",
	"60,000 attributes", "nothing but points", "nothing but samples", "slow bodies", "heads that never end", "answers not read", "large messages that stop",
	"2.0 a megabyte for each of many exemplars",
}

// siege is a process under attack that also serves healthy neighbours.
type siege struct {
	t      *testing.T
	p      *process.Process
	window time.Duration
	// control counts the requests of a client to a server that is not attacked.
	control *atomic.Int64
	// gets returns how much each neighbour has got so far.
	gets map[string]func() int
}

// stretch measures, over one window, what each neighbour and the control get, and the cores that the process uses.
func (s *siege) stretch() (got map[string]int, beats int, cores float64) {
	s.t.Helper()
	got = map[string]int{}
	beats = -int(s.control.Load())
	for name, gets := range s.gets {
		got[name] = -gets()
	}
	cpu, start := s.p.Usage().CPU, time.Now()
	wait.Pause(s.t.Context(), s.window)
	for name, gets := range s.gets {
		got[name] += gets()
	}
	beats += int(s.control.Load())
	require.True(s.t, s.p.Running(), "it ended by itself")
	return got, beats, (s.p.Usage().CPU - cpu).Seconds() / time.Since(start).Seconds()
}

// withstand measures the neighbours alone, then during an attack, which goes on until its context ends, and then after
// it.
func (s *siege) withstand(attack func(ctx context.Context)) {
	s.t.Helper()
	alone, calm, _ := s.stretch()
	for name, n := range alone {
		require.Positive(s.t, n, "%s gets nothing even alone", name)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	var attacker sync.WaitGroup
	attacker.Go(func() { attack(ctx) })
	s.share("beside the attack", alone, calm, maxBesiegedCores)
	cancel()
	attacker.Wait()
	s.share("after the attack", alone, calm, maxRestCores)
	s.end()
}

// share measures until each neighbour gets its share and the process stays below its CPU limit. calm is what the
// control got while the neighbours were alone: if the machine now has less time for the control, it has less for the
// neighbours too.
func (s *siege) share(when string, alone map[string]int, calm int, cores float64) {
	s.t.Helper()
	var why []string
	for range shareTries {
		why = nil
		got, beats, took := s.stretch()
		load := min(1, float64(beats)/float64(max(calm, 1)))
		for name, n := range got {
			if float64(n) < fairShare*load*float64(alone[name])-1 {
				why = append(why, fmt.Sprintf("%s gets %d, %d alone, and the control %d, %d then", name, n, alone[name], beats, calm))
			}
		}
		if took > cores {
			why = append(why, fmt.Sprintf("%.2f cores are taken", took))
		}
		if why == nil {
			return
		}
	}
	s.t.Errorf("%s: %s", when, strings.Join(why, ", "))
}

// end stops the process, and checks its peak memory and its log.
func (s *siege) end() {
	s.t.Helper()
	peak := mib(s.p.Usage().PeakRSS)
	s.t.Logf("%.0f MiB of memory were held at the most", peak)
	assert.Less(s.t, peak, float64(maxBesieged), "memory")
	assert.Zero(s.t, ended(s.t, s.p, syscall.SIGTERM, endWait))
	assert.Empty(s.t, broken.FindAllString(s.p.Output(), 3))
}

const besiegedAgent = `
exporters:
  remotewrite: {endpoint: %s, batch: {timeout: 100ms}}
processors: {cardinality: {}}
service:
  pipelines: {metrics: {receivers: [fastprometheus], processors: [cardinality], exporters: [remotewrite]}}
receivers:
  fastprometheus:
    reload_interval: 200ms
    config:
      global: {scrape_interval: 1s, scrape_timeout: 1s}
      %s
`

// besiegeAgent starts an agent that scrapes a good target ten times a second, beside the jobs in lines. overlay is
// merged into its configuration.
func besiegeAgent(t *testing.T, overlay string, lines ...string) *siege {
	t.Helper()
	arrived := newArrivals()
	server := rwserver.New(t, rwserver.Options{CountOnly: true, Observe: arrived.observe})
	good := targets.NewFunc(t, func(scrape int) targets.Page { return targets.Page{Body: fmt.Sprintf(matrixPage, scrape)} })
	lines = append(lines, job("good", good.Addr(), ", scrape_interval: 100ms, scrape_timeout: 100ms"))
	c := startCollector(t, fmt.Sprintf(besiegedAgent, server.URL(), jobs(lines...)), overlay)
	s := &siege{t, c.Process, siegeWindow(t), newControl(t), map[string]func() int{"the good target": func() int { n, _, _, _ := arrived.of("good"); return n }}}
	wait.Until(t, firstSeries, func() (bool, string) { return s.gets["the good target"]() > fewBeats, "nothing is scraped" })
	return s
}

const besiegedGateway = `
receivers:
  otlpstream: {protocols: {grpc: {endpoint: %s}, http: {endpoint: %s}}}
  remotewrite: {endpoint: %s}
processors: {cardinality: {}}
exporters: {remotewrite: {endpoint: %s, batch: {timeout: 100ms}}, nop: {}}
service:
  pipelines:
    metrics: {receivers: [otlpstream, remotewrite], processors: [cardinality], exporters: [remotewrite]}
    logs: {receivers: [otlpstream], exporters: [nop]}
    traces: {receivers: [otlpstream], exporters: [nop]}
`

// inputs are a gateway's addresses.
type inputs struct{ grpc, http, write string }

// besiegeGateway starts a gateway with a client of each protocol that sends twenty times a second.
func besiegeGateway(t *testing.T) (*siege, inputs) {
	t.Helper()
	server := rwserver.New(t, rwserver.Options{CountOnly: true})
	in := inputs{freeport.Addr(t), freeport.Addr(t), freeport.Addr(t)}
	c := startDistribution(t, "godwit-gateway", fmt.Sprintf(besiegedGateway, in.grpc, in.http, in.write, server.URL()))
	ctx, cancel := context.WithCancel(t.Context())
	var written, streamed atomic.Int64
	var clients sync.WaitGroup
	clients.Go(func() { writeSteadily(ctx, in.write, &written) })
	conn := dial(t, in.grpc)
	clients.Go(func() {
		for n := 0; wait.Pause(ctx, neighbourPause); n++ {
			md := pmetric.NewMetrics()
			m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
			m.SetName("neighbour")
			point := m.SetEmptyGauge().DataPoints().AppendEmpty()
			point.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
			point.SetIntValue(int64(n))
			if _, err := pmetricotlp.NewGRPCClient(conn).Export(ctx, pmetricotlp.NewExportRequestFromMetrics(md)); err == nil {
				streamed.Add(1)
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		clients.Wait()
	})
	s := &siege{t, c.Process, siegeWindow(t), newControl(t), map[string]func() int{
		"a client of remote write": func() int { return int(written.Load()) },
		"a client of OTLP":         func() int { return int(streamed.Load()) },
	}}
	wait.Until(t, firstSeries, func() (bool, string) {
		return written.Load() > fewBeats && streamed.Load() > fewBeats && server.Totals().Samples > 0, "nothing is taken"
	})
	return s, in
}

const neighbourPause = 50 * time.Millisecond

// newControl starts a client like the neighbours, with a server of its own that nobody attacks, and counts its
// responses.
func newControl(t *testing.T) *atomic.Int64 {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	ctx, cancel := context.WithCancel(t.Context())
	var beats atomic.Int64
	var client sync.WaitGroup
	client.Go(func() { writeSteadily(ctx, server.Listener.Addr().String(), &beats) })
	t.Cleanup(func() {
		cancel()
		client.Wait()
		server.Close()
	})
	return &beats
}

// writeSteadily sends one sample at a time until ctx ends, and counts those that were accepted.
func writeSteadily(ctx context.Context, addr string, taken *atomic.Int64) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for n := 0; wait.Pause(ctx, neighbourPause); n++ {
		raw, err := (&prompb.WriteRequest{Timeseries: []prompb.TimeSeries{{
			Labels:  []prompb.Label{{Name: "__name__", Value: "neighbour"}, {Name: "job", Value: "writer"}},
			Samples: []prompb.Sample{{Timestamp: time.Now().UnixMilli(), Value: float64(n)}},
		}}}).Marshal()
		if err != nil {
			return
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/api/v1/write", strings.NewReader(string(snappy.Encode(nil, raw))))
		if err != nil {
			return
		}
		r.Header.Set("Content-Type", "application/x-protobuf")
		r.Header.Set("Content-Encoding", "snappy")
		resp, err := client.Do(r)
		if err != nil {
			continue
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode/100 == 2 {
			taken.Add(1)
		}
	}
}
