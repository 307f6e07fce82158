// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godwit-otel/godwit/benchmarks/runner"
)

// An axis is a quantity that grows along a curve.
type axis struct {
	name, title string
	points      []float64
	// few are the points at which the slow agents run too.
	few []float64
	job func(root string, x float64) (runner.Preset, error)
}

// The scrape interval at every point, and the length of the window in intervals.
const (
	growthInterval  = 5 * time.Second
	growthIntervals = 3
)

// samplesPerInterval is the same for all page sizes.
const samplesPerInterval = 300_000

var axes = []axis{
	{
		"targets", "Cost against the number of targets: node_exporter pages every 5 s",
		[]float64{100, 300, 1000, 2000},
		[]float64{100, 1000},
		func(root string, x float64) (runner.Preset, error) {
			p, err := runner.Workload("node", root)
			p.Farm.Targets = int(x)
			return p, err
		},
	},
	{
		"samples", "Cost against the size of a page: 300,000 samples every 5 s in pages of that size",
		[]float64{500, 5_000, 50_000, 300_000},
		[]float64{500, 300_000},
		func(root string, x float64) (runner.Preset, error) {
			p, err := runner.Workload("ksm", root)
			p.Farm.Samples, p.Farm.Targets = int(x), int(samplesPerInterval/x)
			return p, err
		},
	},
	{
		"churn", "Cost against churn: 500 node_exporter pages every 5 s",
		[]float64{0, 0.01, 0.1, 0.5},
		[]float64{0, 0.5},
		func(root string, x float64) (runner.Preset, error) {
			p, err := runner.Workload("node", root)
			p.Farm.Targets, p.Farm.Churn = 500, x
			return p, err
		},
	},
}

// growth measures agents along axes.
func growth(ctx context.Context, args []string) error {
	var common suiteFlags
	f := flag.NewFlagSet("growth", flag.ContinueOnError)
	common.add(f, "godwit-rw2,vmagent-zstd")
	few := f.String("few", "prometheus-rw2,stock-rw2", "agents that run at a few points of each axis, because they are slow to measure")
	which := f.String("axes", "targets,samples,churn", "axes to grow along")
	scale := f.Float64("scale", 1, "share of the targets to run, for a trial")
	if err := f.Parse(args); err != nil {
		return err
	}
	suite, err := common.suite(append([]string{"growth"}, args...)...)
	if err != nil {
		return err
	}
	everywhere, err := runner.Select(common.all, common.agents)
	if err != nil {
		return err
	}
	everywhere, skipped := suite.Present(everywhere)
	var dear []runner.Agent
	if *few != "" {
		if dear, err = runner.Select(common.all, *few); err != nil {
			return err
		}
		var missing []string
		dear, missing = suite.Present(dear)
		skipped = append(skipped, missing...)
	}
	var plan []axis
	runs := 0
	for name := range strings.SplitSeq(*which, ",") {
		i := slices.IndexFunc(axes, func(a axis) bool { return a.name == name })
		if i < 0 {
			return fmt.Errorf("cannot grow along %q: it is none of targets, samples, churn", name)
		}
		plan = append(plan, axes[i])
		runs += len(axes[i].points)*len(everywhere) + len(axes[i].few)*len(dear)
	}
	begun := time.Now()
	suite.Begin(runs)
	for _, a := range plan {
		r := suite.Result("growth-"+a.name, a.title, skipped)
		r.Axis = a.name
		for _, x := range a.points {
			agents := everywhere
			if slices.Contains(a.few, x) {
				agents = slices.Concat(everywhere, dear)
			}
			p, err := a.job(suite.Root, x)
			if err != nil {
				return err
			}
			p.Interval, p.Intervals = growthInterval, growthIntervals
			p.Farm.Targets = max(1, int(float64(p.Farm.Targets)**scale))
			out("%s = %v", a.name, x)
			load, rows, err := suite.Measure(ctx, agents, p.Job, x)
			if err != nil {
				return err
			}
			r.Workload, r.Rows = load, append(r.Rows, rows...)
		}
		if err := suite.Write(r); err != nil {
			return err
		}
	}
	out("done in %v", time.Since(begun).Round(time.Second))
	return nil
}
