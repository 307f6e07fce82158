// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/godwit-otel/godwit/benchmarks/farm"
	"github.com/godwit-otel/godwit/benchmarks/report"
)

// Suite runs agents on jobs and gathers the results.
type Suite struct {
	Root    string // of the repository
	Agents  []Agent
	Repeats int
	Command string
	Out     func(format string, args ...any)

	begun time.Time
	done  int
	all   int
}

// Preset is a job by its name.
func Preset(name, root string) (Job, error) {
	node := filepath.Join(root, "testdata", "pages", "node.txt")
	switch name {
	case "node", "node-zstd":
		_, bodies, _ := strings.Cut(name, "-")
		return Job{
			Farm:     farm.Config{Page: "node", NodePage: node, Bodies: cmp.Or(bodies, "gzip"), Targets: 1000, Change: 0.3},
			Interval: 10 * time.Second, Intervals: 2,
		}, nil
	case "far":
		return Job{
			Farm:     farm.Config{Page: "node", NodePage: node, Bodies: "gzip", Targets: 2000, Change: 0.3},
			Interval: 2 * time.Second, Intervals: 10, RTT: 200 * time.Millisecond,
		}, nil
	case "app":
		return Job{Farm: farm.Config{Page: "app", Targets: 50, Change: 0.3}, Interval: 10 * time.Second, Intervals: 2}, nil
	case "ksm":
		return Job{Farm: farm.Config{Page: "ksm", Bodies: "gzip", Targets: 1, Change: 0.05}, Interval: 15 * time.Second, Intervals: 3}, nil
	}
	return Job{}, fmt.Errorf("cannot find workload %q: it is none of node, node-zstd, far, app, ksm", name)
}

// Begin tells how many runs will follow, for progress, and leaves out agents
// that have no binary.
func (s *Suite) Begin(jobs int) (skipped []string) {
	var present []Agent
	for _, a := range s.Agents {
		if _, missing := a.binary(s.Root); missing != "" {
			skipped = append(skipped, a.Name+": "+missing)
			s.Out("skipping %s: %s", a.Name, missing)
			continue
		}
		present = append(present, a)
	}
	s.Agents = present
	s.begun, s.all = time.Now(), jobs*len(present)*s.Repeats
	return skipped
}

// Measure runs all agents in turn on one job, and all again for each repeat.
func (s *Suite) Measure(ctx context.Context, job Job, at float64) (report.Workload, []report.Row, error) {
	b, err := Open(ctx, s.Root, job, func(format string, args ...any) { s.Out("  "+format, args...) })
	if err != nil {
		return report.Workload{}, nil, err
	}
	defer b.Close()
	rows := make([]report.Row, len(s.Agents))
	for i := range s.Agents {
		a := &s.Agents[i]
		path, _ := a.binary(s.Root)
		rows[i] = report.Row{Agent: a.Name, Title: a.Title, Party: a.Party, Version: version(path), At: at}
	}
	for range s.Repeats {
		for i := range s.Agents {
			s.done++
			s.Out("[%d/%d] %v", s.done, s.all, time.Since(s.begun).Round(time.Second))
			run, err := b.Run(ctx, &s.Agents[i])
			if err != nil {
				if ctx.Err() != nil {
					return report.Workload{}, nil, errors.Join(ctx.Err(), err)
				}
				s.Out("  %s FAILED: %v", s.Agents[i].Name, err) // the others still count
				rows[i].Failed = append(rows[i].Failed, err.Error())
				continue
			}
			rows[i].Runs = append(rows[i].Runs, *run)
			s.Out("  %s", report.Line(run))
		}
	}
	return b.Workload(), rows, nil
}

// Result makes an empty result of what was asked for.
func (s *Suite) Result(name, title string, skipped []string) *report.Result {
	return &report.Result{
		Name: name, Title: title, Taken: time.Now().UTC().Truncate(time.Second),
		Command: s.Command, Machine: Machine(), Skipped: skipped,
	}
}

// Write saves a result and renders its reports beside it.
func (s *Suite) Write(r *report.Result) error {
	dir := filepath.Join(s.Root, "benchmarks", "results")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot write results: %w", err)
	}
	if err := r.Save(filepath.Join(dir, r.Name+".json")); err != nil {
		return err
	}
	if err := report.Render(dir, r); err != nil {
		return err
	}
	s.Out("wrote benchmarks/results/%s.{json,md,svg}", r.Name)
	return nil
}
