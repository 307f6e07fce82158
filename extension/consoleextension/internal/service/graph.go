// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/confmap"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/sources"
	"github.com/godwit-otel/godwit/internal/inorder"
)

// A Graph is the graph of the pipelines in the configuration.
type Graph struct {
	Pipelines []Pipeline
	Nodes     map[string]*Node
	Order     []string // nodes in the order of the data flow
}

// A Pipeline is a pipeline of the configuration.
type Pipeline struct {
	ID, Signal                       string
	Receivers, Processors, Exporters []string // ids of nodes
}

// A Node is a component, which may be in several pipelines.
type Node struct {
	ID, Kind, Name, Unit string
	Pipelines            []string // that contain it
	Arrows               int      // that lead to it
}

// NewGraph returns the graph of an effective configuration, an empty one for nil.
func NewGraph(conf *confmap.Conf) *Graph {
	g := &Graph{Nodes: map[string]*Node{}}
	if conf == nil {
		return g
	}
	pipelines, _ := conf.Get("service::pipelines").(map[string]any)
	connectors, _ := conf.Get("connectors").(map[string]any)
	for _, id := range slices.Sorted(maps.Keys(pipelines)) {
		parts, _ := pipelines[id].(map[string]any)
		p := Pipeline{ID: id}
		p.Signal, _, _ = strings.Cut(id, "/")
		add := func(kind string) (ids []string) {
			for _, name := range Names(parts[kind+"s"]) {
				kind := kind
				if _, is := connectors[name]; is && kind != sources.Processor {
					kind = sources.Connector
				}
				ids = append(ids, g.add(kind, name, p))
			}
			return ids
		}
		p.Receivers, p.Processors, p.Exporters = add(sources.Receiver), add(sources.Processor), add(sources.Exporter)
		g.Pipelines = append(g.Pipelines, p)
		for _, a := range p.Arrows() {
			g.Nodes[a[1]].Arrows++
		}
	}
	rank := map[string]int{sources.Receiver: 0, sources.Processor: 1, sources.Connector: 2, sources.Exporter: 3}
	inorder.Sort(g.Order, func(a, b string) int { return rank[g.Nodes[a].Kind] - rank[g.Nodes[b].Kind] })
	return g
}

func (g *Graph) add(kind, name string, p Pipeline) string {
	id := kind + "/" + name
	n := g.Nodes[id]
	if n == nil {
		n = &Node{ID: id, Kind: kind, Name: name, Unit: "samples"}
		g.Nodes[id] = n
		g.Order = append(g.Order, id)
	}
	if p.Signal != "metrics" {
		n.Unit = "items"
	}
	if !slices.Contains(n.Pipelines, p.ID) {
		n.Pipelines = append(n.Pipelines, p.ID)
	}
	return id
}

// SharesPipeline reports whether two components, which may be nil, are in the same pipeline.
func (n *Node) SharesPipeline(with *Node) bool {
	return n != nil && with != nil && slices.ContainsFunc(n.Pipelines, func(p string) bool { return slices.Contains(with.Pipelines, p) })
}

// LimitsMemory reports whether the node is a memory_limiter.
func (n *Node) LimitsMemory() bool {
	typ, _, _ := strings.Cut(n.Name, "/")
	return n.Kind == sources.Processor && typ == "memory_limiter"
}

// Names returns the component IDs in a list.
func Names(list any) (out []string) {
	switch list := list.(type) {
	case []string:
		return list
	case []any:
		for _, name := range list {
			if s, ok := name.(string); ok {
				out = append(out, s)
			}
		}
	}
	return out
}

// Arrows returns the pairs of components between which data flows.
func (p *Pipeline) Arrows() (out [][2]string) {
	from := p.Receivers
	for _, step := range append(slices.Collect(each(p.Processors)), p.Exporters) {
		for _, a := range from {
			for _, b := range step {
				out = append(out, [2]string{a, b})
			}
		}
		from = step
	}
	return out
}

func each(ids []string) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		for _, id := range ids {
			if !yield([]string{id}) {
				return
			}
		}
	}
}

// HandsOnAlike reports whether all components that follow a component get the same data from it.
func (g *Graph) HandsOnAlike(n *Node) bool {
	if n.Kind == sources.Receiver {
		signals := map[string]bool{}
		for _, id := range n.Pipelines {
			signal, _, _ := strings.Cut(id, "/")
			signals[signal] = true
		}
		return len(signals) == 1
	}
	return n.Kind == sources.Processor && len(n.Pipelines) == 1
}

// Origins returns the receivers whose data of a signal reaches an exporter, including through connectors.
func (g *Graph) Origins(exporter, signal string) map[string]bool {
	found, seen := map[string]bool{}, map[string]bool{}
	var follow func(node string)
	follow = func(node string) {
		if seen[node] {
			return
		}
		seen[node] = true
		for i := range g.Pipelines {
			p := &g.Pipelines[i]
			if p.Signal != signal || !slices.Contains(p.Exporters, node) {
				continue
			}
			for _, from := range p.Receivers {
				if g.Nodes[from].Kind != sources.Connector || !g.Feeds(from, signal) {
					found[from] = true
				} else {
					follow(from)
				}
			}
		}
	}
	follow(exporter)
	return found
}

// Feeds reports whether data of a signal reaches a connector. A connector that gets another signal makes its data
// itself.
func (g *Graph) Feeds(connector, signal string) bool {
	return slices.ContainsFunc(g.Pipelines, func(p Pipeline) bool {
		return p.Signal == signal && slices.Contains(p.Exporters, connector)
	})
}
