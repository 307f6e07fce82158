// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/attributesprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/filterprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/resourceprocessor"
	"github.com/stretchr/testify/require"
)

// What the benchmark scrapes, and how long it measures.
const (
	roadTargets = 1000
	roadRows    = 500
	roadWarmUp  = 4 * time.Second
	roadTime    = 8 * time.Second

	farSideVariable = "GODWIT_FAR_SIDE"
)

// road is the configuration of an agent that scrapes, with processors to fill in.
const road = `
receivers:
  fastprometheus: {reuse: %[4]s, config: {scrape_configs: [{job_name: node, scrape_interval: 1s, scrape_timeout: 1s, metrics_path: /page, static_configs: [{targets: [%[1]s]}]}]}}
processors:
  memory_limiter: {check_interval: 1s, limit_mib: 4000}
  cardinality: {}
  cardinality/enforcing:
    defaults: {max_series_per_metric: 100000}
    rules: [{name: service, group_by: [service.name], max_series: 1000000}]
  cardinality/rejecting:
    rules: [{name: crowded, match: {metric: "node_family_1*"}, max_series: 4000}]
  batch: {}
  attributes: {actions: [{key: region, value: north, action: insert}]}
  resource: {attributes: [{key: region, value: north, action: insert}]}
  filter: {metrics: {metric: ['name == "node_family_3_total"', 'name == "node_family_40_total"']}}
  filter/points: {metrics: {datapoint: ['attributes["device"] == "eth3"']}}
exporters:
  remotewrite: {endpoint: "http://%[2]s/write"}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {metrics: {receivers: [fastprometheus], processors: [%[3]s], exporters: [remotewrite]}}
`

// BenchmarkRoad measures the CPU time of an agent per sample that is scraped and written. Targets and destination are
// another process. Run it with -benchtime=1x, several times in turn.
func BenchmarkRoad(b *testing.B) {
	for _, c := range []struct{ name, processors, reuse string }{
		{"limits=no", "memory_limiter", "auto"},
		{"limits=enforcing", "memory_limiter, cardinality/enforcing", "auto"},
		{"limits=rejecting", "memory_limiter, cardinality/rejecting", "auto"},
		{"batch", "memory_limiter, batch", "auto"},
		{"attributes", "memory_limiter, attributes", "auto"},
		{"resource", "memory_limiter, resource", "auto"},
		{"filter=names", "memory_limiter, filter", "auto"},
		{"filter=names,reuse=never", "memory_limiter, filter", "never"},
		{"filter=points", "memory_limiter, filter/points", "auto"},
		{"filter=points,reuse=never", "memory_limiter, filter/points", "never"},
		{"filter=names,batch", "memory_limiter, filter, batch", "auto"},
		{"filter=names,batch,reuse=never", "memory_limiter, filter, batch", "never"},
	} {
		b.Run(c.name, func(b *testing.B) {
			address := startFarSide(b)
			targets := make([]string, roadTargets)
			for i := range targets {
				targets[i] = fmt.Sprintf("127.0.%d.%d:%s", 1+i/200, 1+i%200, address[strings.LastIndex(address, ":")+1:])
			}
			start(b, fmt.Sprintf(road, strings.Join(targets, ","), "127.0.0.1"+address[strings.LastIndex(address, ":"):], c.processors, c.reuse),
				attributesprocessor.NewFactory(), resourceprocessor.NewFactory(), filterprocessor.NewFactory())
			time.Sleep(roadWarmUp)
			for b.Loop() {
				pages, used := pagesOf(b, address), processorTime(b)
				time.Sleep(roadTime)
				used, pages = processorTime(b)-used, pagesOf(b, address)-pages
				require.Positive(b, pages)
				b.ReportMetric(float64(used.Nanoseconds())/float64(pages*roadRows), "cpu-ns/sample")
				b.ReportMetric(float64(pages)/roadTime.Seconds(), "pages/s")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func pagesOf(b *testing.B, address string) int {
	b.Helper()
	r, err := http.Get("http://" + address + "/pages")
	require.NoError(b, err)
	defer r.Body.Close()
	said, err := io.ReadAll(r.Body)
	require.NoError(b, err)
	n, err := strconv.Atoi(string(said))
	require.NoError(b, err)
	return n
}

// startFarSide runs this program as the far side, and returns its address.
func startFarSide(b *testing.B) string {
	b.Helper()
	far := exec.Command(os.Args[0], "-test.run=^TestFarSide$")
	far.Env = append(os.Environ(), farSideVariable+"=1")
	in, err := far.StdinPipe()
	require.NoError(b, err)
	out, err := far.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, far.Start())
	b.Cleanup(func() {
		_ = in.Close() // which ends it
		_ = far.Wait()
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(b, err)
	return strings.TrimSpace(address)
}

// TestFarSide serves the targets and the destination of the benchmark until its input ends.
func TestFarSide(t *testing.T) {
	if os.Getenv(farSideVariable) == "" {
		t.Skip("runs for the benchmark")
	}
	l, err := net.Listen("tcp", "0.0.0.0:0")
	require.NoError(t, err)
	pages := make(chan int, 1)
	pages <- 0
	text := roadPage()
	mux := http.NewServeMux()
	mux.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) {
		pages <- <-pages + 1
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = io.WriteString(w, text)
	})
	mux.HandleFunc("/write", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("/pages", func(w http.ResponseWriter, _ *http.Request) {
		n := <-pages
		pages <- n
		fmt.Fprint(w, n)
	})
	s := &http.Server{Handler: mux, ReadHeaderTimeout: patience}
	go func() { _ = s.Serve(l) }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	fmt.Println("127.0.0.1:" + port)
	_, _ = io.Copy(io.Discard, os.Stdin)
	require.NoError(t, s.Close())
}

// roadPage returns a page similar to that of a node exporter: half of the families have one series.
func roadPage() string {
	var b strings.Builder
	rows := 0
	for i := 0; rows < roadRows; i++ {
		name := fmt.Sprintf("node_family_%d_total", i)
		fmt.Fprintf(&b, "# HELP %s What the kernel says of it.\n# TYPE %s counter\n", name, name)
		n := 1
		if i%2 == 0 {
			n = min(4, roadRows-rows)
		}
		for j := range n {
			fmt.Fprintf(&b, "%s{device=\"eth%d\",operstate=\"up\"} %d\n", name, j, 1000*i+j)
		}
		rows += n
	}
	return b.String()
}
