// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Command bench compares agents. `bench scrape` runs agents on workloads, `bench repeat` does so twice, `bench growth`
// along an axis, and `bench gogc` runs ours with several settings of garbage collection. `bench report` renders all
// results. `bench farm` and `bench sink` are the processes that serve targets and receive samples; the others start
// them.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/godwit-otel/godwit/benchmarks/farm"
	"github.com/godwit-otel/godwit/benchmarks/report"
	"github.com/godwit-otel/godwit/benchmarks/runner"
)

// The kernel kills children when the thread that started them ends, so that must be the main thread.
func init() { runtime.LockOSThread() }

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:])
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

var commands = map[string]func(ctx context.Context, args []string) error{
	"farm": runFarm, "sink": runSink, "scrape": scrape, "repeat": repeat, "growth": growth, "gogc": gogc, "report": renderAll,
	"stream": runStream, "stream-cell": runStreamCell, "stream-network": runStreamNetwork, "handoff": runHandoff,
	"limit": measureLimit, "relay": measureRelay, "aggregate": measureAggregate, "limit-load": loadLimit,
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 {
		if command, ok := commands[args[0]]; ok {
			return command(ctx, args[1:])
		}
	}
	return fmt.Errorf("cannot run %q: say one of %s", strings.Join(args, " "), strings.Join(slices.Sorted(maps.Keys(commands)), ", "))
}

// farmFlags are the flags of a farm. Zero means the workload's value.
func farmFlags(f *flag.FlagSet, cfg *farm.Config) {
	f.IntVar(&cfg.Targets, "targets", cfg.Targets, "number of targets")
	f.IntVar(&cfg.Samples, "samples", cfg.Samples, "samples of a generated page")
	f.IntVar(&cfg.Cardinality, "cardinality", cfg.Cardinality, "from how many names labels of a generated page are drawn")
	f.Float64Var(&cfg.Change, "change", cfg.Change, "share of values that change from scrape to scrape")
	f.Float64Var(&cfg.Churn, "churn", cfg.Churn, "share of series that are new in each scrape")
	f.StringVar(&cfg.Bodies, "bodies", cfg.Bodies, "best coding that targets know: identity, gzip or zstd")
	f.IntVar(&cfg.Steps, "steps", cfg.Steps, "states of a page before they begin again")
}

func runFarm(ctx context.Context, args []string) error {
	var cfg farm.Config
	f := flag.NewFlagSet("farm", flag.ContinueOnError)
	f.Func("config", "what to serve, as JSON: the fields of farm.Config", func(text string) error { return json.Unmarshal([]byte(text), &cfg) })
	targetsFile := f.String("targets-file", "targets.json", "where the file_sd list is written")
	if err := f.Parse(args); err != nil {
		return err
	}
	return runner.Farm(ctx, cfg, *targetsFile)
}

func runSink(ctx context.Context, _ []string) error { return runner.Sink(ctx) }

