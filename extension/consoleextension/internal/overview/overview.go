// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package overview shows the pipelines with the data in them, and what is wrong.
package overview

import (
	"net/http"
	"os"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/answer"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/balance"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/delivery"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/findings"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/history"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/known"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/meter"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/service"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/sources"
)

type (
	overviewJSON struct {
		Now       time.Time           `json:"now"`
		Started   time.Time           `json:"started"`
		Loaded    time.Time           `json:"loaded"`
		Over      *float64            `json:"over_seconds"`
		Collector collectorJSON       `json:"collector"`
		Health    string              `json:"health"`
		Findings  []findings.Finding  `json:"findings"`
		Process   meter.Process       `json:"process"`
		Totals    balance.Totals      `json:"totals"`
		Latest    map[string]*float64 `json:"latest"`
		Targets   meter.Counts        `json:"targets"`
		Pipelines []pipelineJSON      `json:"pipelines"`
		Nodes     []nodeJSON          `json:"nodes"`
	}

	collectorJSON struct {
		Name     string `json:"name"`
		Version  string `json:"version"`
		Hostname string `json:"hostname"`
	}

	nodeJSON struct {
		ID          string        `json:"id"`
		Kind        string        `json:"kind"`
		Name        string        `json:"name"`
		Seen        bool          `json:"seen"`
		Status      string        `json:"status"`
		StatusError string        `json:"status_error"`
		StatusSince *time.Time    `json:"status_since"`
		Rates       *meter.Rates  `json:"rates"`
		Unit        string        `json:"unit"`
		Outside     outsideJSON   `json:"outside"`
		Live        bool          `json:"live"`
		Targets     *meter.Counts `json:"targets"`

		Destinations []delivery.Destination `json:"destinations"`
	}

	outsideJSON struct {
		In  *string `json:"in"`
		Out *string `json:"out"`
	}
)

// View shows the overview.
type View struct {
	Sources *sources.Registry
	Service *service.Service
	Meter   *meter.Meter
	Build   component.BuildInfo
	Loaded  time.Time // when the configuration was loaded
}

// Answer answers with the overview.
func (v *View) Answer(*http.Request) (any, error) {
	span := v.Meter.Look()
	g := v.Service.Graph()
	all := v.Sources.All()
	totals := balance.Of(span, g)
	hostname, _ := os.Hostname() // an unknown name is left out
	out := overviewJSON{
		Now: span.Now.At, Started: meter.Started, Loaded: v.Loaded,
		Collector: collectorJSON{v.Build.Command, v.Build.Version, hostname},
		Process:   totals.Process,
		Totals:    totals,
		Latest:    history.Latest(&totals),
		Targets:   totals.Targets,
		Pipelines: []pipelineJSON{},
		Nodes:     []nodeJSON{},
	}
	if span.Before != nil {
		out.Over = known.Number(span.Seconds())
	}
	for _, s := range all {
		if s.Runtime != nil {
			r := s.Runtime()
			r.FromEnv = answer.List(r.FromEnv)
			out.Process.Runtime = &r
		}
	}
	statuses := make(map[string]service.Status, len(g.Order))
	flows, instances := flows(all, span, g), instances(all, span)
	for _, id := range g.Order {
		statuses[id] = v.Service.Status(id)
		out.Nodes = append(out.Nodes, newNode(g.Nodes[id], statuses[id], flows[id], all, span))
	}
	for i := range g.Pipelines {
		p := &g.Pipelines[i]
		out.Pipelines = append(out.Pipelines, draw(p, g, flows, instances[p.ID]))
	}
	out.Findings = findings.Of(&findings.Facts{Sources: all, Span: span, Graph: g, Statuses: statuses, Process: out.Process})
	out.Health = findings.Health(out.Findings)
	return out, nil
}

// flows returns the rates of components with counters, by node. The rates of several instances are added.
func flows(all []*sources.Source, span meter.Span, g *service.Graph) map[string]*meter.Rates {
	flows := map[string]*meter.Rates{}
	for _, s := range all {
		if s.Flow == nil || g.Nodes[s.Node()] == nil {
			continue
		}
		f := span.Rates(s)
		if sum := flows[s.Node()]; sum != nil {
			f = sum.With(f)
		}
		flows[s.Node()] = &f
	}
	return flows
}

// instances returns the rates of components that have one instance for each of several pipelines, by pipeline and node.
func instances(all []*sources.Source, span meter.Span) map[string]map[string]*meter.Rates {
	out := map[string]map[string]*meter.Rates{}
	for _, s := range all {
		if s.Flow == nil || s.Pipeline == "" || !s.Several() {
			continue
		}
		if out[s.Pipeline] == nil {
			out[s.Pipeline] = map[string]*meter.Rates{}
		}
		f := span.Rates(s)
		out[s.Pipeline][s.Node()] = &f
	}
	return out
}

func newNode(n *service.Node, status service.Status, flow *meter.Rates, all []*sources.Source, span meter.Span) nodeJSON {
	out := nodeJSON{
		ID: n.ID, Kind: n.Kind, Name: n.Name, Status: status.Name, StatusError: status.Error, StatusSince: status.Since,
		Rates: flow, Unit: n.Unit, Destinations: []delivery.Destination{},
	}
	for _, s := range all {
		if s.Node() != n.ID {
			continue
		}
		out.Seen = true
		out.Live = out.Live || s.Tap != nil
		out.Destinations = append(out.Destinations, delivery.Of(span, s)...)
		switch {
		case s.Targets != nil:
			out.Outside.In = word("targets")
			if out.Targets == nil {
				out.Targets = &meter.Counts{}
			}
			out.Targets.Add(span.Now.Flows[s].Targets)
		case s.Kind == component.KindReceiver:
			out.Outside.In = word("clients")
		case s.Delivery != nil:
			out.Outside.Out = word("destinations")
		}
	}
	return out
}

func word(s string) *string { return &s }
