// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/godwit-otel/godwit/benchmarks/farm"
)

// Parties is one agent of each party.
const Parties = "godwit-rw2,prometheus-rw2,stock-rw2,vmagent-zstd"

// Preset is a workload that has a name.
type Preset struct {
	Job

	// Agents are those to run on it when nobody says otherwise.
	Agents string
}

// presets are the workloads, given the file of the captured node_exporter page.
func presets(page string) map[string]Preset {
	node := func(agents, bodies string) Preset {
		return Preset{Agents: agents, Job: Job{
			Farm:     farm.Config{Page: "node", NodePage: page, Bodies: bodies, Targets: 1000, Change: 0.3},
			Interval: 10 * time.Second, Intervals: 2,
		}}
	}
	fast := node("godwit-rw2,prometheus-rw2,vmagent-zstd", "gzip") // the stock Collector would need all cores
	fast.Interval, fast.Intervals = 2*time.Second, 10
	far := node("godwit-rw2,vmagent-far", "gzip")
	far.Farm.Targets, far.RTT = 2000, 200*time.Millisecond
	far.Interval, far.Intervals = 2*time.Second, 10
	return map[string]Preset{
		"node":          node("all", "gzip"),
		"node-fast":     fast,
		"node-zstd":     node(Parties, "zstd"),
		"node-identity": node("godwit-rw2,vmagent-zstd", "identity"),
		"node-nop":      node("godwit-nop,vmagent-zstd", "gzip"),
		"far":           far,
		"app": {Agents: Parties, Job: Job{
			Farm:     farm.Config{Page: "app", Targets: 50, Change: 0.3},
			Interval: 10 * time.Second, Intervals: 2,
		}},
		"ksm": {Agents: "headline", Job: Job{
			Farm:     farm.Config{Page: "ksm", Bodies: "gzip", Targets: 1, Change: 0.05},
			Interval: 15 * time.Second, Intervals: 2,
		}},
	}
}

// Workload is a preset by its name.
func Workload(name, root string) (Preset, error) {
	all := presets(filepath.Join(root, "testdata", "pages", "node.txt"))
	if p, ok := all[name]; ok {
		return p, nil
	}
	return Preset{}, fmt.Errorf("cannot find workload %q: it is none of %s", name, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
}
