// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/matrix"
	"github.com/godwit-otel/godwit/e2e/otlpserver"
	"github.com/godwit-otel/godwit/e2e/process"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/serve"
	"github.com/godwit-otel/godwit/e2e/targets"
	"github.com/godwit-otel/godwit/e2e/wait"
	"github.com/godwit-otel/godwit/internal/certtest"
)

const (
	// The runs of the short form: single ones spread evenly over all, and the first random ones.
	fewSingles, fewRandoms = 9, 5

	// The beats on each path before a run goes on: enough for the parse cache and the series cache to be used.
	fewBeats = 3
	// The longest times, on a busy machine, for these beats and for a process to end.
	beatsWait, endWait = 90 * time.Second, 60 * time.Second
	// The limits of a process with a dozen series: MiB of anonymous memory, and CPU cores beside its first seconds.
	maxLittle, maxBusy = 200, 0.5
)

// With any options changed from their defaults, Godwit starts, or names the key that it rejects. Data arrive, only its
// signal ends the process, and a pipeline without changed options is unaffected. GODWIT_MATRIX is the number of random
// runs after all single ones.
func TestMatrix(t *testing.T) {
	t.Parallel()
	singles, randoms := matrix.Singles(), fewRandoms
	step := (len(singles) + fewSingles - 1) / fewSingles
	if n, err := strconv.Atoi(os.Getenv("GODWIT_MATRIX")); err == nil {
		randoms, step = n, 1
	}
	for i := 0; i < len(singles); i += step {
		t.Run(fmt.Sprintf("single-%d", i), func(t *testing.T) { t.Parallel(); travel(t, singles[i]) })
	}
	for i := range randoms {
		t.Run(fmt.Sprintf("random-%d", i), func(t *testing.T) { t.Parallel(); travel(t, matrix.Random(uint64(i))) })
	}
}

const matrixPage = `# TYPE beat gauge
beat %[1]d
# TYPE wing_flaps_total counter
wing_flaps_total{flock="north"} %[1]d
wing_flaps_total{flock="south"} %[1]d
# TYPE wingspan_meters histogram
wingspan_meters_bucket{le="1"} %[1]d
wingspan_meters_bucket{le="+Inf"} %[1]d
wingspan_meters_sum %[1]d
wingspan_meters_count %[1]d
# TYPE feathers summary
feathers{quantile="0.5"} 1
feathers_sum %[1]d
feathers_count %[1]d
`

// arrivals record the beats that arrive, by job.
type arrivals struct {
	mu     sync.Mutex
	beats  map[string]map[int]bool
	failed map[string]int
}

func newArrivals() *arrivals {
	return &arrivals{beats: map[string]map[int]bool{}, failed: map[string]int{}}
}

func (a *arrivals) observe(series rwserver.Series) {
	name, job := series.Labels.Get(model.MetricNameLabel), series.Labels.Get(model.JobLabel)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, sample := range series.Samples {
		switch {
		case sample.Stale():
		case strings.HasSuffix(name, "beat"): // a namespace may precede it
			if a.beats[job] == nil {
				a.beats[job] = map[int]bool{}
			}
			a.beats[job][int(sample.V)] = true
		case strings.HasSuffix(name, "up") && sample.V == 0:
			a.failed[job]++
		}
	}
}

// of returns, for a job, the number of beats that arrived, of beats missing between the first and the last, and of
// failed scrapes, and the last beat.
func (a *arrivals) of(job string) (n, missing, failed, last int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	first := -1
	for beat := range a.beats[job] {
		last = max(last, beat)
		if first < 0 || beat < first {
			first = beat
		}
	}
	n = len(a.beats[job])
	if n > 0 {
		missing = last - first + 1 - n
	}
	return n, missing, a.failed[job], last
}

// route is a way from a target to a sink.
type route struct {
	job    string
	sink   *arrivals
	target *targets.Target
}

// travel runs a configuration of the matrix.
func travel(t *testing.T, run *matrix.Run) {
	t.Helper()
	j := newJourney(t, run)
	if !j.start() {
		return // it was rejected with a reason
	}
	j.progress(0)
	switch run.End {
	case matrix.KillAgent:
		j.restart(j.agent, j.health[matrix.Agent])
	case matrix.KillGateway:
		j.restart(j.gateway, j.health[matrix.Gateway])
	case matrix.Orderly:
	}
	j.feeder()
	j.end(j.agent)
	j.end(j.gateway)
	if run.End == matrix.Orderly && !run.Loses() {
		j.whole()
	}
	if t.Failed() {
		t.Log(run)
	}
}

