// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"strings"

	"github.com/godwit-otel/godwit/benchmarks/runner"
)

// engines are ways to collect garbage, as settings of the extension runtimeprofile.
var engines = []struct{ name, title, setting string }{
	{"gogc-50", "GOGC 50", "{profile: balanced, gogc: 50}"},
	{"gogc-100", "GOGC 100", "{profile: balanced, gogc: 100}"},
	{"gogc-200", "GOGC 200", "{profile: balanced, gogc: 200}"},
	{"gogc-400", "GOGC 400", "{profile: balanced, gogc: 400}"},
	{"auto", "auto, in 128 MiB", "{profile: auto, memory_limit: 128MiB}"},
}

// engine is the line of our agents' configurations that the settings take the place of.
const engine = "runtimeprofile: {profile: minimal}"

// gogc measures what garbage collection costs our own agent, in CPU and in memory.
func gogc(ctx context.Context, args []string) error {
	var common suiteFlags
	f := flag.NewFlagSet("gogc", flag.ContinueOnError)
	common.add(f, "godwit-rw2")
	workloads := f.String("workloads", "node,ksm", "workloads to run it on")
	if err := f.Parse(args); err != nil {
		return err
	}
	for name := range strings.SplitSeq(*workloads, ",") {
		suite, err := common.suite(common.agents, append([]string{"gogc"}, args...))
		if err != nil {
			return err
		}
		if suite.Agents, err = withEngines(suite.Agents); err != nil {
			return err
		}
		job, err := runner.Preset(name, suite.Root)
		if err != nil {
			return err
		}
		r := suite.Result("gogc-"+name, "What garbage collection costs: the agent on "+name+" pages", suite.Begin(1))
		if r.Workload, r.Rows, err = suite.Measure(ctx, job, 0); err != nil {
			return err
		}
		if err := suite.Write(r); err != nil {
			return err
		}
	}
	return nil
}

// withEngines makes of each agent one for each engine.
func withEngines(agents []runner.Agent) (all []runner.Agent, err error) {
	for _, a := range agents {
		if !strings.Contains(a.Config, engine) {
			return nil, fmt.Errorf("cannot change the engine of agent %s: its configuration has no %q", a.Name, engine)
		}
		for _, e := range engines {
			b := a
			b.Name, b.Title, b.Config = e.name, e.title, strings.Replace(a.Config, engine, "runtimeprofile: "+e.setting, 1)
			all = append(all, b)
		}
	}
	return all, nil
}
