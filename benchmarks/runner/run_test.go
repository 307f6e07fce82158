// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/prometheus/prompb"

	"github.com/godwit-otel/godwit/benchmarks/farm"
	"github.com/godwit-otel/godwit/benchmarks/report"
)

// The test binary also acts as the farm and the sink that a bench starts, as the agent under test, and as a runner that
// is killed.
func init() {
	if len(os.Args) < 2 {
		return
	}
	roles := map[string]func([]string) error{
		"farm":  farmRole,
		"sink":  func([]string) error { return Sink(context.Background()) },
		"agent": agentRole, "runner": runnerRole,
	}
	if role, ok := roles[os.Args[1]]; ok {
		fmt.Fprintln(os.Stderr, role(os.Args[2:]))
		os.Exit(1)
	}
}

func farmRole(args []string) error {
	var cfg farm.Config
	f := flag.NewFlagSet("farm", flag.ContinueOnError)
	f.Func("config", "", func(text string) error { return json.Unmarshal([]byte(text), &cfg) })
	targets := f.String("targets-file", "", "")
	if err := f.Parse(args); err != nil {
		return err
	}
	return Farm(context.Background(), cfg, *targets)
}

// agentRole scrapes all targets in turn and sends the samples: all of them, or with faults that differ between targets,
// or none.
func agentRole(args []string) error {
	body, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	var groups []struct {
		Targets []string `json:"targets"`
	}
	if err := json.Unmarshal(body, &groups); err != nil {
		return err
	}
	interval, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	for tick := time.Tick(interval); ; <-tick {
		for i, target := range groups[0].Targets {
			if err := scrapeAndShip(target, i, args[1], args[3]); err != nil {
				return err
			}
		}
	}
}

func scrapeAndShip(target string, number int, sinkAt, way string) error {
	resp, err := http.Get("http://" + target + "/metrics")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil || way == "silent" {
		return err
	}
	var req prompb.WriteRequest
	now := time.Now().UnixMilli()
	for line := range strings.Lines(string(page)) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		if !strings.Contains(line, "} ") {
			series, value, _ = strings.Cut(strings.TrimSpace(line), " ")
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil || line[0] == '#' {
			continue
		}
		name, labels, _ := strings.Cut(series, "{")
		req.Timeseries = append(req.Timeseries, prompb.TimeSeries{
			Labels:  []prompb.Label{{Name: "__name__", Value: name}, {Name: "instance", Value: target}, {Name: "rest", Value: labels}},
			Samples: []prompb.Sample{{Value: v, Timestamp: now}},
		})
	}
	if way == "broken" {
		switch number {
		case 0:
			req.Timeseries = req.Timeseries[1:]
		case 1:
			req.Timeseries = append(req.Timeseries, req.Timeseries[0])
		case 2:
			req.Timeseries[0].Samples[0].Value++
		}
	}
	message, err := req.Marshal()
	if err != nil {
		return err
	}
	shipped, err := http.Post("http://"+sinkAt+"/api/v1/write", "application/x-protobuf", bytes.NewReader(snappy.Encode(nil, message)))
	if err != nil {
		return err
	}
	return shipped.Body.Close()
}

func jobOf(targets int, page string) Job {
	return Job{
		Farm:     farm.Config{Page: "node", NodePage: page, Bodies: "gzip", Targets: targets, Change: 0.3, Churn: 0.1},
		Interval: 250 * time.Millisecond, Intervals: 2,
	}
}

func agentUnderTest(way string) *Agent {
	return &Agent{
		Name: way, Env: "AGENT_UNDER_TEST", Silent: way == "silent",
		Args: []string{"agent", "{{.Targets}}", "{{.SinkHTTP}}", "{{.Interval}}", way},
	}
}

// runnerRole measures an agent until it is killed.
func runnerRole([]string) error {
	runtime.LockOSThread()
	job := jobOf(1, os.Getenv("PAGE_UNDER_TEST"))
	job.Intervals = 1e6
	b, err := Open(context.Background(), os.Getenv("ROOT_UNDER_TEST"), job, func(string, ...any) {})
	if err != nil {
		return err
	}
	defer b.Close()
	_, err = b.Run(context.Background(), agentUnderTest("honest"))
	return err
}

func TestAKilledRunnerLeavesNothing(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	runner := exec.Command(self, "runner")
	runner.Env = append(os.Environ(), "AGENT_UNDER_TEST="+self, "ROOT_UNDER_TEST="+root, "TMPDIR="+t.TempDir(),
		"PAGE_UNDER_TEST="+filepath.Join(root, "testdata", "pages", "node.txt"))
	if err := runner.Start(); err != nil {
		t.Fatal(err)
	}
	defer runner.Process.Kill()
	var all []int
	eventually(t, func() bool { all = tree(runner.Process.Pid); return len(all) == 4 }) // with the farm, the sink and the agent
	if err := runner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = runner.Wait()
	for _, pid := range all {
		eventually(t, func() bool { return !running(pid) })
	}
}

func TestRunsAreMeasuredAndChecked(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("AGENT_UNDER_TEST", self)
	page, err := filepath.Abs(nodePage)
	if err != nil {
		t.Fatal(err)
	}
	job := jobOf(3, page)
	b, err := Open(t.Context(), "../..", job, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for way, want := range map[string]func(*report.Run) bool{
		"honest": func(r *report.Run) bool { return r.Lost+r.Duplicated+r.Altered+r.Unknown == 0 && r.Wire > 0 },
		"broken": func(r *report.Run) bool {
			each := int64(r.Scrapes / job.Farm.Targets) // plus or minus the one in flight
			return r.Lost >= each && r.Duplicated >= each && r.Altered >= each && r.Lost+r.Duplicated+r.Altered == int64(r.Scrapes)
		},
		"silent": func(r *report.Run) bool { return r.Unchecked && r.Wire == 0 },
	} {
		b.patience = 20 * time.Second
		if way == "broken" { // its samples never all arrive
			b.patience = 2 * time.Second
		}
		run, err := b.Run(t.Context(), agentUnderTest(way))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %s", way, report.Line(run))
		if !want(run) || run.Scrapes < 6 || run.Samples < 508 || run.Scraped < 508 || run.CPU <= 0 || run.Yard <= 0 || run.RSSMean <= 0 {
			t.Errorf("%s: %+v", way, run)
		}
	}
	if _, err := b.Run(t.Context(), &Agent{Name: "ends", Env: "AGENT_UNDER_TEST", Args: []string{"agent", "/no/such/file"}}); err == nil {
		t.Error("an agent that ends by itself is not told")
	}
}
