// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package matrix makes configurations in which options of our components differ from their defaults: one at a time, in
// random pairs, and in random pipelines. It reads the keys from the sources, so that none is missed. It runs nothing,
// and its results depend only on the seed.
package matrix

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Choice is a value for an option of a component.
type Choice struct {
	Component *Component
	Option    *Option
	Value     Value
}

// String returns the choice on one line.
func (c Choice) String() string {
	return fmt.Sprintf("%s %s %s %s: %s", c.Component.Role, strings.TrimSuffix(c.Component.Section, "s"), c.Component.ID, c.Option.Key, c.Value.Text)
}

// Extra is YAML merged into the configuration of one process.
type Extra struct{ Role, Text string }

// End says how the processes of a run end.
type End int

// What happens before both processes are stopped.
const (
	Orderly End = iota
	KillAgent
	KillGateway
)

// Run is a configuration of both processes.
type Run struct {
	Seed    uint64
	Choices []Choice
	Extras  []Extra
	// Gates are feature gates for both processes.
	Gates []string
	// Full is set to run the full distribution, which has components that the others lack.
	Full bool
	End  End
}

// Loses reports whether data may be lost.
func (r *Run) Loses() bool {
	return slices.ContainsFunc(r.Choices, func(c Choice) bool { return c.Value.Loses })
}

// String describes the run on several lines.
func (r *Run) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "run %d, end %d, full %v, gates %q", r.Seed, r.End, r.Full, r.Gates)
	for _, c := range r.Choices {
		fmt.Fprintf(&b, "\n  %v", c)
	}
	for _, e := range r.Extras {
		fmt.Fprintf(&b, "\n  %s: %s", e.Role, strings.Join(strings.Fields(e.Text), " "))
	}
	return b.String()
}

// all returns each value of each option of a component.
func (c *Component) all() []Choice {
	var all []Choice
	for i := range c.Options {
		for _, value := range c.Options[i].Values {
			all = append(all, Choice{c, &c.Options[i], value})
		}
	}
	return all
}

// Singles returns runs in which each component has one option that differs from its default, so that all values of all
// options occur. Components are independent, so one process tests an option of each.
func Singles() []*Run {
	var runs []*Run
	at := func(i int) *Run {
		for len(runs) <= i {
			runs = append(runs, &Run{Seed: uint64(len(runs)), End: End(len(runs) % 3)})
		}
		return runs[i]
	}
	for c := range Components {
		i := 0
		for _, choice := range Components[c].all() {
			for choice.Value.Peer != "" && at(i).reaches() { // two could change the same setting of the other process
				i++
			}
			run := at(i)
			run.Choices = append(run.Choices, choice)
			i++
		}
	}
	return runs
}

// reaches reports whether the run has a value that also changes the other process.
func (r *Run) reaches() bool {
	return slices.ContainsFunc(r.Choices, func(c Choice) bool { return c.Value.Peer != "" })
}

// Random returns run number seed: up to two options per component differ from their defaults, pipelines have processors
// of other vendors, exporters share data, and feature gates are set.
func Random(seed uint64) *Run {
	dice := rand.New(rand.NewPCG(seed, 17))
	run := &Run{Seed: seed, End: End(dice.IntN(3)), Full: dice.IntN(2) == 0}
	for c := range Components {
		all := Components[c].all()
		for range dice.IntN(3) {
			choice := all[dice.IntN(len(all))]
			taken := func(other Choice) bool {
				return other.Component == choice.Component && overlap(other.Option.Key, choice.Option.Key)
			}
			if slices.ContainsFunc(run.Choices, taken) || choice.Value.Peer != "" && run.reaches() {
				continue
			}
			run.Choices = append(run.Choices, choice)
		}
	}
	for _, pipeline := range []struct{ role, name string }{{Agent, "metrics/fast"}, {Agent, "metrics/drop"}, {Gateway, "metrics"}} {
		run.extend(dice, pipeline.role, pipeline.name)
	}
	if dice.IntN(4) == 0 {
		run.Gates = append(run.Gates, gates[dice.IntN(len(gates))])
	}
	if slices.Contains(run.Gates, pooling) {
		run.Extras = slices.DeleteFunc(run.Extras, Extra.batches)
	}
	return run
}

func overlap(a, b string) bool {
	head := func(key string) string {
		before, _, _ := strings.Cut(key, "::")
		return before
	}
	return head(a) == head(b)
}

// pooling makes the Collector free metrics once a component has consumed them. With the Collector's own batch
// processor, only the first of several exporters then gets the data, whichever they are: with two debug exporters, the
// second one has no points.
const pooling = "pdata.useProtoPooling"

// batches reports whether an extra adds a batch processor.
func (e Extra) batches() bool { return strings.HasPrefix(e.Text, "processors: {batch") }

// gates are those that affect components.
var gates = []string{pooling, "receiverhelper.newReceiverMetrics", "telemetry.newPipelineTelemetry"}

// processors of other vendors, with a configuration that keeps all data. Small ones are in every distribution.
var processors = []struct {
	id, text string
	small    bool
}{
	{"batch", "{timeout: 50ms}", true},
	{"batch/tiny", "{timeout: 10ms, send_batch_size: 3, send_batch_max_size: 3}", true},
	{"batch/keyed", "{timeout: 50ms, metadata_keys: [x-tenant]}", true},
	{"memory_limiter", "{check_interval: 1s, limit_mib: 1000}", true},
	{"filter", "{metrics: {metric: ['name == \"nothing\"']}}", false},
	{"cardinality/second", "{}", true},
	{"attributes", "{actions: [{key: wing, value: left, action: insert}]}", false},
	{"resource", "{attributes: [{key: nest, value: far, action: upsert}]}", false},
	{"transform", "{metric_statements: ['set(datapoint.attributes[\"plume\"], \"grey\")']}", false},
	{"resourcedetection", "{detectors: [env]}", false},
}

// extend adds processors and exporters of other vendors to a pipeline.
func (r *Run) extend(dice *rand.Rand, role, pipeline string) {
	for range dice.IntN(3) {
		p := processors[dice.IntN(len(processors))]
		if !p.small && (!r.Full) {
			continue
		}
		list := "processors"
		r.Extras = append(r.Extras, Extra{role, fmt.Sprintf(
			"processors: {%s: %s}\nservice: {pipelines: {%s: {%s+: [%s]}}}\n", p.id, p.text, pipeline, list, p.id,
		)})
	}
	if dice.IntN(3) == 0 {
		r.Extras = append(r.Extras, Extra{role, fmt.Sprintf(
			"exporters: {debug: {verbosity: basic}}\nservice: {pipelines: {%s: {exporters+: [debug]}}}\n", pipeline,
		)})
	}
	if dice.IntN(3) == 0 {
		r.Extras = append(r.Extras, Extra{role, fmt.Sprintf(
			"exporters: {nop: {}}\nservice: {pipelines: {%s: {exporters+: [nop]}}}\n", pipeline,
		)})
	}
	if pipeline == "metrics/drop" && dice.IntN(3) == 0 {
		r.Extras = append(r.Extras, Extra{role, "service: {pipelines: {metrics/drop: {exporters+: [remotewrite]}}}\n"})
	}
}
