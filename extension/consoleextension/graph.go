// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/confmap"
)

// A graph is what the configuration says about the pipelines.
type graph struct {
	pipelines []graphPipeline
	nodes     map[string]*graphNode
	order     []string // of nodes: as data flows
}

type graphPipeline struct {
	id, signal                       string
	receivers, processors, exporters []string // ids of nodes
}

type graphNode struct {
	id, kind, name, unit string
	pipelines            []string // it is in
	arrows               int      // that lead to it
}

// graph reads the effective configuration.
func (c *console) graph() *graph {
	c.mu.Lock()
	conf := c.conf
	c.mu.Unlock()
	return newGraph(conf)
}

func newGraph(conf *confmap.Conf) *graph {
	g := &graph{nodes: map[string]*graphNode{}}
	if conf == nil {
		return g
	}
	pipelines, _ := conf.Get("service::pipelines").(map[string]any)
	connectors, _ := conf.Get("connectors").(map[string]any)
	for _, id := range slices.Sorted(maps.Keys(pipelines)) {
		parts, _ := pipelines[id].(map[string]any)
		p := graphPipeline{id: id}
		p.signal, _, _ = strings.Cut(id, "/")
		add := func(kind string) (ids []string) {
			for _, name := range names(parts[kind+"s"]) {
				kind := kind
				if _, is := connectors[name]; is && kind != wordProcessor {
					kind = wordConnector
				}
				ids = append(ids, g.add(kind, name, p))
			}
			return ids
		}
		p.receivers, p.processors, p.exporters = add(wordReceiver), add(wordProcessor), add(wordExporter)
		g.pipelines = append(g.pipelines, p)
		for _, a := range p.arrows() {
			g.nodes[a[1]].arrows++
		}
	}
	rank := map[string]int{wordReceiver: 0, wordProcessor: 1, wordConnector: 2, wordExporter: 3}
	slices.SortStableFunc(g.order, func(a, b string) int { return rank[g.nodes[a].kind] - rank[g.nodes[b].kind] })
	return g
}

func (g *graph) add(kind, name string, p graphPipeline) string {
	id := kind + "/" + name
	n := g.nodes[id]
	if n == nil {
		n = &graphNode{id: id, kind: kind, name: name, unit: wordSamples}
		g.nodes[id] = n
		g.order = append(g.order, id)
	}
	if p.signal != wordMetrics {
		n.unit = "items"
	}
	if !slices.Contains(n.pipelines, p.id) {
		n.pipelines = append(n.pipelines, p.id)
	}
	return id
}

// names reads a list of component IDs.
func names(list any) (out []string) {
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

// arrows lead from each component to the next.
func (p *graphPipeline) arrows() (out [][2]string) {
	from := p.receivers
	for _, step := range append(slices.Collect(each(p.processors)), p.exporters) {
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

type pipelineJSON struct {
	ID     string     `json:"id"`
	Signal string     `json:"signal"`
	Nodes  []string   `json:"nodes"`
	Edges  []edgeJSON `json:"edges"`
	// Instances are the rates of those that have an instance in each of several pipelines, by node.
	Instances map[string]*rates `json:"instances"`
}

type edgeJSON struct {
	From  string   `json:"from"`
	To    string   `json:"to"`
	Rate  *float64 `json:"per_second"`
	Bytes *float64 `json:"bytes_per_second"`
}

// draw puts numbers on arrows where they are known: what a component has handed on if it does that here only, or what
// the next one has taken if it gets that from here only. A receiver of several signals may tell them apart.
func (p *graphPipeline) draw(g *graph, flows, own map[string]*rates) pipelineJSON {
	out := pipelineJSON{
		ID: p.id, Signal: p.signal, Nodes: slices.Concat(p.receivers, p.processors, p.exporters), Edges: []edgeJSON{}, Instances: map[string]*rates{},
	}
	maps.Copy(out.Instances, own)
	arrows := p.arrows()
	into := map[string]int{} // arrows of this pipeline
	for _, a := range arrows {
		into[a[1]]++
	}
	for _, a := range arrows {
		e := edgeJSON{From: a[0], To: a[1]}
		from, to := g.nodes[a[0]], g.nodes[a[1]]
		if f := own[to.id]; f != nil && into[to.id] == 1 {
			e.Rate = f.In
		} else if f := own[from.id]; f != nil {
			e.Rate = f.Out
		}
		if f := flows[to.id]; f != nil && e.Rate == nil && to.arrows == 1 {
			e.Rate = f.In
		}
		if f := flows[from.id]; f != nil && e.Rate == nil && g.handsOnAlike(from) {
			e.Rate = f.Out
		}
		if f := flows[from.id]; f != nil && e.Rate == nil && from.kind == wordReceiver {
			e.Rate = f.out[p.signal] // all pipelines of a signal get the same
		}
		out.Edges = append(out.Edges, e)
	}
	return out
}

// handsOnAlike tells whether a component hands the same to all that follow it.
func (g *graph) handsOnAlike(n *graphNode) bool {
	if n.kind == wordReceiver {
		signals := map[string]bool{}
		for _, id := range n.pipelines {
			signal, _, _ := strings.Cut(id, "/")
			signals[signal] = true
		}
		return len(signals) == 1
	}
	return n.kind == wordProcessor && len(n.pipelines) == 1
}

// status is what a component last said of itself: the worst of its instances.
type status struct {
	name, text string
	since      *time.Time
}

var statusNames = map[componentstatus.Status]string{
	componentstatus.StatusNone:             wordNone,
	componentstatus.StatusStarting:         "starting",
	componentstatus.StatusOK:               "ok",
	componentstatus.StatusRecoverableError: statusRecoverable,
	componentstatus.StatusPermanentError:   "permanent_error",
	componentstatus.StatusFatalError:       "fatal_error",
	componentstatus.StatusStopping:         "stopping",
	componentstatus.StatusStopped:          "stopped",
}

func (c *console) status(node string) status {
	c.mu.Lock()
	defer c.mu.Unlock()
	var worst *componentstatus.Event
	for _, event := range c.statuses[node] {
		if worst == nil || badness(event) > badness(worst) {
			worst = event
		}
	}
	if worst == nil {
		return status{name: wordNone}
	}
	at := worst.Timestamp()
	s := status{name: statusNames[worst.Status()], since: &at}
	if err := worst.Err(); err != nil {
		s.text = redactor.Text(cut(err.Error(), 1000))
	}
	return s
}

func badness(event *componentstatus.Event) int {
	if componentstatus.StatusIsError(event.Status()) {
		return 100 + int(event.Status())
	}
	return int(event.Status())
}
