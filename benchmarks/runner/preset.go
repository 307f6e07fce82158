// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/godwit-otel/godwit/benchmarks/farm"
)

// Parties are one agent of each party.
const Parties = "godwit-rw2,prometheus-rw2,stock-rw2,vmagent-zstd"

// Others are the agents for varied fleets: one of ours, and the lightest rival.
const Others = "godwit-rw2,vmagent-zstd"

// OTLP are the agents that send OTLP, and the lightest rival, which cannot.
const OTLP = "godwit-otlpstream,godwit-otlp-zstd,godwit-otlp-gzip,stock-otlp-zstd,stock-otlp-gzip,vmagent-zstd"

// Road are our agent with processors that people often use, and the lightest rival.
const Road = "godwit-rw2,godwit-road-limits,godwit-road-batch,godwit-road-attributes,godwit-road-resource,vmagent-zstd"

// Formats are our agent with its formats for each kind of destination, and the rivals with the same formats.
const Formats = "godwit-rw2,godwit-rw1,godwit-rw2-snappy,vmagent-zstd,prometheus-rw2"

// Preset is a named workload.
type Preset struct {
	Job

	// Agents are the default agents.
	Agents string
}

// presets returns the workloads; page is the file of the captured node_exporter page.
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
	// Others resemble real fleets more than `node` does: targets that share nothing, relabelling, TLS, pages of all
	// sizes.
	others := func(about string, job Job) Preset {
		job.About, job.Farm.Bodies = about, "gzip"
		job.Interval, job.Intervals = cmp.Or(job.Interval, 10*time.Second), cmp.Or(job.Intervals, 2)
		return Preset{Agents: Others, Job: job}
	}
	twins := farm.Config{Page: "node", NodePage: page, Targets: 1000, Change: 0.3}
	own, relabelled, secured, hostile := twins, twins, twins, twins
	own.Own = true
	relabelled.Relabelled = true
	secured.TLS = true
	hostile.Hostile, hostile.Targets = true, 100
	return map[string]Preset{
		"road":    node(Road, "gzip"),
		"formats": node(Formats, "gzip"),
		"own":     others("with a label value of the target's own on each series", Job{Farm: own}),
		"relabel": others("of which kube-prometheus' rules drop a part and copy the host into a label", Job{Farm: relabelled, Scrape: []string{farm.Rules}}),
		"tls":     others("behind TLS and a token", Job{Farm: secured, Scrape: farm.Secured}),
		"kubelet": others("behind TLS and a token, 2 % of the pods replaced in each scrape", Job{
			Farm: farm.Config{Page: "kubelet", Targets: 1000, Change: 0.3, TLS: true}, Scrape: farm.Secured,
		}),
		"mixed": others("from 20 to 20,000 samples", Job{
			Farm: farm.Config{Page: "mixed", NodePage: page, Targets: 400, Change: 0.3}, Interval: 20 * time.Second,
		}),
		"mixed-plain": others("from 20 to 20,000 samples, without exemplars", Job{
			Farm: farm.Config{Page: "mixed", NodePage: page, Targets: 400, Change: 0.3, Plain: true}, Interval: 20 * time.Second,
		}),
		"ksm-changes": others("of which 10 % of the values change", Job{Farm: farm.Config{Page: "ksm", Targets: 1, Change: 0.1}, Interval: 15 * time.Second}),
		// The same page sent as OTLP, by ours and by the Collector's exporters.
		"otlp": node(OTLP, "gzip"),
		"bomb": others("beside a gzip bomb of 1 GiB and a target that drips for ever", Job{Farm: hostile, Interval: 5 * time.Second, Intervals: 6}),

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

// Workload returns a preset by name.
func Workload(name, root string) (Preset, error) {
	all := presets(filepath.Join(root, "testdata", "pages", "node.txt"))
	if p, ok := all[name]; ok {
		return p, nil
	}
	return Preset{}, fmt.Errorf("cannot find workload %q: it is none of %s", name, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
}
