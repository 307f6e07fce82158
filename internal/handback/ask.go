// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package handback

import (
	"fmt"
	"reflect"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/featuregate"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/godwit-otel/godwit/internal/hostgraph"
)

// An Obstacle is a reason why the memory of metrics may not be reused.
type Obstacle struct {
	// What is in the way: a component, a gate, or the host.
	What string
	// Why it is: a clause that begins with a verb.
	Why string
	// Silent reports that nothing is known to be wrong: the component just does not say, and whoever knows it may
	// answer for it.
	Silent bool
	// Changes, if there are any, are all that is in the way: the component keeps nothing. A receiver that restores what
	// is changed may reuse the memory.
	Changes Changes
	// Batch reports that what is in the way is a batch before an exporter that returns what comes out of it: a receiver
	// that sends metrics ([Loan.Send]) may reuse the memory once they have come back.
	Batch bool
}

func (o Obstacle) String() string { return o.What + " " + o.Why }

// Ask returns all obstacles between a receiver and the reuse of its metrics' memory, nearest first; nothing if it may
// reuse it. Receivers ask when they start: the components behind them have started by then.
func Ask(host component.Host, receiver component.ID) []Obstacle {
	found := gates()
	roads, err := hostgraph.Behind(host, receiver)
	if err != nil {
		return append(found, Obstacle{What: "the host", Why: err.Error(), Silent: true})
	}
	return append(found, judge(host, roads)...)
}

// pooling is the gate by which the Collector frees metrics when the first consumer returns, and makes others of them.
const pooling = "pdata.useProtoPooling"

var poolingGate = sync.OnceValue(func() (found *featuregate.Gate) {
	featuregate.GlobalRegistry().VisitAll(func(g *featuregate.Gate) {
		if g.ID() == pooling {
			found = g
		}
	})
	return found
})

// Pooled reports whether the Collector frees data piece by piece: if so, no piece may be in two places.
func Pooled() bool {
	g := poolingGate()
	return g != nil && g.IsEnabled()
}

func gates() []Obstacle {
	if Pooled() {
		return []Obstacle{{What: "gate " + pooling, Why: "has the Collector free metrics as soon as they are consumed"}}
	}
	return nil
}

// Unread reports whether the points of a receiver that may reuse its memory may lack their values: behind it there are
// only processors known to do no more than count points, and an exporter that settles what it reads.
func Unread(host component.Host, receiver component.ID) bool {
	roads, err := hostgraph.Behind(host, receiver)
	return err == nil && unread(host, roads, false)
}

// UnreadWords reports whether the attributes of points may lack their values, and nothing else ([Wording]): processors
// that settle these may be behind the receiver, too.
func UnreadWords(host component.Host, receiver component.ID) bool {
	roads, err := hostgraph.Behind(host, receiver)
	return err == nil && unread(host, roads, true)
}

func unread(host component.Host, roads []hostgraph.Pipeline, words bool) bool {
	if len(roads) != 1 || len(roads[0].Exporters) != 1 || roads[0].Exporters[0].Kind == component.KindConnector {
		return false
	}
	for _, n := range roads[0].Processors {
		known, answers := registered.Load(n.Address)
		if answers && words {
			if _, settles := known.(registration).answers.(WordSettler); settles {
				continue
			}
		}
		if answers || configsOf(host, n) != limiterConfigs {
			return false
		}
	}
	_, settles := exporterOf(host, roads[0].Exporters[0]).(Settler)
	return settles
}

