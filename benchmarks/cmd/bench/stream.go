// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/godwit-otel/godwit/benchmarks/report"
	"github.com/godwit-otel/godwit/benchmarks/stream"
)

// runStream measures streaming against unary OTLP.
func runStream(ctx context.Context, args []string) error {
	s := stream.Suite{Out: out}
	f := flag.NewFlagSet("stream", flag.ContinueOnError)
	f.StringVar(&s.Root, "root", "..", "the repository's root")
	f.StringVar(&s.Collector, "collector", "", "the Collector that pipelines are made of, empty for bin/godwit")
	f.StringVar(&s.Streams, "streams", "", "a Collector with stef and otelarrow besides, empty for none of them")
	f.IntVar(&s.Repeats, "repeats", 2, "how often everything is measured, in turn: A B A B")
	f.IntVar(&s.Shrink, "shrink", 1, "divide the work by this, to try the instrument out")
	f.StringVar(&s.Command, "command", "bench stream "+strings.Join(args, " "), "the command that reports name")
	parts := f.String("parts", "cells,pipelines,wire,encodings", "what to measure")
	only := f.String("variants", "", "names of variants, with commas; empty is all")
	to := f.String("out", "", "directory of the results, empty for benchmarks/results")
	if err := f.Parse(args); err != nil {
		return err
	}
	s.Parts = strings.Split(*parts, ",")
	if *only != "" {
		s.Only = strings.Split(*only, ",")
	}
	if s.Collector == "" {
		s.Collector = filepath.Join(s.Root, "bin", "godwit")
	}
	if *to == "" {
		*to = filepath.Join(s.Root, "benchmarks", "results")
	}
	begun := time.Now()
	r, err := s.Run(ctx)
	if err != nil {
		return err
	}
	var missing []string
	for _, part := range []string{"cells", "pipelines", "wire", "encodings"} {
		if !slices.Contains(s.Parts, part) {
			missing = append(missing, part)
		}
	}
	if err := report.KeepStream(*to, r, missing); err != nil {
		return err
	}
	if err := report.WriteStream(*to, r); err != nil {
		return err
	}
	out("done in %v: %s", time.Since(begun).Round(time.Second), filepath.Join(*to, "stream.md"))
	return nil
}

// runStreamCell is the process that measures one row.
func runStreamCell(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("cannot measure a row: one argument describes it")
	}
	return stream.RunCell(ctx, args[0], os.Stdout)
}

// runStreamNetwork is the process of a network with latency.
func runStreamNetwork(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("stream-network", flag.ContinueOnError)
	to := f.String("to", "", "address of the server")
	delay := f.Duration("delay", 0, "in one direction")
	if err := f.Parse(args); err != nil {
		return err
	}
	return stream.RunNetwork(ctx, *to, *delay, os.Stdout)
}
