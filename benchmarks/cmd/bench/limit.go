// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/godwit-otel/godwit/benchmarks/limit"
	"github.com/godwit-otel/godwit/benchmarks/runner"
)

// The default loads take less than 15 minutes with four agents.
const limitCells = "W1@15k,W1@50k,W1@100k,W2@50k,W2@max,W3@50k,W4@50k,W5@50k,W6@50k"

// The loads of relays: a thousand targets every ten seconds, and five times as many samples.
const relayCells = "R1@50k,R2@50k,R1@250k,R2@250k,R3@50k"

// The loads of aggregation.
const aggregateCells = "A1@15k,A1@50k,A1@250k,A2@50k"

// measureLimit measures agents with series limits on and off.
func measureLimit(ctx context.Context, args []string) error {
	return measureLoads(ctx, "limit", "Limits on and off", limitCells, args)
}

// measureRelay measures agents that relay what they receive. The window begins after one-time work, which takes some
// ten seconds from the start.
func measureRelay(ctx context.Context, args []string) error {
	return measureLoads(ctx, "relay", "Relays", relayCells, append([]string{"-warm-up=14s", "-window=12s"}, args...))
}

// measureAggregate measures agents that aggregate many series into few. The window is a multiple of the aggregation
// interval.
func measureAggregate(ctx context.Context, args []string) error {
	return measureLoads(ctx, "aggregate", "Aggregation", aggregateCells, append([]string{"-warm-up=15s", "-window=20s"}, args...))
}

func measureLoads(ctx context.Context, name, title, all string, args []string) error {
	s := runner.LimitSuite{Name: name, Title: title}
	if gogc := os.Getenv("GOGC"); gogc != "" { // agents inherit it, and their results are stored beside those of their own settings
		s.Name, s.Title = name+"-gogc-"+gogc, title+", all with GOGC "+gogc
	}
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	root := f.String("root", "..", "the repository's root")
	f.IntVar(&s.Repeats, "repeats", 1, "how often the agents are run, in turn: A B A B")
	f.StringVar(&s.Command, "command", "bench "+name+" "+strings.Join(args, " "), "the command that reports name")
	f.DurationVar(&s.WarmUp, "warm-up", 5*time.Second, "before each window")
	f.DurationVar(&s.Window, "window", 12*time.Second, "length of the window")
	cells := f.String("cells", all, "loads and their rates, with commas")
	agents := f.String("agents", "headline", "all, headline, or names of files in benchmarks/"+name+"/agents")
	short := f.Bool("short", false, "try the instrument out, for seconds")
	to := f.String("out", "", "directory of the results, empty for benchmarks/results")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *short {
		*cells, s.WarmUp, s.Window = map[string]string{"limit": "W1@15k,W4@50k", "relay": "R1@50k", "aggregate": "A1@50k"}[name], 4*time.Second, 4*time.Second
	}
	var err error
	if s.Root, err = filepath.Abs(*root); err != nil {
		return err
	}
	contenders, err := runner.LoadLimitAgents(filepath.Join(s.Root, "benchmarks", name, "agents"))
	if err != nil {
		return err
	}
	if s.Agents, err = runner.SelectLimit(contenders, *agents); err != nil {
		return err
	}
	if s.Cells, err = limit.ParseCells(*cells); err != nil {
		return err
	}
	if *to == "" {
		*to = filepath.Join(s.Root, "benchmarks", "results")
	}
	s.Out = out
	begun := time.Now()
	r, err := s.Run(ctx)
	if err != nil {
		return err
	}
	out("done in %v: %s", time.Since(begun).Round(time.Second), filepath.Join(*to, r.Name+".md"))
	return r.Save(*to)
}

// loadLimit is the process that sends one load.
func loadLimit(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("limit-load", flag.ContinueOnError)
	shape := f.String("shape", "W1", "W1 to W6, R1 to R3, A1, A2")
	page := f.String("page", "../testdata/pages/node.txt", "what relays are given")
	rate := f.Int("rate", 0, "points per second, 0 for as many as are taken")
	if err := f.Parse(args); err != nil {
		return err
	}
	return runner.Replay(ctx, *shape, *rate, *page)
}

// renderLimit renders the reports of all results of loads again.
func renderLimit(dir string) error {
	var files []string
	for _, name := range []string{"limit", "relay", "aggregate"} {
		for _, pattern := range []string{name + ".json", name + "-gogc-*.json"} {
			found, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil {
				return fmt.Errorf("cannot list results: %w", err)
			}
			files = append(files, found...)
		}
	}
	for _, file := range files {
		r, err := limit.Load(file)
		if err != nil {
			return err
		}
		if err := r.Render(dir); err != nil {
			return err
		}
	}
	return nil
}