// journey is a run in progress.
type journey struct {
	t              *testing.T
	run            *matrix.Run
	health         map[string]string
	texts          map[string]string
	agent, gateway *process.Process
	born           map[*process.Process]time.Time
	paths          []route
	feeder         func()
	books          *ledger
	logs           *otlpserver.Server
}

func newJourney(t *testing.T, run *matrix.Run) *journey {
	t.Helper()
	page := func(scrape int) targets.Page { return targets.Page{Body: fmt.Sprintf(matrixPage, scrape)} }
	first, second, third := newArrivals(), newArrivals(), newArrivals()
	sink := func(a *arrivals) string {
		return rwserver.New(t, rwserver.Options{CountOnly: true, Observe: a.observe}).URL()
	}
	fast, drop, neighbour := targets.NewFunc(t, page), targets.NewFunc(t, page), targets.NewFunc(t, page)
	j := &journey{
		t: t, run: run, health: map[string]string{}, born: map[*process.Process]time.Time{}, books: &ledger{},
		logs: otlpserver.New(t, otlpserver.Options{}),
		paths: []route{
			{"neighbour", third, neighbour}, {"fast", first, fast}, {"drop", first, drop}, {"drop", second, drop},
		},
	}
	dir := t.TempDir()
	certificate, key := certtest.SelfSigned(t)
	for name, text := range map[string]string{
		"cert.pem": certificate, "key.pem": key, "rules.yaml": "rules: [{name: one, max_series: 3}]\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { busy.Close() })
	_, busyPort, err := net.SplitHostPort(busy.Addr().String())
	require.NoError(t, err)
	variables := map[string]string{
		"FAST": fast.Addr(), "DROP": drop.Addr(), "NEIGHBOUR": neighbour.Addr(),
		"FIRST": sink(first), "SECOND": sink(second), "THIRD": sink(third), "LAST": j.logs.GRPCAddr(),
		"OTLP": freeport.Addr(t), "WRITE": freeport.Addr(t), "STREAM": freeport.Addr(t), "SOCKET": freeport.Addr(t),
		"ALLOCATOR": allocator(t, targets.NewFunc(t, page).Addr()), "BUSY": busyPort,
	}
	for _, role := range []string{matrix.Agent, matrix.Gateway} {
		j.health[role] = freeport.Addr(t)
		variables[role+"/HEALTH"] = j.health[role]
		variables[role+"/TELEMETRY"] = strconv.Itoa(freeport.Get(t))
		variables[role+"/CONSOLE"] = strconv.Itoa(freeport.Get(t))
		variables[role+"/PORT"] = strconv.Itoa(freeport.Get(t))
		variables[role+"/DIR"] = dir
	}
	variables["agent/DESTINATION"], variables["gateway/DESTINATION"] = "http://"+variables["WRITE"]+"/api/v1/write", variables["FIRST"]
	for role := range j.health { // each process has its own storage; the rest of the directory is shared
		variables[role+"/DIR/store"] = filepath.Join(dir, role)
	}
	j.texts, err = run.Texts(variables)
	require.NoError(t, err)
	j.feeder = feed(t, variables["OTLP"], j.books)
	return j
}

// allocator serves one job with one target.
func allocator(t *testing.T, target string) string {
	t.Helper()
	l := serve.Listen(t, "127.0.0.1:0")
	serve.HTTP(t, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/scrape_configs" {
			_, _ = io.WriteString(w, `{"allocated": {"job_name": "allocated", "scrape_interval": "500ms", "scrape_timeout": "500ms", "metrics_path": "/metrics"}}`)
			return
		}
		_, _ = fmt.Fprintf(w, `[{"targets": [%q], "labels": {}}]`, target)
	}))
	return "http://" + l.Addr().String()
}

