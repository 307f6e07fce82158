// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/godwit-otel/godwit/benchmarks/limit"
	"github.com/godwit-otel/godwit/benchmarks/report"
	"github.com/godwit-otel/godwit/benchmarks/runner"
)

// engines are settings of garbage collection for the extension runtimeprofile. auto adjusts more often than by default,
// so that it has settled when the window begins.
var engines = []struct{ name, title, setting string }{
	{"gogc-50", "GOGC 50", "{profile: balanced, gogc: 50}"},
	{"gogc-100", "GOGC 100", "{profile: balanced, gogc: 100}"},
	{"gogc-200", "GOGC 200", "{profile: balanced, gogc: 200}"},
	{"gogc-400", "GOGC 400", "{profile: balanced, gogc: 400}"},
	{"auto", "auto, in 128 MiB", "{profile: auto, memory_limit: 128MiB, refresh_interval: 1s}"},
}

// engine matches the setting that they replace in an agent's configuration.
var engine = regexp.MustCompile(`runtimeprofile: \{[^}]*\}`)

// gateway is the workload that does not scrape, and gogcThrough its agent.
const (
	gateway     = "gateway"
	gogcThrough = "godwit-rw2-off"
)

// gogc measures what garbage collection costs our agents, in CPU and in memory.
func gogc(ctx context.Context, args []string) error {
	var common suiteFlags
	f := flag.NewFlagSet("gogc", flag.ContinueOnError)
	common.add(f, "godwit-rw2")
	workloads := f.String("workloads", "node,gateway", "workloads to run it on: gateway, or those of scraping")
	warmUp := f.Duration("warm-up", 15*time.Second, "of the gateway, before its window")
	window := f.Duration("window", 20*time.Second, "of the gateway")
	if err := f.Parse(args); err != nil {
		return err
	}
	suite, err := common.suite(append([]string{"gogc"}, args...)...)
	if err != nil {
		return err
	}
	begun := time.Now()
	for name := range strings.SplitSeq(*workloads, ",") {
		r := suite.Result("gogc-"+name, "What garbage collection costs: the agent on "+name+" pages", nil)
		if name == gateway {
			r.Title = "What garbage collection costs: the gateway"
			err = gogcGateway(ctx, suite, r, *warmUp, *window)
		} else {
			err = gogcScraping(ctx, suite, r, &common, name)
		}
		if err != nil {
			return err
		}
		if err := suite.Write(r); err != nil {
			return err
		}
	}
	out("done in %v", time.Since(begun).Round(time.Second))
	return nil
}

func gogcScraping(ctx context.Context, suite *runner.Suite, r *report.Result, common *suiteFlags, workload string) error {
	preset, err := runner.Workload(workload, suite.Root)
	if err != nil {
		return err
	}
	picked, err := runner.Select(common.all, common.agents)
	if err != nil {
		return err
	}
	var agents []runner.Agent
	for _, a := range picked {
		for i := range engines {
			b, err := withEngine(a, i)
			if err != nil {
				return err
			}
			agents = append(agents, b)
		}
	}
	agents, r.Skipped = suite.Present(agents)
	suite.Begin(len(agents))
	r.Workload, r.Rows, err = suite.Measure(ctx, agents, preset.Job, 0)
	return err
}

// gogcGateway measures a gateway that receives OTLP and sends remote write.
func gogcGateway(ctx context.Context, suite *runner.Suite, r *report.Result, warmUp, window time.Duration) error {
	s := runner.LimitSuite{Suite: *suite, Cells: []limit.Cell{{Shape: "W3", Rate: 50_000}}, WarmUp: warmUp, Window: window}
	all, err := runner.LoadLimitAgents(filepath.Join(suite.Root, "benchmarks", "limit", "agents"))
	if err != nil {
		return err
	}
	picked, err := runner.SelectLimit(all, gogcThrough)
	if err != nil {
		return err
	}
	for _, a := range picked {
		for i := range engines {
			b := a
			if b.Agent, err = withEngine(a.Agent, i); err != nil {
				return err
			}
			s.Agents = append(s.Agents, b)
		}
	}
	measured, err := s.Run(ctx)
	if err != nil {
		return err
	}
	r.Skipped = measured.Skipped
	r.Workload = report.Workload{Window: window.Seconds(), Work: fmt.Sprintf(
		"OTLP over HTTP in, Remote Write 2.0 with zstd out, nothing between; 50,000 points per second in requests of %d: %s",
		limit.PerRequest, "100,000 cumulative series of 50 metrics with 8 attributes",
	)}
	for _, w := range measured.Rows {
		row := report.Row{Agent: w.Agent, Title: w.Title, Party: w.Party, Version: w.Version, Failed: w.Failed}
		for _, u := range w.Runs {
			row.Runs = append(row.Runs, report.Run{
				Seconds: u.Seconds, Samples: u.Points, CPU: u.CPU, Farm: u.Load, Sink: u.Sink, Yard: u.Yard,
				RSSMean: u.RSSMean, RSSPeak: u.RSSPeak, AnonMean: u.Anon, Wire: u.Wire, Series: u.Series, Refused: u.Refused,
				Served: u.Sent, Lost: max(0, u.Sent-u.Delivered), Duplicated: max(0, u.Delivered-u.Sent),
			})
		}
		r.Rows = append(r.Rows, row)
	}
	return nil
}

// withEngine returns the agent with the i-th setting.
func withEngine(a runner.Agent, i int) (runner.Agent, error) {
	if !engine.MatchString(a.Config) {
		return a, fmt.Errorf("cannot change the engine of agent %s: its configuration has no %s", a.Name, engine)
	}
	e := engines[i]
	a.Name, a.Title, a.Config = e.name, e.title, engine.ReplaceAllLiteralString(a.Config, "runtimeprofile: "+e.setting)
	return a, nil
}
