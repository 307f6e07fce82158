// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"path/filepath"
	"strings"
	"time"

	"github.com/godwit-otel/godwit/benchmarks/handoff"
	"github.com/godwit-otel/godwit/benchmarks/report"
	"github.com/godwit-otel/godwit/benchmarks/runner"
)

// runHandoff compares ways to hand items from many goroutines to one. In each repeat all ways are measured in turn.
func runHandoff(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("handoff", flag.ContinueOnError)
	root := f.String("root", "..", "the repository's root")
	to := f.String("out", "", "directory of the results, empty for benchmarks/results")
	repeats := f.Int("repeats", 3, "how often all is measured, in turn")
	items := f.Int("items", 2_000_000, "handed over as fast as can be")
	steady := f.Duration("steady", time.Second, "how long items come at a steady rate")
	command := f.String("command", "bench handoff "+strings.Join(args, " "), "the command that reports name")
	if err := f.Parse(args); err != nil {
		return err
	}
	h := &report.Handoff{
		Name: "handoff", Title: "Handing items from many goroutines to one",
		Taken: time.Now().UTC().Truncate(time.Second), Command: *command, Machine: runner.Machine(),
	}
	for _, producers := range handoff.Producers {
		for _, w := range handoff.Ways() {
			h.Rows = append(h.Rows, report.HandoffRow{Way: w.Name, Title: w.Title, Producers: producers})
		}
	}
	ways := handoff.Ways()
	for range *repeats {
		for i := range h.Rows {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			r, w := &h.Rows[i], ways[i%len(ways)]
			took, err := handoff.Flood(w.New(), r.Producers, *items)
			if err != nil {
				return err
			}
			r.Rate = append(r.Rate, float64(*items)/took.Seconds()/1e6)
			consumer, process := handoff.Steady(w.New(), r.Producers, *steady)
			r.Consumer = append(r.Consumer, float64(consumer.Nanoseconds()))
			r.Process = append(r.Process, float64(process.Nanoseconds()))
			out("%d producers, %s: %.1f M/s; %v an item of the consumer, %v of all", r.Producers, r.Title, r.Rate[len(r.Rate)-1], consumer, process)
		}
	}
	if *to == "" {
		*to = filepath.Join(*root, "benchmarks", "results")
	}
	if err := report.WriteHandoff(*to, h); err != nil {
		return err
	}
	out("wrote %s", filepath.Join(*to, "handoff.md"))
	return nil
}
