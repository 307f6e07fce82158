// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/godwit-otel/godwit/benchmarks/sink"
)

// taken is what the destination of a replay decoded.
type taken struct {
	mu       sync.Mutex
	points   int
	names    map[string]bool
	ids      map[string]bool
	times    map[time.Time]bool
	temporal pmetric.AggregationTemporality
	arrived  chan struct{}
}

func (x *taken) serve(t *testing.T) *httptest.Server {
	x.names, x.ids, x.times = map[string]bool{}, map[string]bool{}, map[time.Time]bool{}
	x.arrived = make(chan struct{}, 1)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(body)
		if err != nil {
			t.Error(err)
		}
		x.take(md)
		select {
		case x.arrived <- struct{}{}:
		default:
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (x *taken) take(md pmetric.Metrics) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.points += md.DataPointCount()
	for _, rm := range md.ResourceMetrics().All() {
		if pod, ok := rm.Resource().Attributes().Get("k8s.pod.name"); ok {
			x.names[pod.Str()] = true
		}
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			x.temporal = m.Sum().AggregationTemporality()
			for _, p := range m.Sum().DataPoints().All() {
				x.times[p.Timestamp().AsTime()] = true
				if id, ok := p.Attributes().Get("request.id"); ok {
					x.ids[id.Str()] = true
				}
			}
		}
	}
}

// TestEveryShapeIsReplayedWhole sends each shape for a moment and decodes it.
func TestEveryShapeIsReplayedWhole(t *testing.T) {
	for shape := range Shapes {
		if ofPages(shape) {
			continue
		}
		var x taken
		s := x.serve(t)
		r, err := NewReplay(shape, 20_000, "")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { r.Run(ctx, s.URL) })
		begun := time.Now()
		enough := func() bool { return r.Totals().Requests >= 8 && (shape != "W4" || r.ids.Load() > PerRequest) }
		for limit := time.After(30 * time.Second); !enough(); {
			select {
			case <-x.arrived:
				continue
			case <-limit:
			}
			break
		}
		cancel()
		done.Wait()
		sent := r.Totals()
		if !enough() || sent.Refused > 0 || int64(x.points) != sent.Points || sent.Points < sent.Requests*PerRequest {
			t.Errorf("%s: sent %+v, taken %d", shape, sent, x.points)
		}
		if hostile := sent.Points - sent.Healthy; (hostile > 0) != (shape == "W4") || int64(len(x.ids)) != hostile {
			t.Errorf("%s: %d hostile points, %d ids", shape, hostile, len(x.ids))
		}
		if cumulative := x.temporal == pmetric.AggregationTemporalityCumulative; cumulative != (shape == "W3") {
			t.Errorf("%s has temporality %v", shape, x.temporal)
		}
		for at := range x.times {
			if at.Before(begun.Add(-time.Second)) || at.After(time.Now()) {
				t.Errorf("%s: a time was not written: %v", shape, at)
			}
		}
	}
}

// TestRelaysAreGivenWholePages checks that requests have all samples of four targets, with the current time and values.
func TestRelaysAreGivenWholePages(t *testing.T) {
	for _, shape := range []string{"R1", "R2", "R3"} {
		r, err := NewReplay(shape, 0, "../../testdata/pages/node.txt")
		if err != nil {
			t.Fatal(err)
		}
		if len(r.steady) != relayTargets/pagesOfOne || r.perRequest != 4*507 {
			t.Fatalf("%s: %d requests of %d", shape, len(r.steady), r.perRequest)
		}
		now := time.UnixMilli(1_790_000_000_123)
		q := r.steady[len(r.steady)-1]
		start := now.Add(-time.Hour) // differs from the times of samples, which are counted
		first, second := q.write(nil, moment{now: now, start: start}), q.write(nil, moment{now: now.Add(time.Second), start: start, value: 7})
		if bytes.Equal(first, second) || len(first) != len(second) {
			t.Errorf("%s: the same again", shape)
		}
		for i, body := range [][]byte{first, second} {
			at := now.Add(time.Duration(i) * time.Second)
			var counted sink.Stats
			var err error
			var written []byte
			if shape == "R3" {
				counted, err = sink.CountOTLP(body)
				written = number(uint64(at.UnixNano()))
			} else {
				counted, err = sink.CountRemoteWrite(shape == "R2", body)
				written = protowire.AppendVarint(nil, uint64(at.UnixMilli()))
			}
			if err != nil || counted.Samples != q.healthy || counted.Strangers != 0 {
				t.Errorf("%s: got %+v, %v", shape, counted, err)
			}
			if n := bytes.Count(body, written); int64(n) != q.healthy {
				t.Errorf("%s: %d times were written", shape, n)
			}
		}
	}
}

