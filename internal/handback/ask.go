// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package handback

import (
	"errors"
	"fmt"
	"reflect"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/featuregate"
	"go.opentelemetry.io/collector/pipeline"
)

// An Obstacle is a reason not to use the memory of metrics again.
type Obstacle struct {
	// What stands in the way: a component, a gate, or the host.
	What string
	// Why it does: a clause that begins with a verb.
	Why string
	// Silent says that nothing is known to be wrong: somebody who knows the component may say so in its place.
	Silent bool
}

func (o Obstacle) String() string { return o.What + " " + o.Why }

// Ask returns all that stands between a receiver and the use of its metrics' memory again, nearest first; nothing if it
// may. Receivers ask when they start: all that is behind them has started by then.
func Ask(host component.Host, receiver component.ID) []Obstacle {
	found := gates()
	roads, err := readGraph(host, receiver)
	if err != nil {
		return append(found, Obstacle{What: "the host", Why: err.Error(), Silent: true})
	}
	return append(found, judge(host, roads)...)
}

// pooling is the gate by which the Collector frees metrics when the first consumer returns, for others to be made of.
const pooling = "pdata.useProtoPooling"

func gates() (found []Obstacle) {
	featuregate.GlobalRegistry().VisitAll(func(g *featuregate.Gate) {
		if g.ID() == pooling && g.IsEnabled() {
			found = append(found, Obstacle{What: "gate " + pooling, Why: "has the Collector free metrics as soon as they are consumed"})
		}
	})
	return found
}

// A road is what metrics meet in one pipeline.
type road struct {
	pipeline   string
	processors []node
	exporters  []node
}

// A node is a component of a pipeline.
type node struct {
	kind    component.Kind
	id      string
	kindOf  string  // its type
	address uintptr // of its instance, 0 if it is no pointer
}

func (n node) String() string { return fmt.Sprintf("%s %q", lower(n.kind), n.id) }

func lower(k component.Kind) string {
	switch k {
	case component.KindProcessor:
		return "processor"
	case component.KindConnector:
		return "connector"
	default:
		return "exporter"
	}
}

func judge(host component.Host, roads []road) (found []Obstacle) {
	if len(roads) != 1 {
		why := fmt.Sprintf("is in %d pipelines, which share metrics", len(roads))
		return []Obstacle{{What: "the receiver", Why: why}}
	}
	r := roads[0]
	for _, n := range r.processors {
		if o, ok := processorObstacle(host, n); ok {
			found = append(found, o)
		}
	}
	if len(r.exporters) != 1 {
		why := fmt.Sprintf("has %d exporters, which share metrics", len(r.exporters))
		return append(found, Obstacle{What: fmt.Sprintf("pipeline %q", r.pipeline), Why: why})
	}
	n := r.exporters[0]
	if n.kind == component.KindConnector {
		return append(found, Obstacle{What: n.String(), Why: "may hand metrics to any pipeline, or keep them"})
	}
	if o, ok := exporterObstacle(host, n); ok {
		found = append(found, o)
	}
	return found
}

func processorObstacle(host component.Host, n node) (Obstacle, bool) {
	if known, ok := registered.Load(n.address); ok && n.address != 0 {
		return answer(n, known.(registration).answers)
	}
	if isMemoryLimiter(host, n) {
		return Obstacle{}, false
	}
	return silent(n), true
}

func exporterObstacle(host component.Host, n node) (Obstacle, bool) {
	instance := exporterOf(host, n)
	if r, ok := instance.(Releaser); ok {
		return answer(n, r)
	}
	if isNop(instance) {
		return Obstacle{}, false
	}
	return silent(n), true
}

func answer(n node, r Releaser) (Obstacle, bool) {
	err := r.ReleasesMetrics()
	if err == nil {
		return Obstacle{}, false
	}
	return Obstacle{What: n.String(), Why: err.Error()}, true
}

func silent(n node) Obstacle {
	return Obstacle{What: n.String(), Why: "does not say whether it keeps metrics", Silent: true}
}

var errNoGraph = errors.New("does not show its pipelines in a way that is known")

// exporters is what the Collector's host implements.
type exporters interface {
	GetExporters() map[pipeline.Signal]map[component.ID]component.Component
}

// exporterOf returns the instance of an exporter of metrics, nil if the host does not have it.
func exporterOf(host component.Host, n node) component.Component {
	shown, ok := host.(exporters)
	if !ok {
		return nil
	}
	for id, instance := range shown.GetExporters()[pipeline.SignalMetrics] {
		if id.String() == n.id && addressOf(reflect.ValueOf(instance)) == n.address {
			return instance
		}
	}
	return nil
}
