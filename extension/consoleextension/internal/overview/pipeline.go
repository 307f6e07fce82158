// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"maps"
	"slices"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/meter"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/service"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/sources"
)

type pipelineJSON struct {
	ID     string     `json:"id"`
	Signal string     `json:"signal"`
	Nodes  []string   `json:"nodes"`
	Edges  []edgeJSON `json:"edges"`
	// Instances are the rates of components that have one instance for each of several pipelines, by node.
	Instances map[string]*meter.Rates `json:"instances"`
}

type edgeJSON struct {
	From  string   `json:"from"`
	To    string   `json:"to"`
	Rate  *float64 `json:"per_second"`
	Bytes *float64 `json:"bytes_per_second"`
}

// draw adds rates to arrows if they are known: the output of a component if this is its only arrow, or the input of the
// next one if this is its only source. A receiver of several signals may count them separately.
func draw(p *service.Pipeline, g *service.Graph, flows, own map[string]*meter.Rates) pipelineJSON {
	out := pipelineJSON{
		ID: p.ID, Signal: p.Signal, Nodes: slices.Concat(p.Receivers, p.Processors, p.Exporters), Edges: []edgeJSON{}, Instances: map[string]*meter.Rates{},
	}
	maps.Copy(out.Instances, own)
	arrows := p.Arrows()
	into := map[string]int{} // arrows of this pipeline
	for _, a := range arrows {
		into[a[1]]++
	}
	for _, a := range arrows {
		e := edgeJSON{From: a[0], To: a[1]}
		from, to := g.Nodes[a[0]], g.Nodes[a[1]]
		if f := own[to.ID]; f != nil && into[to.ID] == 1 {
			e.Rate = f.In
		} else if f := own[from.ID]; f != nil {
			e.Rate = f.Out
		}
		if f := flows[to.ID]; f != nil && e.Rate == nil && to.Arrows == 1 {
			e.Rate = f.In
		}
		if f := flows[from.ID]; f != nil && e.Rate == nil && g.HandsOnAlike(from) {
			e.Rate = f.Out
		}
		if f := flows[from.ID]; f != nil && e.Rate == nil && from.Kind == sources.Receiver {
			e.Rate = f.Signals[p.Signal] // all pipelines of a signal get the same data
		}
		out.Edges = append(out.Edges, e)
	}
	return out
}
