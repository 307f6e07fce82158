// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/godwit-otel/godwit/benchmarks/limit"
	"github.com/godwit-otel/godwit/benchmarks/runner"
)

// The default set takes less than 15 minutes with four agents.
const limitCells = "W1@15k,W1@50k,W1@100k,W2@50k,W2@max,W3@50k,W4@50k,W5@50k,W6@50k"

// measureLimit measures agents with series limits on and off.
func measureLimit(ctx context.Context, args []string) error {
	var s runner.LimitSuite
	f := flag.NewFlagSet("limit", flag.ContinueOnError)
	root := f.String("root", "..", "the repository's root")
	f.IntVar(&s.Repeats, "repeats", 1, "how often the agents are run, in turn: A B A B")
	f.StringVar(&s.Command, "command", "bench limit "+strings.Join(args, " "), "the command that reports name")
	f.DurationVar(&s.WarmUp, "warm-up", 5*time.Second, "before each window")
	f.DurationVar(&s.Window, "window", 12*time.Second, "length of the window")
	cells := f.String("cells", limitCells, "loads and their rates, with commas")
	agents := f.String("agents", "headline", "all, headline, or names of files in benchmarks/limit/agents")
	short := f.Bool("short", false, "try the instrument out: W1@15k and W4@50k, for seconds")
	to := f.String("out", "", "directory of the results, empty for benchmarks/results")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *short {
		*cells, s.WarmUp, s.Window = "W1@15k,W4@50k", 4*time.Second, 4*time.Second
	}
	var err error
	if s.Root, err = filepath.Abs(*root); err != nil {
		return err
	}
	all, err := runner.LoadLimitAgents(filepath.Join(s.Root, "benchmarks", "limit", "agents"))
	if err != nil {
		return err
	}
	if s.Agents, err = runner.SelectLimit(all, *agents); err != nil {
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

// loadLimit is the process of one load.
func loadLimit(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("limit-load", flag.ContinueOnError)
	shape := f.String("shape", "W1", "W1 to W6")
	rate := f.Int("rate", 0, "points per second, 0 for as many as are taken")
	if err := f.Parse(args); err != nil {
		return err
	}
	return runner.Replay(ctx, *shape, *rate)
}

// renderLimit renders its result again, if there is one.
func renderLimit(dir string) error {
	r, err := limit.Load(filepath.Join(dir, "limit.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return r.Render(dir)
}
