// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"strings"
	"time"

	"github.com/godwit-otel/godwit/benchmarks/runner"
)

// An axis is what a growth curve grows along.
type axis struct {
	name, title string
	points      []float64
	job         func(root string, x float64) (runner.Job, error)
}

// samplesPerInterval is the work that all page sizes have in common.
const samplesPerInterval = 300_000

var axes = []axis{
	{
		"targets", "Cost against the number of targets: node_exporter pages every 10 s",
		[]float64{100, 500, 1000, 2000},
		func(root string, x float64) (runner.Job, error) {
			job, err := runner.Preset("node", root)
			job.Farm.Targets = int(x)
			return job, err
		},
	},
	{
		"samples", "Cost against the size of a page: 300,000 samples every 10 s in pages of that size",
		[]float64{500, 5_000, 50_000, 300_000},
		func(root string, x float64) (runner.Job, error) {
			job, err := runner.Preset("ksm", root)
			job.Farm.Samples, job.Farm.Targets = int(x), int(samplesPerInterval/x)
			job.Interval = 10 * time.Second
			return job, err
		},
	},
	{
		"churn", "Cost against churn: 500 node_exporter pages every 10 s",
		[]float64{0, 0.01, 0.1, 0.5},
		func(root string, x float64) (runner.Job, error) {
			job, err := runner.Preset("node", root)
			job.Farm.Targets, job.Farm.Churn = 500, x
			return job, err
		},
	},
}

// growth measures agents along axes.
func growth(ctx context.Context, args []string) error {
	var common suiteFlags
	f := flag.NewFlagSet("growth", flag.ContinueOnError)
	common.add(f, "headline")
	which := f.String("axes", "targets,samples,churn", "axes to grow along")
	scale := f.Float64("scale", 1, "share of the targets to run, for a trial")
	if err := f.Parse(args); err != nil {
		return err
	}
	for name := range strings.SplitSeq(*which, ",") {
		for _, a := range axes {
			if a.name == name {
				if err := grow(ctx, &common, a, *scale, args); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func grow(ctx context.Context, common *suiteFlags, a axis, scale float64, args []string) error {
	suite, err := common.suite(common.agents, append([]string{"growth"}, args...))
	if err != nil {
		return err
	}
	r := suite.Result("growth-"+a.name, a.title, suite.Begin(len(a.points)))
	r.Axis = a.name
	for _, x := range a.points {
		job, err := a.job(suite.Root, x)
		if err != nil {
			return err
		}
		job.Farm.Targets = max(1, int(float64(job.Farm.Targets)*scale))
		out("%s = %v", a.name, x)
		load, rows, err := suite.Measure(ctx, job, x)
		if err != nil {
			return err
		}
		r.Workload, r.Rows = load, append(r.Rows, rows...)
	}
	return suite.Write(r)
}