// start starts the gateway and the agent. It returns false if one rejects the configuration and names the key: two
// options may contradict each other, a single one must not be rejected.
func (j *journey) start() bool {
	j.t.Helper()
	launch := func(role, name string) *process.Process {
		if j.run.Full {
			name = "godwit"
		}
		args := []string{"--config", configFile(j.t, j.texts[role])}
		if len(j.run.Gates) > 0 {
			args = append(args, "--feature-gates", strings.Join(j.run.Gates, ","))
		}
		p := process.Start(j.t, process.Settings{Path: process.Binary(j.t, name), Args: args})
		j.born[p] = time.Now()
		return p
	}
	j.gateway = launch(matrix.Gateway, "godwit-gateway")
	if !j.healthy(j.gateway, j.health[matrix.Gateway]) {
		return false
	}
	j.agent = launch(matrix.Agent, "godwit-agent")
	return j.healthy(j.agent, j.health[matrix.Agent])
}

func (j *journey) healthy(p *process.Process, addr string) bool {
	j.t.Helper()
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	healthy := false
	wait.Until(j.t, firstWords, func() (bool, string) {
		running := p.Running()
		resp, err := client.Get("http://" + addr + "/")
		if err == nil {
			resp.Body.Close()
			healthy = resp.StatusCode == http.StatusOK
		}
		return healthy || !running, fmt.Sprintf("not healthy: %v\n%v", err, j.run)
	})
	if healthy {
		return true
	}
	output := p.Output()
	named := false
	for _, c := range j.run.Choices {
		named = named || slices.ContainsFunc(strings.Split(c.Option.Key, "::"), func(part string) bool {
			return part != "*" && strings.Contains(output, part)
		})
	}
	if assert.Contains(j.t, output, "Error: ", "%v", j.run) && assert.True(j.t, named, "the refusal names no key of the run\n%v", j.run) {
		assert.NotContains(j.t, output, "panic: ")
		assert.False(j.t, strings.HasPrefix(filepath.Base(j.t.Name()), "single-"), "an option alone is refused: %v\n%s", j.run, output)
		_, why, _ := strings.Cut(output, "Error: ")
		j.t.Logf("refused: %s", why)
	}
	return false
}

// progress waits until every path has some more beats; with n = 0 it counts from the start.
func (j *journey) progress(n int) {
	j.t.Helper()
	for _, p := range j.paths {
		if p.job != "neighbour" && j.run.Loses() {
			continue
		}
		before, _, _, _ := p.sink.of(p.job)
		if n == 0 {
			before = 0
		}
		wait.Until(j.t, beatsWait, func() (bool, string) {
			for _, q := range []*process.Process{j.agent, j.gateway} {
				if !q.Running() {
					j.t.Fatalf("process %d ended by itself\n%v", q.PID(), j.run)
				}
			}
			got, _, _, _ := p.sink.of(p.job)
			return got >= before+fewBeats, fmt.Sprintf("%d of %d beats of %s arrived\n%v", got, before+fewBeats, p.job, j.run)
		})
	}
}

func (j *journey) restart(p *process.Process, health string) {
	j.t.Helper()
	p.Kill()
	p.Restart()
	j.born[p] = time.Now()
	if !j.healthy(p, health) {
		j.t.Fatalf("refused after a kill\n%v", j.run)
	}
	j.progress(1)
}

var broken = regexp.MustCompile(`(?m)^(panic: .*|fatal error: .*|.*recovered from panic.*|.*"panic".*|WARNING: DATA RACE)$`)

// end stops a process, and checks its resources and its log.
func (j *journey) end(p *process.Process) {
	j.t.Helper()
	require.True(j.t, p.Running(), "it ended by itself\n%v", j.run)
	usage, age := p.Usage(), time.Since(j.born[p])
	assert.Less(j.t, mib(usage.Anon), float64(maxLittle), "memory\n%v", j.run)
	assert.Less(j.t, usage.CPU, 2*time.Second+time.Duration(maxBusy*float64(age)), "CPU in %v\n%v", age, j.run)
	assert.Zero(j.t, ended(j.t, p, syscall.SIGTERM, endWait), "%v", j.run)
	assert.Empty(j.t, broken.FindAllString(p.Output(), 3), "%v", j.run)
}

// ended stops a process, and makes it log its goroutines if it does not end.
func ended(t *testing.T, p *process.Process, signal syscall.Signal, within time.Duration) int {
	t.Helper()
	p.Signal(signal)
	deadline := time.Now().Add(within)
	for p.Running() && wait.Pause(t.Context(), 20*time.Millisecond) {
		if time.Now().After(deadline) {
			p.Signal(syscall.SIGQUIT) // makes it log all goroutines
			p.Wait(within)
			t.Errorf("it did not end within %v", within)
			break
		}
	}
	return p.Wait(within)
}