// Loads of aggregation have all counters and no other series.
func TestAggregationIsGivenCounters(t *testing.T) {
	for _, shape := range []string{"A1", "A2"} {
		r, err := NewReplay(shape, 0, "../../testdata/pages/node.txt")
		if err != nil {
			t.Fatal(err)
		}
		body := r.steady[0].write(nil, moment{now: time.UnixMilli(1_790_000_000_123)})
		counted, err := sink.CountRemoteWrite(shape == "A2", body)
		if err != nil || counted.Samples != 4*143 || r.perRequest != 4*143 || len(r.steady) != relayTargets/pagesOfOne {
			t.Errorf("%s: got %+v, %v, %d", shape, counted, err, r.perRequest)
		}
		if !bytes.Contains(body, []byte("node_cpu_seconds_total")) || bytes.Contains(body, []byte("node_load1")) {
			t.Errorf("%s has other series", shape)
		}
	}
}

func TestPodsAreReplacedOneAfterTheOther(t *testing.T) {
	steady, _, err := build("W5", 0)
	if err != nil {
		t.Fatal(err)
	}
	q, err := encode(steady[0])
	if err != nil {
		t.Fatal(err)
	}
	first, second := q.write(nil, moment{generation: 1}), q.write(nil, moment{generation: 2})
	if bytes.Equal(first, second) || len(q.pods) != 1 || !bytes.Contains(second, []byte("0000000002")) {
		t.Error("the pod's name is the same")
	}
	counted, err := sink.CountOTLP(second)
	if err != nil || counted.Samples != PerRequest {
		t.Errorf("got %+v, %v", counted, err)
	}
}

func TestCellsAreReadAndWritten(t *testing.T) {
	f := func(text string, want ...Cell) {
		t.Helper()
		got, err := ParseCells(text)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%q: %v, %v", text, got, err)
		}
		var names []string
		for i := range want {
			names = append(names, got[i].String())
			if got[i] != want[i] {
				t.Errorf("%q: got %v", text, got[i])
			}
		}
		if again := strings.Join(names, ","); again != text {
			t.Errorf("%q became %q", text, again)
		}
	}
	f("W1@15k", Cell{"W1", 15_000})
	f("W2@max", Cell{"W2", 0})
	f("W4@100k,W5@50k", Cell{"W4", 100_000}, Cell{"W5", 50_000})
	for _, bad := range []string{"", "W1", "W7@1k", "W1@", "W1@-5", "W1@k", "@max"} {
		if _, err := ParseCells(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func sample() *Result {
	run := Run{Seconds: 10, Points: 500_000, Offered: 500_000, CPU: 1, RSSMean: 50e6, RSSPeak: 60e6, Wire: 5e6, Sent: 900, Healthy: 800, Delivered: 450, HealthyDelivered: 800, Series: 7}
	r := &Result{Name: "limit", Command: "make bench-limit"}
	for _, c := range []Cell{{"W1", 15_000}, {"W1", 50_000}, {"W2", 0}} {
		r.Rows = append(r.Rows,
			Row{Cell: c, Agent: "a", Title: "Ours", Party: "godwit", Version: "v1", Runs: []Run{run}},
			Row{Cell: c, Agent: "b", Title: "Theirs", Party: "collector", Failed: []string{"cannot start\nat all"}})
	}
	return r
}

func TestReportsNameWhatWasMeasured(t *testing.T) {
	text := sample().Markdown()
	for _, want := range []string{
		"## W1@15k: nearly all", "## W2@max: ", "| Ours | 2.00 | 0.00 | 2.00 | 50 | - | 60 | 50000 | 50000 | 50.00 | 100.00 | 7 |",
		"| Theirs | - |", "- Failed: b under W2@max: cannot start\n", "`make bench-limit`",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if svg := sample().SVG(); !strings.Contains(svg, "Ours") || strings.Contains(svg, "Theirs") || strings.Contains(svg, "NaN") {
		t.Error(svg)
	}
}

// With several runs, the table also shows the least and the greatest value.
func TestReportsShowRepeats(t *testing.T) {
	r := sample()
	again := r.Rows[0].Runs[0]
	again.RSSMean *= 2
	r.Rows[0].Runs = append(r.Rows[0].Runs, again)
	text := r.Markdown()
	for _, want := range []string{"| 2.00 | 75 (50–100) | - | 60 |", "- Medians of 2 runs, agents in turn, with (least–greatest)\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

// The committed reports are rendered from the results.
func TestReportsAreWhatTheResultGives(t *testing.T) {
	files, err := filepath.Glob("../results/limit*.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("nothing has been measured")
	}
	for _, file := range files {
		r, err := Load(file)
		if err != nil {
			t.Fatal(err)
		}
		for suffix, want := range map[string]string{".md": r.Markdown(), ".svg": r.SVG()} {
			of := strings.TrimSuffix(file, ".json") + suffix
			got, err := os.ReadFile(of)
			if err != nil || string(got) != want {
				t.Errorf("%s is not what the JSON gives: run `make report` (%v)", of, err)
			}
		}
	}
}