func out(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// suiteFlags are the flags of all commands that run agents.
type suiteFlags struct {
	root, agents, command string
	repeats               int

	all []runner.Agent
}

func (s *suiteFlags) add(f *flag.FlagSet, agents string) {
	f.StringVar(&s.root, "root", "..", "the repository's root")
	f.StringVar(&s.agents, "agents", agents, "all, headline, or names of files in benchmarks/agents; empty for the workload's own")
	f.IntVar(&s.repeats, "repeats", 1, "how often the agents are run, in turn: A B A B")
	f.StringVar(&s.command, "command", "", "the command that reports name")
}

// suite returns a suite; flags must be parsed already.
func (s *suiteFlags) suite(args ...string) (suite *runner.Suite, err error) {
	suite = &runner.Suite{Repeats: max(1, s.repeats), Command: s.command, Out: out}
	if suite.Root, err = filepath.Abs(s.root); err != nil {
		return nil, err
	}
	if s.all, err = runner.LoadAgents(filepath.Join(suite.Root, "benchmarks", "agents")); err != nil {
		return nil, err
	}
	if suite.Command == "" {
		suite.Command = "bench " + strings.Join(args, " ")
	}
	return suite, nil
}

// scrape measures agents on one or several workloads, with one result per workload.
func scrape(ctx context.Context, args []string) error {
	var common suiteFlags
	var knobs farm.Config
	f := flag.NewFlagSet("scrape", flag.ContinueOnError)
	common.add(f, "")
	workloads := f.String("workloads", "node,ksm", "names of workloads, with commas")
	name := f.String("name", "", "prefix of the results' names")
	interval := f.Duration("interval", 0, "between scrapes")
	intervals := f.Int("intervals", 0, "length of the window in intervals")
	knobs.Change, knobs.Churn = -1, -1
	farmFlags(f, &knobs)
	if err := f.Parse(args); err != nil {
		return err
	}
	suite, err := common.suite(append([]string{"scrape"}, args...)...)
	if err != nil {
		return err
	}
	type planned struct {
		workload string
		job      runner.Job
		agents   []runner.Agent
		skipped  []string
	}
	var plan []planned
	runs := 0
	for workload := range strings.SplitSeq(*workloads, ",") {
		preset, err := runner.Workload(workload, suite.Root)
		if err != nil {
			return err
		}
		agents, err := runner.Select(common.all, cmp.Or(common.agents, preset.Agents))
		if err != nil {
			return err
		}
		p := planned{workload: workload, job: preset.Job}
		p.agents, p.skipped = suite.Present(agents)
		override(&p.job, knobs, *interval, *intervals)
		runs += len(p.agents)
		plan = append(plan, p)
	}
	begun := time.Now()
	suite.Begin(runs)
	for _, p := range plan {
		out("%s: %d agents", p.workload, len(p.agents))
		load, rows, err := suite.Measure(ctx, p.agents, p.job, 0)
		if err != nil {
			return err
		}
		r := suite.Result(*name+p.workload, title(load), p.skipped)
		r.Workload, r.Rows = load, rows
		if err := suite.Write(r); err != nil {
			return err
		}
	}
	out("done in %v", time.Since(begun).Round(time.Second))
	return nil
}

// repeat measures each agent twice, in turn, to see how much runs differ.
func repeat(ctx context.Context, args []string) error {
	return scrape(ctx, append([]string{"-name", "repeat-", "-workloads", "node", "-intervals", "3", "-agents", runner.Parties, "-repeats", "2"}, args...))
}

func override(job *runner.Job, knobs farm.Config, interval time.Duration, intervals int) {
	f := &job.Farm
	for _, k := range []struct {
		into *int
		from int
	}{{&f.Targets, knobs.Targets}, {&f.Samples, knobs.Samples}, {&f.Cardinality, knobs.Cardinality}, {&f.Steps, knobs.Steps}, {&job.Intervals, intervals}} {
		if k.from != 0 {
			*k.into = k.from
		}
	}
	if knobs.Bodies != "" {
		f.Bodies = knobs.Bodies
	}
	if knobs.Change >= 0 {
		f.Change = knobs.Change
	}
	if knobs.Churn >= 0 {
		f.Churn = knobs.Churn
	}
	if interval > 0 {
		job.Interval = interval
	}
}

func title(w report.Workload) string {
	what := map[string]string{
		"node": "node_exporter pages", "app": "application pages", "ksm": "kube-state-metrics page", "kubelet": "kubelets' pages", "mixed": "pages of 40 kinds",
	}[w.Page]
	if w.About != "" {
		what += " " + w.About
	}
	bodies := ""
	if w.Bodies != "" {
		bodies = ", in " + w.Bodies
	}
	if w.RTT > 0 {
		bodies += fmt.Sprintf(", to a destination %.0f ms away", w.RTT*1e3)
	}
	return fmt.Sprintf("%d %s of %d samples every %v s%s", w.Targets, what, w.Samples, w.Interval, bodies)
}

// renderAll renders all reports again, and the README's tables.
func renderAll(_ context.Context, args []string) error {
	f := flag.NewFlagSet("report", flag.ContinueOnError)
	root := f.String("root", "..", "the repository's root")
	readme := f.Bool("readme", true, "also write the README's tables")
	if err := f.Parse(args); err != nil {
		return err
	}
	dir := filepath.Join(*root, "benchmarks", "results")
	results, err := report.LoadAll(dir)
	if err != nil {
		return err
	}
	for _, r := range results {
		if err := report.Render(dir, r); err != nil {
			return err
		}
	}
	if err := renderLimit(dir); err != nil {
		return err
	}
	if err := report.RenderStream(dir); err != nil {
		return err
	}
	if err := report.RenderHandoff(dir); err != nil {
		return err
	}
	if !*readme {
		return nil
	}
	return report.UpdateReadme(filepath.Join(*root, "README.md"), dir)
}
