// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package handback

import (
	"reflect"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pipeline"
)

// The types of the Collector's graph, as in go.opentelemetry.io/collector/service v0.159.0: their fields are listed in
// full where another one could mean another way for metrics to go.
const graphPackage = "go.opentelemetry.io/collector/service/internal/graph"

const (
	attributesField = "Attributes attribute.Attributes"
	idField         = "componentID component.ID"
	componentField  = "Component component.Component"
	consumerField   = "consumer graph.baseConsumer"
)

var graphLayout = map[string][]string{
	"HostWrapper": {"Host *graph.Host", "InstanceID *componentstatus.InstanceID"},
	"Graph": {
		"componentGraph *simple.DirectedGraph", "pipelines map[pipeline.ID]*graph.pipelineNodes",
		"instanceIDs map[int64]*componentstatus.InstanceID", "telemetry component.TelemetrySettings",
	},
	"pipelineNodes": {
		"receivers map[int64]graph.Node", "capabilitiesNode *graph.capabilitiesNode", "processors []graph.Node",
		"fanOutNode *graph.fanOutNode", "exporters map[int64]graph.Node",
	},
	"receiverNode": {
		attributesField, idField, "pipelineType globalsignal.Signal", componentField,
	},
	"processorNode": {
		attributesField, idField, "pipelineID pipeline.ID",
		componentField, consumerField,
	},
	"exporterNode": {
		attributesField, idField, "pipelineType globalsignal.Signal",
		componentField, consumerField,
	},
	"connectorNode": {
		attributesField, idField, "exprPipelineType globalsignal.Signal",
		"rcvrPipelineType globalsignal.Signal", componentField, consumerField,
	},
}

// readGraph finds the pipelines that have a receiver of metrics. Nothing is written, and no value is taken out of a field
// that is not exported but strings, types and addresses, so no unsafe is needed. The Collector starts receivers one after
// the other, and changes the graph only between that, so there is nobody to race with.
func readGraph(host component.Host, receiver component.ID) ([]road, error) {
	wrapper, ok := pointed(reflect.ValueOf(host), "HostWrapper")
	if !ok {
		return nil, errNoGraph
	}
	shown := wrapper.Field(0)
	if shown.IsNil() || !isStruct(shown.Elem(), "Host") {
		return nil, errNoGraph
	}
	graph, ok := pointed(shown.Elem().FieldByName("Pipelines"), "Graph")
	if !ok {
		return nil, errNoGraph
	}
	var roads []road
	pipelines := graph.FieldByName("pipelines")
	for it := pipelines.MapRange(); it.Next(); {
		signal, name, ok := readID(it.Key(), "signal", "name")
		nodes, has := pointed(it.Value(), "pipelineNodes")
		if !ok || !has {
			return nil, errNoGraph
		}
		if signal != pipeline.SignalMetrics.String() {
			continue
		}
		r := road{pipeline: join(signal, name)}
		leads, ok := r.read(nodes, receiver.String())
		if !ok {
			return nil, errNoGraph
		}
		if leads {
			roads = append(roads, r)
		}
	}
	if len(roads) == 0 {
		return nil, errNoGraph // it asks from within one
	}
	slices.SortFunc(roads, func(a, b road) int { return strings.Compare(a.pipeline, b.pipeline) })
	return roads, nil
}

// read fills in a pipeline, and tells whether a receiver leads into it.
func (r *road) read(nodes reflect.Value, receiver string) (leads, ok bool) {
	for it := nodes.FieldByName("receivers").MapRange(); it.Next(); {
		n, ok := readNode(it.Value(), "receiverNode")
		if !ok {
			if _, ok := readNode(it.Value(), "connectorNode"); !ok {
				return false, false
			}
			continue
		}
		leads = leads || n.id == receiver
	}
	processors := nodes.FieldByName("processors")
	for i := range processors.Len() {
		n, ok := readNode(processors.Index(i), "processorNode")
		if !ok {
			return false, false
		}
		n.kind = component.KindProcessor
		r.processors = append(r.processors, n)
	}
	for it := nodes.FieldByName("exporters").MapRange(); it.Next(); {
		n, ok := readNode(it.Value(), "exporterNode")
		n.kind = component.KindExporter
		if !ok {
			if n, ok = readNode(it.Value(), "connectorNode"); !ok {
				return false, false
			}
			n.kind = component.KindConnector
		}
		r.exporters = append(r.exporters, n)
	}
	return leads, true
}

// readNode reads a component that an interface holds, if it is of a type.
func readNode(v reflect.Value, name string) (n node, ok bool) {
	if v.Kind() != reflect.Interface || v.IsNil() {
		return node{}, false
	}
	s, ok := pointed(v.Elem(), name)
	if !ok {
		return node{}, false
	}
	id := s.FieldByName("componentID")
	kind, named, ok := readID(id, "typeVal", "nameVal")
	if !ok {
		return node{}, false
	}
	if instance := s.FieldByName("Component"); !instance.IsNil() {
		n.address = addressOf(instance.Elem())
	}
	n.id, n.kindOf = join(kind, named), kind
	return n, true
}

// readID reads an identifier of a component or a pipeline: a type, which is a string in a struct, and a name.
func readID(v reflect.Value, of, name string) (kind, named string, ok bool) {
	if v.Kind() != reflect.Struct || v.NumField() != 2 {
		return "", "", false
	}
	first, second := v.FieldByName(of), v.FieldByName(name)
	if !first.IsValid() || first.Kind() != reflect.Struct || first.NumField() != 1 ||
		first.Field(0).Kind() != reflect.String || !second.IsValid() || second.Kind() != reflect.String {
		return "", "", false
	}
	return first.Field(0).String(), second.String(), true
}

func join(kind, name string) string {
	if name == "" {
		return kind
	}
	return kind + "/" + name
}

// pointed returns the struct of the graph that a pointer points to, if its fields are as they should be.
func pointed(v reflect.Value, name string) (reflect.Value, bool) {
	if !v.IsValid() || v.Kind() != reflect.Pointer || v.IsNil() || !isStruct(v.Elem(), name) {
		return reflect.Value{}, false
	}
	fields := graphLayout[name]
	s := v.Elem()
	if s.NumField() != len(fields) {
		return reflect.Value{}, false
	}
	for i, want := range fields {
		f := s.Type().Field(i)
		if f.Name+" "+f.Type.String() != want {
			return reflect.Value{}, false
		}
	}
	return s, true
}

func isStruct(v reflect.Value, name string) bool {
	return v.Kind() == reflect.Struct && v.Type().PkgPath() == graphPackage && v.Type().Name() == name
}
