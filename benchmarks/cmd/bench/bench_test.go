// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/godwit-otel/godwit/benchmarks/runner"
)

func TestAxesGrowAndKeepTheWorkHonest(t *testing.T) {
	for _, a := range axes {
		if !slices.IsSorted(a.points) || len(a.points) < 4 {
			t.Errorf("%s: points %v", a.name, a.points)
		}
		for _, x := range a.few {
			if !slices.Contains(a.points, x) {
				t.Errorf("%s: %v is none of its points %v", a.name, x, a.points)
			}
		}
		for _, x := range a.points {
			if p, err := a.job("../../..", x); err != nil || p.Farm.Targets < 1 {
				t.Errorf("%s = %v: %d targets, %v", a.name, x, p.Farm.Targets, err)
			}
		}
	}
	if growthIntervals < 3 {
		t.Errorf("a window has only %d scrapes of each target", growthIntervals)
	}
}

// Each setting of garbage collection replaces the one in our agents' own configurations, for scraping and for the
// gateway.
func TestAgentsCanBeGivenEachEngine(t *testing.T) {
	agents, err := runner.LoadAgents("../../agents")
	if err != nil {
		t.Fatal(err)
	}
	picked, err := runner.Select(agents, "godwit-rw2")
	if err != nil {
		t.Fatal(err)
	}
	gateways, err := runner.LoadLimitAgents("../../limit/agents")
	if err != nil {
		t.Fatal(err)
	}
	through, err := runner.SelectLimit(gateways, gogcThrough)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range append(picked, through[0].Agent) {
		for i, e := range engines {
			b, err := withEngine(a, i)
			if err != nil || b.Name != e.name || strings.Count(b.Config, "runtimeprofile: {") != 1 || !strings.Contains(b.Config, e.setting) {
				t.Errorf("%s with %s: %v\n%s", a.Name, e.name, err, b.Config)
			}
		}
	}
	if _, err := withEngine(runner.Agent{Name: "other"}, 0); err == nil {
		t.Error("an agent without the extension was given an engine")
	}
}
