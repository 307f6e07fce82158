// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/godwit-otel/godwit/benchmarks/report"
)

// Suite runs agents on jobs and collects the results.
type Suite struct {
	Root    string // of the repository
	Repeats int
	Command string
	Out     func(format string, args ...any)

	begun time.Time
	done  int
	all   int
}

// Present returns the agents that have a binary, and a message for each of the others.
func (s *Suite) Present(agents []Agent) (present []Agent, skipped []string) {
	for _, a := range agents {
		if _, missing := a.binary(s.Root); missing != "" {
			skipped = append(skipped, a.Name+": "+missing)
			s.Out("skipping %s: %s", a.Name, missing)
			continue
		}
		present = append(present, a)
	}
	return present, skipped
}

// Begin sets the number of runs that follow, without repeats, for progress.
func (s *Suite) Begin(runs int) {
	s.begun, s.done, s.all = time.Now(), 0, runs*s.Repeats
}

// next prints progress when a run begins.
func (s *Suite) next(name string) {
	elapsed := time.Since(s.begun)
	left := ""
	if s.done > 0 {
		left = fmt.Sprintf(", about %v to go", (elapsed / time.Duration(s.done) * time.Duration(s.all-s.done)).Round(time.Second))
	}
	s.done++
	s.Out("[%d/%d] %s, %v%s", s.done, s.all, name, elapsed.Round(time.Second), left)
}

// Measure runs agents in turn on one job, once for each repeat.
func (s *Suite) Measure(ctx context.Context, agents []Agent, job Job, at float64) (report.Workload, []report.Row, error) {
	b, err := Open(ctx, s.Root, job, func(format string, args ...any) { s.Out("  "+format, args...) })
	if err != nil {
		return report.Workload{}, nil, err
	}
	defer b.Close()
	rows := make([]report.Row, len(agents))
	for i := range agents {
		a := &agents[i]
		path, _ := a.binary(s.Root)
		rows[i] = report.Row{Agent: a.Name, Title: a.Title, Party: a.Party, Version: version(path), At: at}
	}
	for range s.Repeats {
		for i := range agents {
			s.next(agents[i].Name)
			run, err := b.Run(ctx, &agents[i])
			if err != nil {
				if ctx.Err() != nil {
					return report.Workload{}, nil, errors.Join(ctx.Err(), err)
				}
				s.Out("  %s FAILED: %v", agents[i].Name, err) // the other runs still count
				rows[i].Failed = append(rows[i].Failed, err.Error())
				continue
			}
			rows[i].Runs = append(rows[i].Runs, *run)
			s.Out("  %s", report.Line(run))
		}
	}
	return b.Workload(), rows, nil
}

// Result returns an empty result.
func (s *Suite) Result(name, title string, skipped []string) *report.Result {
	return &report.Result{
		Name: name, Title: title, Taken: time.Now().UTC().Truncate(time.Second),
		Command: s.Command, Machine: Machine(), Skipped: skipped,
	}
}

// Write saves a result and its reports.
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
	for i := range r.Rows {
		if w := &r.Rows[i]; len(w.Runs) > 1 {
			s.Out("  %s: its runs lie %.1f %% apart in CPU, %.1f %% at even speed", w.Agent,
				100*w.Apart((*report.Run).CPUPerMillion), 100*w.Apart((*report.Run).EvenCPUPerMillion))
		}
	}
	return nil
}