// whole checks that everything scraped or acknowledged before an orderly end has arrived.
func (j *journey) whole() {
	j.t.Helper()
	for _, p := range j.paths {
		n, missing, failed, last := p.sink.of(p.job)
		assert.LessOrEqual(j.t, missing, failed, "%d of %d beats of %s are missing, %d scrapes failed\n%v", missing, n+missing, p.job, failed, j.run)
		// The last scrapes may have been cut off.
		assert.GreaterOrEqual(j.t, last, p.target.Scrapes()-3, "%v", j.run)
	}
	ok, why := j.books.arrived(j.logs)()
	assert.True(j.t, ok, "%s\n%v", why, j.run)
}

// feed sends logs, traces and metrics of every kind, a few per second, until stop is called.
func feed(t *testing.T, addr string, books *ledger) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	conn := dial(t, addr)
	var sender sync.WaitGroup
	sender.Go(func() {
		for n := 0; wait.Pause(ctx, 50*time.Millisecond); n++ {
			as := metadata.AppendToOutgoingContext(ctx, "x-tenant", strconv.Itoa(n%3))
			_ = books.send(as, conn) // only acknowledged data must arrive
			_ = everyKind(as, conn, n)
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		sender.Wait()
	})
	t.Cleanup(stop)
	return stop
}

// everyKind sends a metric of every kind.
func everyKind(ctx context.Context, conn *grpc.ClientConn, n int) error {
	md := pmetric.NewMetrics()
	resource := md.ResourceMetrics().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", "kinds-"+strconv.Itoa(n%2))
	resource.Resource().Attributes().PutStr("server.address", "here")
	all := resource.ScopeMetrics().AppendEmpty().Metrics()
	now := pcommon.NewTimestampFromTime(time.Now())
	numbers := func(points pmetric.NumberDataPointSlice) {
		for i := range 3 {
			point := points.AppendEmpty()
			point.SetTimestamp(now)
			point.SetDoubleValue(float64(n))
			point.Attributes().PutStr("flock", strconv.Itoa(i))
		}
	}
	m := all.AppendEmpty()
	m.SetName("altitude")
	numbers(m.SetEmptyGauge().DataPoints())
	for _, temporality := range []pmetric.AggregationTemporality{pmetric.AggregationTemporalityCumulative, pmetric.AggregationTemporalityDelta} {
		m = all.AppendEmpty()
		m.SetName("flaps." + temporality.String())
		sum := m.SetEmptySum()
		sum.SetIsMonotonic(true)
		sum.SetAggregationTemporality(temporality)
		numbers(sum.DataPoints())

		m = all.AppendEmpty()
		m.SetName("span." + temporality.String())
		histogram := m.SetEmptyHistogram()
		histogram.SetAggregationTemporality(temporality)
		point := histogram.DataPoints().AppendEmpty()
		point.SetTimestamp(now)
		point.ExplicitBounds().FromRaw([]float64{1, 2})
		point.BucketCounts().FromRaw([]uint64{1, 2, uint64(n)})
		point.SetCount(uint64(n) + 3)
		point.SetSum(float64(n))

		m = all.AppendEmpty()
		m.SetName("depth." + temporality.String())
		exponential := m.SetEmptyExponentialHistogram()
		exponential.SetAggregationTemporality(temporality)
		wide := exponential.DataPoints().AppendEmpty()
		wide.SetTimestamp(now)
		wide.SetScale(3)
		wide.Positive().SetOffset(int32(n % 50))
		wide.Positive().BucketCounts().FromRaw([]uint64{1, 2, 3})
		wide.SetCount(6)
	}
	m = all.AppendEmpty()
	m.SetName("feathers")
	point := m.SetEmptySummary().DataPoints().AppendEmpty()
	point.SetTimestamp(now)
	point.SetCount(uint64(n))
	point.QuantileValues().AppendEmpty().SetQuantile(0.5)
	_, err := pmetricotlp.NewGRPCClient(conn).Export(ctx, pmetricotlp.NewExportRequestFromMetrics(md))
	return err
}
