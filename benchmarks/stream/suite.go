// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/godwit-otel/godwit/benchmarks/distance"
	"github.com/godwit-otel/godwit/benchmarks/report"
	"github.com/godwit-otel/godwit/benchmarks/runner"
)

// Suite holds the settings of a run.
type Suite struct {
	Root string // of the repository
	// Collector is the program in pipelines: a build of the full distribution.
	Collector string
	// Streams is a build with all encodings, ours and others'; if it is empty, others' are left out.
	Streams string
	Repeats int
	// Parts are any of cells, pipelines, wire and encodings.
	Parts []string
	// Only selects the cells of these variants; empty selects all.
	Only []string
	// Shrink divides the number of batches and all times, for a trial.
	Shrink  int
	Command string
	Out     func(format string, args ...any)

	bench string // the path of this program, which starts itself
	dir   string // for logs and configurations
}

// Run measures everything, in turn for each repeat: A B A B. It must be called from a goroutine that is locked to the
// main thread.
func (s *Suite) Run(ctx context.Context) (*report.Stream, error) {
	var err error
	if s.bench, err = os.Executable(); err != nil {
		return nil, fmt.Errorf("cannot find this program: %w", err)
	}
	if s.dir, err = os.MkdirTemp("", "godwit-bench-"); err != nil {
		return nil, fmt.Errorf("cannot make a scratch directory: %w", err)
	}
	defer os.RemoveAll(s.dir)
	r := &report.Stream{
		Name: "stream", Title: "OTLP streamed, and one request at a time",
		Taken: time.Now().UTC().Truncate(time.Second), Command: s.Command, Machine: runner.Machine(),
	}
	parts := []struct {
		name string
		run  func(context.Context, *report.Stream) error
	}{{"cells", s.cells}, {"pipelines", s.pipelines}, {"wire", s.wire}, {"encodings", s.encodings}}
	for _, p := range parts {
		if !slices.Contains(s.Parts, p.name) {
			r.Skipped = append(r.Skipped, p.name+": not asked for")
			continue
		}
		if err := p.run(ctx, r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (s *Suite) cells(ctx context.Context, r *report.Stream) error {
	cells := Cells(Points())
	if len(s.Only) > 0 {
		cells = slices.DeleteFunc(cells, func(c Cell) bool { return !slices.Contains(s.Only, c.Variant) })
	}
	for _, c := range cells {
		v, err := c.variant()
		if err != nil {
			return err
		}
		r.Cells = append(r.Cells, report.StreamCell{
			Variant: v.Name, Title: v.Title, Party: v.party(), Point: c.Point, Then: then(v.Name, c.Point),
		})
	}
	begun := time.Now()
	for round := range s.Repeats {
		for i, c := range cells {
			c.Batches = max(1, c.Batches/s.Shrink)
			row := &r.Cells[i]
			run, err := s.cell(c)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				s.Out("  %s FAILED: %v", c.Variant, err)
				row.Failed = append(row.Failed, err.Error())
				continue
			}
			row.Runs = append(row.Runs, *run)
			s.Out("[%d/%d %v] %s, %s: %.0f batches/s, %.2f ms of CPU a batch, %d MB", round*len(cells)+i+1, s.Repeats*len(cells),
				time.Since(begun).Round(time.Second), row.Title, c.Point, run.Rate(), run.CPUPerBatch(), run.RSSPeak/1e6)
		}
	}
	return nil
}

func (v *Variant) party() string {
	if v.Party != "" {
		return v.Party
	}
	return "godwit"
}

// cell measures a cell in a process of its own.
func (s *Suite) cell(c Cell) (*report.StreamRun, error) {
	spec, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	p, err := startChild(s.dir, "cell", s.bench, "stream-cell", string(spec))
	if err != nil {
		return nil, err
	}
	defer p.stop()
	var run report.StreamRun
	return &run, p.line(&run)
}

// RunCell is the main function of a cell's process.
func RunCell(ctx context.Context, spec string, out io.Writer) error {
	var c Cell
	if err := json.Unmarshal([]byte(spec), &c); err != nil {
		return fmt.Errorf("cannot read the cell: %w", err)
	}
	r, err := c.Run(ctx, elsewhere)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(r)
}

// where is what the process of a network prints.
type where struct {
	Addr string `json:"addr"`
	// Sent is the number of bytes from clients, printed at the end.
	Sent int64 `json:"sent"`
}

// RunNetwork is the main function of a network's process.
func RunNetwork(ctx context.Context, to string, delay time.Duration, out io.Writer) error {
	p, err := distance.NewProxy(to, delay)
	if err != nil {
		return err
	}
	err = json.NewEncoder(out).Encode(where{Addr: p.Addr()})
	if err == nil {
		<-ctx.Done()
	}
	p.Close()
	return errors.Join(err, json.NewEncoder(out).Encode(where{Sent: p.Sent()}))
}

// elsewhere is a network in a process of its own, so that its CPU time does not count as the cell's.
func elsewhere(to string, delay time.Duration) (addr string, stop func(), err error) {
	bench, err := os.Executable()
	if err != nil {
		return "", nil, fmt.Errorf("cannot find this program: %w", err)
	}
	p, addr, err := startNetwork(os.TempDir(), bench, to, delay)
	if err != nil {
		return "", nil, err
	}
	return addr, func() { p.stop(); os.Remove(p.log) }, nil
}

func startNetwork(dir, bench, to string, delay time.Duration) (*child, string, error) {
	p, err := startChild(dir, filepath.Base(to)+".network", bench, "stream-network", "-to", to, "-delay", delay.String())
	if err != nil {
		return nil, "", err
	}
	var at where
	if err := p.line(&at); err != nil {
		p.stop()
		return nil, "", err
	}
	return p, at.Addr, nil
}