func judge(host component.Host, roads []hostgraph.Pipeline) (found []Obstacle) {
	if len(roads) != 1 {
		why := fmt.Sprintf("is in %d pipelines, which share metrics", len(roads))
		return []Obstacle{{What: "the receiver", Why: why}}
	}
	r := roads[0]
	batch, borrows := batchOf(host, r), slices.ContainsFunc(r.Processors, borrowsMetrics)
	for i, n := range r.Processors {
		if o, ok := processorObstacle(host, n); ok {
			o.Batch = i == batch
			if o.Changes.Removes && borrows {
				o.Changes, o.Why = Changes{}, "removes metrics, beside a processor that borrows them"
			}
			found = append(found, o)
		}
	}
	if len(r.Exporters) != 1 {
		why := fmt.Sprintf("has %d exporters, which share metrics", len(r.Exporters))
		return append(found, Obstacle{What: fmt.Sprintf("pipeline %q", r.Name), Why: why})
	}
	n := r.Exporters[0]
	if n.Kind == component.KindConnector {
		return append(found, Obstacle{What: n.String(), Why: "may hand metrics to any pipeline, or keep them"})
	}
	if o, ok := exporterObstacle(host, n); ok {
		found = append(found, o)
	}
	return found
}

// batchOf returns the index of the pipeline's batch processor from which metrics come back, -1 if there is none. Behind
// it are only processors that change attributes, since others may lose metrics, and no component before it takes loans.
func batchOf(host component.Host, r hostgraph.Pipeline) int {
	last := len(r.Processors) - 1
	for last >= 0 {
		if c := changing[configsOf(host, r.Processors[last])]; c == (Changes{}) || c.Removes {
			break
		}
		last--
	}
	if last < 0 || !knowsScopes || len(r.Exporters) != 1 || r.Exporters[0].Kind == component.KindConnector {
		return -1
	}
	for _, n := range r.Processors {
		if _, answers := registered.Load(n.Address); answers && n.Address != 0 {
			return -1
		}
	}
	_, returns := exporterOf(host, r.Exporters[0]).(Returner)
	if !returns || configsOf(host, r.Processors[last]) != batchConfigs {
		return -1
	}
	return last
}

// borrowsMetrics reports whether a processor takes points out for the next consumer: it may put back what that has
// removed.
func borrowsMetrics(n hostgraph.Node) bool {
	known, ok := registered.Load(n.Address)
	if !ok || n.Address == 0 {
		return false
	}
	_, borrows := known.(registration).answers.(WordSettler)
	return borrows
}

func processorObstacle(host component.Host, n hostgraph.Node) (Obstacle, bool) {
	if known, ok := registered.Load(n.Address); ok && n.Address != 0 {
		return answer(n, known.(registration).answers)
	}
	configs := configsOf(host, n)
	if configs == limiterConfigs {
		return Obstacle{}, false
	}
	switch c := changing[configs]; {
	case c.Removes:
		return Obstacle{What: n.String(), Why: "removes metrics", Changes: c}, true
	case c != Changes{}:
		return Obstacle{What: n.String(), Why: "changes " + c.String(), Changes: c}, true
	}
	return silent(n), true
}

func exporterObstacle(host component.Host, n hostgraph.Node) (Obstacle, bool) {
	instance := exporterOf(host, n)
	if r, ok := instance.(Releaser); ok {
		return answer(n, r)
	}
	if isNop(instance) {
		return Obstacle{}, false
	}
	return silent(n), true
}

func answer(n hostgraph.Node, r Releaser) (Obstacle, bool) {
	err := r.ReleasesMetrics()
	if err == nil {
		return Obstacle{}, false
	}
	return Obstacle{What: n.String(), Why: err.Error()}, true
}

func silent(n hostgraph.Node) Obstacle {
	return Obstacle{What: n.String(), Why: "does not say whether it keeps metrics", Silent: true}
}

// exporters is implemented by the Collector's host.
type exporters interface {
	GetExporters() map[pipeline.Signal]map[component.ID]component.Component
}

// exporterOf returns the instance of an exporter of metrics, nil if the host does not have it.
func exporterOf(host component.Host, n hostgraph.Node) component.Component {
	shown, ok := host.(exporters)
	if !ok {
		return nil
	}
	for id, instance := range shown.GetExporters()[pipeline.SignalMetrics] {
		if id.String() == n.ID && hostgraph.AddressOf(reflect.ValueOf(instance)) == n.Address {
			return instance
		}
	}
	return nil
}
