// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"net/http"
	"os"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/internal/inspect"
)

type (
	runtimeJSON = inspect.Runtime

	overviewJSON struct {
		Now       time.Time      `json:"now"`
		Started   time.Time      `json:"started"`
		Loaded    time.Time      `json:"loaded"`
		Over      *float64       `json:"over_seconds"`
		Collector collectorJSON  `json:"collector"`
		Health    string         `json:"health"`
		Findings  []finding      `json:"findings"`
		Process   processJSON    `json:"process"`
		Totals    totalsJSON     `json:"totals"`
		Latest    latestJSON     `json:"latest"`
		Targets   counts         `json:"targets"`
		Pipelines []pipelineJSON `json:"pipelines"`
		Nodes     []nodeJSON     `json:"nodes"`
	}

	collectorJSON struct {
		Name     string `json:"name"`
		Version  string `json:"version"`
		Hostname string `json:"hostname"`
	}

	totalsJSON struct {
		In        *float64 `json:"in_per_second"`
		Limited   *float64 `json:"limited_per_second"`
		Out       *float64 `json:"out_per_second"`
		To        int      `json:"destinations"`
		Dropped   *float64 `json:"dropped_per_second"`
		Wire      *float64 `json:"wire_bytes_per_second"`
		PerSample *float64 `json:"bytes_per_sample"`
		Received  *float64 `json:"received_wire_bytes_per_second"`
		Queued    int64    `json:"queued_bytes"`
	}

	nodeJSON struct {
		ID          string      `json:"id"`
		Kind        string      `json:"kind"`
		Name        string      `json:"name"`
		Seen        bool        `json:"seen"`
		Status      string      `json:"status"`
		StatusError string      `json:"status_error"`
		StatusSince *time.Time  `json:"status_since"`
		Rates       *rates      `json:"rates"`
		Unit        string      `json:"unit"`
		Outside     outsideJSON `json:"outside"`
		Live        bool        `json:"live"`
		Targets     *counts     `json:"targets"`

		Destinations []destinationJSON `json:"destinations"`
	}

	outsideJSON struct {
		In  *string `json:"in"`
		Out *string `json:"out"`
	}
)

func (c *console) overview(*http.Request) (any, error) {
	before, now := c.lookNow()
	g := c.graph()
	t := newTotals(before, now, g)
	hostname, _ := os.Hostname() // without a name the page says less
	out := overviewJSON{
		Now: now.at, Started: processStarted, Loaded: c.started,
		Collector: collectorJSON{c.set.BuildInfo.Command, c.set.BuildInfo.Version, hostname},
		Process:   newProcessJSON(before, now),
		Totals:    totalsJSON{t.in, t.limited, t.out, t.destinations, t.dropped, t.wire, t.perSample, t.received, t.queued},
		Latest:    latest(&t),
		Targets:   t.targets,
		Pipelines: []pipelineJSON{},
		Nodes:     []nodeJSON{},
	}
	if before != nil {
		out.Over = number(now.at.Sub(before.at).Seconds())
	}
	for _, s := range c.all() {
		if s.Runtime != nil {
			r := s.Runtime()
			if r.FromEnv == nil {
				r.FromEnv = []string{}
			}
			out.Process.Runtime = &r
		}
	}
	flows, instances := c.flows(before, now, g), c.instances(before, now)
	for _, id := range g.order {
		out.Nodes = append(out.Nodes, c.node(g.nodes[id], flows[id], before, now))
	}
	for _, p := range g.pipelines {
		out.Pipelines = append(out.Pipelines, p.draw(g, flows, instances[p.id]))
	}
	out.Findings = c.findings(before, now, g, &out)
	out.Health = health(out.Findings)
	return out, nil
}

// flows returns the rates of the components that show themselves, by node. A component that has several instances is
// all of them together.
func (c *console) flows(before, now *reading, g *graph) map[string]*rates {
	flows := map[string]*rates{}
	for _, s := range c.all() {
		if s.Flow == nil || g.nodes[s.node()] == nil {
			continue
		}
		f := flowBetween(before, now, s)
		sum := flows[s.node()]
		if sum == nil {
			flows[s.node()] = &f
			continue
		}
		if f.out == nil { // who tells signals apart is the only source of its component that hands on anything
			f.out = sum.out
		}
		*sum = rates{
			In: plus(sum.In, f.In), Out: plus(sum.Out, f.Out), Limited: plus(sum.Limited, f.Limited), Dropped: plus(sum.Dropped, f.Dropped),
			Refused: plus(sum.Refused, f.Refused), WireBytes: plus(sum.WireBytes, f.WireBytes), RawBytes: plus(sum.RawBytes, f.RawBytes),
			out: f.out,
		}
	}
	return flows
}

// instances returns the rates of components that have an instance in each of several pipelines, by pipeline and node.
func (c *console) instances(before, now *reading) map[string]map[string]*rates {
	out := map[string]map[string]*rates{}
	for _, s := range c.all() {
		if s.Flow == nil || s.Pipeline == "" || !s.several.Load() {
			continue
		}
		if out[s.Pipeline] == nil {
			out[s.Pipeline] = map[string]*rates{}
		}
		f := flowBetween(before, now, s)
		out[s.Pipeline][s.node()] = &f
	}
	return out
}

func (c *console) node(n *graphNode, flow *rates, before, now *reading) nodeJSON {
	out := nodeJSON{ID: n.id, Kind: n.kind, Name: n.name, Rates: flow, Unit: n.unit, Destinations: []destinationJSON{}}
	status := c.status(n.id)
	out.Status, out.StatusError, out.StatusSince = status.name, status.text, status.since
	for _, s := range c.all() {
		if s.node() != n.id {
			continue
		}
		out.Seen = true
		out.Live = out.Live || s.Tap != nil
		out.Destinations = append(out.Destinations, destinationsOf(before, now, s)...)
		switch {
		case s.Targets != nil:
			out.Outside.In = word(viewTargets)
			if out.Targets == nil {
				out.Targets = &counts{}
			}
			out.Targets.add(now.flows[s].Targets)
		case s.Kind == component.KindReceiver:
			out.Outside.In = word("clients")
		case s.Delivery != nil:
			out.Outside.Out = word("destinations")
		}
	}
	return out
}

func word(s string) *string { return &s }
