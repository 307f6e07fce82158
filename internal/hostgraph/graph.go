// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package hostgraph

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/godwit-otel/godwit/internal/inorder"
)

// The types of the Collector's graph, as in go.opentelemetry.io/collector/service v0.159.0: their fields are listed
// completely where an additional one could mean another way for metrics to go.
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

// ErrUnknown means that the host is not the Collector's, or not of the known version.
var ErrUnknown = errors.New("does not show its pipelines in a way that is known")

// A Pipeline is the components that metrics pass in one pipeline.
type Pipeline struct {
	Name       string
	Processors []Node
	Exporters  []Node // including connectors
}

// A Node is a component of a pipeline.
type Node struct {
	Kind    component.Kind
	ID      string
	Type    string
	Address uintptr // of its instance, 0 if it is no pointer
}

func (n Node) String() string {
	kind := "exporter"
	switch n.Kind {
	case component.KindProcessor:
		kind = "processor"
	case component.KindConnector:
		kind = "connector"
	default:
	}
	return fmt.Sprintf("%s %q", kind, n.ID)
}

// AddressOf returns the address that a pointer has, 0 for anything else.
func AddressOf(v reflect.Value) uintptr {
	if v.Kind() != reflect.Pointer {
		return 0
	}
	return v.Pointer()
}

// Behind finds the metrics pipelines that a receiver is in. It writes nothing, and reads only strings, types and
// addresses from unexported fields, so no unsafe is needed. The Collector starts receivers one after the other, and
// changes the graph only before and after, so there is no race.
func Behind(host component.Host, receiver component.ID) ([]Pipeline, error) {
	wrapper, ok := pointed(reflect.ValueOf(host), "HostWrapper")
	if !ok {
		return nil, ErrUnknown
	}
	shown := wrapper.Field(0)
	if shown.IsNil() || !isStruct(shown.Elem(), "Host") {
		return nil, ErrUnknown
	}
	graph, ok := pointed(shown.Elem().FieldByName("Pipelines"), "Graph")
	if !ok {
		return nil, ErrUnknown
	}
	var found []Pipeline
	pipelines := graph.FieldByName("pipelines")
	for it := pipelines.MapRange(); it.Next(); {
		signal, name, ok := readID(it.Key(), "signal", "name")
		nodes, has := pointed(it.Value(), "pipelineNodes")
		if !ok || !has {
			return nil, ErrUnknown
		}
		if signal != pipeline.SignalMetrics.String() {
			continue
		}
		p := Pipeline{Name: join(signal, name)}
		leads, ok := p.read(nodes, receiver.String())
		if !ok {
			return nil, ErrUnknown
		}
		if leads {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		return nil, ErrUnknown // it is called from within a pipeline
	}
	inorder.Sort(found, func(a, b Pipeline) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

// read fills in a pipeline, and reports whether a receiver leads into it.
func (p *Pipeline) read(nodes reflect.Value, receiver string) (leads, ok bool) {
	for it := nodes.FieldByName("receivers").MapRange(); it.Next(); {
		n, ok := readNode(it.Value(), "receiverNode")
		if !ok {
			if _, ok := readNode(it.Value(), "connectorNode"); !ok {
				return false, false
			}
			continue
		}
		leads = leads || n.ID == receiver
	}
	processors := nodes.FieldByName("processors")
	for i := range processors.Len() {
		n, ok := readNode(processors.Index(i), "processorNode")
		if !ok {
			return false, false
		}
		n.Kind = component.KindProcessor
		p.Processors = append(p.Processors, n)
	}
	for it := nodes.FieldByName("exporters").MapRange(); it.Next(); {
		n, ok := readNode(it.Value(), "exporterNode")
		n.Kind = component.KindExporter
		if !ok {
			if n, ok = readNode(it.Value(), "connectorNode"); !ok {
				return false, false
			}
			n.Kind = component.KindConnector
		}
		p.Exporters = append(p.Exporters, n)
	}
	return leads, true
}

// readNode reads a component in an interface, if it has the expected type.
func readNode(v reflect.Value, name string) (n Node, ok bool) {
	if v.Kind() != reflect.Interface || v.IsNil() {
		return Node{}, false
	}
	s, ok := pointed(v.Elem(), name)
	if !ok {
		return Node{}, false
	}
	id := s.FieldByName("componentID")
	kind, named, ok := readID(id, "typeVal", "nameVal")
	if !ok {
		return Node{}, false
	}
	if instance := s.FieldByName("Component"); !instance.IsNil() {
		n.Address = AddressOf(instance.Elem())
	}
	n.ID, n.Type = join(kind, named), kind
	return n, true
}

// readID reads the ID of a component or a pipeline: a type, which is a string in a struct, and a name.
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

// pointed returns the struct of the graph behind a pointer, if its fields are as expected.
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
